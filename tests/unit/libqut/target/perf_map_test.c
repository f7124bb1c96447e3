// SPDX-License-Identifier: Apache-2.0
// Names by the map that a process writes for perf, /tmp/perf-PID.map: a child of ours writes one.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <qut/target.h>

#include "tests/support/run_suite.h"

static pid_t child;
static char path[64];
static struct qut_target *target;

static void write_map(const char *how, const char *text)
{
    FILE *file = fopen(path, how);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void set_up(void)
{
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    ck_assert_int_gt(child, 0);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)child);
    const struct qut_target_options options = {.size = sizeof options};
    struct qut_target_error error;
    target = qut_target_process(child, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
}

static void tear_down(void)
{
    qut_target_close(target);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(path);
}

// "" where nothing is known.
static const char *name_at(uint64_t address)
{
    static struct qut_made_code code;
    if (!qut_target_made_code(target, address, &code, sizeof code))
        return "";
    ck_assert(address >= code.start && address < code.end);
    return code.name;
}

START_TEST(names_by_address)
{
    write_map("w", "7f0000001000 20 LazyCompile:*rec /app/main.js:3:1\n"
                   "0x7f0000002000 0x10 Builtin:Call\n"
                   "7F0000003000 8 x\n");
    ck_assert_str_eq(name_at(0x7f0000001000), "LazyCompile:*rec /app/main.js:3:1");
    ck_assert_str_eq(name_at(0x7f000000101f), "LazyCompile:*rec /app/main.js:3:1");
    ck_assert_str_eq(name_at(0x7f0000001020), "");
    ck_assert_str_eq(name_at(0x7f0000000fff), "");
    ck_assert_str_eq(name_at(0x7f000000200f), "Builtin:Call");
    ck_assert_str_eq(name_at(0x7f0000003007), "x");
}
END_TEST

START_TEST(later_lines_hold)
{
    write_map("w", "1000 1000 whole\n1400 100 first\n1400 100 second\n1480 10 within\n1000 20 newest\n");
    ck_assert_str_eq(name_at(0x1400), "second");
    ck_assert_str_eq(name_at(0x1488), "within");
    ck_assert_str_eq(name_at(0x14f0), "second");
    ck_assert_str_eq(name_at(0x1010), "newest");
    ck_assert_str_eq(name_at(0x1800), "whole");
}
END_TEST

START_TEST(lines_that_are_none)
{
    write_map("w", "\n1000\n1000 \n2000 10\n2000 10 \nzzz 10 name\n3000 0 empty\nffffffffffffffff 10 wraps\n"
                   "-1 10 negative\n00000000000004000 1 long\n5000 10 good one\n6000 10 half writ");
    ck_assert_str_eq(name_at(0x2000), "");
    ck_assert_str_eq(name_at(0x3000), "");
    ck_assert_str_eq(name_at(UINT64_MAX), "");
    ck_assert_str_eq(name_at(0x5000), "good one");
    ck_assert_str_eq(name_at(0x6000), "");
}
END_TEST

START_TEST(what_is_added_is_found)
{
    ck_assert_str_eq(name_at(0x1000), ""); // there is no map yet
    write_map("w", "1000 10 first\n");
    for (unsigned i = 0; i < 500 && !*name_at(0x1000); i++)
        usleep(20000);
    ck_assert_str_eq(name_at(0x1000), "first");
    write_map("a", "2000 10 second\n");
    for (unsigned i = 0; i < 500 && !*name_at(0x2000); i++)
        usleep(20000);
    ck_assert_str_eq(name_at(0x2000), "second");
    unlink(path);
    usleep(200000);
    ck_assert_str_eq(name_at(0x2000), "second"); // what was read holds
}
END_TEST

START_TEST(map_of_anybody_is_not_believed)
{
    write_map("w", "1000 10 planted\n");
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_str_eq(name_at(0x1000), "");
}
END_TEST

START_TEST(map_of_another_user_is_not_believed)
{
    write_map("w", "1000 10 planted\n");
    if (geteuid() != 0)
        return; // only root can give a file away
    ck_assert_int_eq(chown(path, 65534, 65534), 0);
    ck_assert_str_eq(name_at(0x1000), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("perf_map");
    TCase *tcase = tcase_create("perf_map");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, names_by_address);
    tcase_add_test(tcase, later_lines_hold);
    tcase_add_test(tcase, lines_that_are_none);
    tcase_add_test(tcase, what_is_added_is_found);
    tcase_add_test(tcase, map_of_anybody_is_not_believed);
    tcase_add_test(tcase, map_of_another_user_is_not_believed);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
