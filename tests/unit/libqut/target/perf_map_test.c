// SPDX-License-Identifier: Apache-2.0
// Names by the map that a process writes for perf, /tmp/perf-PID.map: a child of ours writes one.
#include <check.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/libqut/target/named_code.h"

static char path[64];

static void write_map(const char *how, const char *text)
{
    FILE *file = fopen(path, how);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void set_up(void)
{
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)named_code_begin(NULL));
}

static void tear_down(void)
{
    named_code_end();
    unlink(path);
}

START_TEST(names_by_address)
{
    write_map("w", "7f0000001000 20 LazyCompile:*rec /app/main.js:3:1\n"
                   "0x7f0000002000 0x10 Builtin:Call\n"
                   "7F0000003000 8 x\n");
    ck_assert_str_eq(named_code_at(0x7f0000001000), "LazyCompile:*rec /app/main.js:3:1");
    ck_assert_str_eq(named_code_at(0x7f000000101f), "LazyCompile:*rec /app/main.js:3:1");
    ck_assert_str_eq(named_code_at(0x7f0000001020), "");
    ck_assert_str_eq(named_code_at(0x7f0000000fff), "");
    ck_assert_str_eq(named_code_at(0x7f000000200f), "Builtin:Call");
    ck_assert_str_eq(named_code_at(0x7f0000003007), "x");
}
END_TEST

START_TEST(later_lines_hold)
{
    write_map("w", "1000 1000 whole\n1400 100 first\n1400 100 second\n1480 10 within\n1000 20 newest\n");
    ck_assert_str_eq(named_code_at(0x1400), "second");
    ck_assert_str_eq(named_code_at(0x1488), "within");
    ck_assert_str_eq(named_code_at(0x14f0), "second");
    ck_assert_str_eq(named_code_at(0x1010), "newest");
    ck_assert_str_eq(named_code_at(0x1800), "whole");
}
END_TEST

START_TEST(lines_that_are_none)
{
    write_map("w", "\n1000\n1000 \n2000 10\n2000 10 \nzzz 10 name\n3000 0 empty\nffffffffffffffff 10 wraps\n"
                   "-1 10 negative\n00000000000004000 1 long\n5000 10 good one\n6000 10 half writ");
    ck_assert_str_eq(named_code_at(0x2000), "");
    ck_assert_str_eq(named_code_at(0x3000), "");
    ck_assert_str_eq(named_code_at(UINT64_MAX), "");
    ck_assert_str_eq(named_code_at(0x5000), "good one");
    ck_assert_str_eq(named_code_at(0x6000), "");
}
END_TEST

START_TEST(what_is_added_is_found)
{
    ck_assert_str_eq(named_code_at(0x1000), ""); // there is no map yet
    write_map("w", "1000 10 first\n");
    ck_assert_str_eq(named_code_soon_at(0x1000), "first");
    write_map("a", "2000 10 second\n");
    ck_assert_str_eq(named_code_soon_at(0x2000), "second");
    unlink(path);
    usleep(200000);
    ck_assert_str_eq(named_code_at(0x2000), "second"); // what was read holds
}
END_TEST

START_TEST(map_of_anybody_is_not_believed)
{
    write_map("w", "1000 10 planted\n");
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_str_eq(named_code_at(0x1000), "");
}
END_TEST

START_TEST(map_of_another_user_is_not_believed)
{
    write_map("w", "1000 10 planted\n");
    if (geteuid() != 0)
        return; // only root can give a file away
    ck_assert_int_eq(chown(path, 65534, 65534), 0);
    ck_assert_str_eq(named_code_at(0x1000), "");
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
