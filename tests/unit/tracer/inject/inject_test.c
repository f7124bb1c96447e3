// SPDX-License-Identifier: Apache-2.0
// Something is loaded into programs that run, and taken out again: they never notice, and are afterwards what they
// were. Arguments: SUBJECT LOADABLE [ROUNDS [KILLS]].
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/inject/process.h"
#include "tracer/inject/inject.h"
#include "tracer/inject/victim.h"

static const char *subject_path, *static_path, *loadable_path;
static unsigned rounds = 10, kills = 12;
static struct qutc_provide_options provide = {.size = sizeof provide};
static char cache[] = "/tmp/qut-inject-test-XXXXXX";
enum { CASE_SECONDS = 280 };
static uint64_t patience_ns; // 0: the usual one

static struct injection *begin(pid_t pid, const char *settings, struct base_error *error)
{
    const struct inject_options options = {.agent_path = loadable_path,
                                           .timeout_ns = patience_ns,
                                           .settings = settings,
                                           .cache_directory = cache,
                                           .compile = qutc_compile_for_qut,
                                           .compile_context = &provide};
    *error = (struct base_error){0};
    return inject(pid, &options, error);
}

static void round_trip(pid_t pid)
{
    struct base_error error;
    char text[256];
    struct injection *injection = begin(pid, "", &error);
    ck_assert_msg(injection, "%s", base_error_text(&error, text, sizeof text));
    ck_assert(process_has_name_in_maps(pid, loadable_path));
    ck_assert_msg(inject_remove(injection, &error) == 0, "%s", base_error_text(&error, text, sizeof text));
}

// ---- the census: each call as the one that is interrupted

static const char *const calls[] = {"nanosleep", "poll", "epoll_wait",   "sem_timedwait",
                                    "read",      "recv", "recv_timeout", "accept"};

START_TEST(test_of_nothing_is_noticed)
{
    struct process process = process_start(subject_path, calls[_i], loadable_path);
    unsigned fds = process_count(process.pid, "fd");
    char *maps = process_maps(process.pid);
    unsigned long hash = process_code_hash(process.pid);
    for (unsigned i = 0; i < rounds; i++)
        round_trip(process.pid);
    process_goes_on(&process);
    char *maps_after = process_maps(process.pid);
    ck_assert_str_eq(maps, maps_after);
    ck_assert_uint_eq(hash, process_code_hash(process.pid));
    // accept has its own now and then
    ck_assert_uint_le(process_count(process.pid, "fd"), fds + (strcmp(calls[_i], "accept") == 0));
    ck_assert_uint_eq(process_count(process.pid, "task"), 1);
    ck_assert_uint_eq(process.state->eintr, 0);
    ck_assert_uint_eq(process.state->wrong, 0);
    ck_assert_int_eq(process_end(&process), 0);
    free(maps);
    free(maps_after);
}
END_TEST

// ---- programs that are busy where it matters

static const char *const storms[] = {"malloc", "spin", "load", "threads", "recv_often"};

START_TEST(test_busy_program_goes_on)
{
    struct process process = process_start(subject_path, storms[_i], loadable_path);
    patience_ns = UINT64_C(100000000000); // others may have the processors
    for (unsigned i = 0; i < rounds; i++) {
        struct base_error error;
        char text[256];
        struct injection *injection = begin(process.pid, "", &error);
        ck_assert_msg(injection, "%s", base_error_text(&error, text, sizeof text));
        ck_assert_msg(inject_remove(injection, &error) == 0, "%s", base_error_text(&error, text, sizeof text));
    }
    process_goes_on(&process);
    ck_assert_uint_eq(process.state->eintr, 0);
    ck_assert_uint_eq(process.state->wrong, 0);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

// ---- we are killed

// Whether it stands still, or is traced.
static bool is_stopped(pid_t pid)
{
    char path[64], line[128];
    bool stopped = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        stopped |= strncmp(line, "State:\tT", 8) == 0 || strncmp(line, "State:\tt", 8) == 0 ||
                   (strncmp(line, "TracerPid:\t", 11) == 0 && line[11] != '0');
    if (file)
        fclose(file);
    return stopped;
}

static uint64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static const char *const killed_at[] = {"nanosleep", "read", "recv", "spin", "threads"};

START_TEST(test_it_runs_on_when_we_are_killed)
{
    struct process process = process_start(subject_path, killed_at[_i], loadable_path);
    round_trip(process.pid); // tables are made
    uint64_t from_us = now_us();
    round_trip(process.pid);
    uint64_t round_us = now_us() - from_us;
    srandom((unsigned)_i + 1);
    for (unsigned i = 0; i < kills; i++) {
        pid_t killed = fork();
        if (killed == 0) {
            struct base_error error;
            struct injection *injection = begin(process.pid, "", &error);
            if (injection)
                inject_remove(injection, &error);
            _exit(0);
        }
        uint64_t until_us = now_us() + (uint64_t)random() % (round_us + 1);
        while (now_us() < until_us)
            ;
        kill(killed, SIGKILL);
        ck_assert_int_eq(waitpid(killed, NULL, 0), killed);
        ck_assert(!is_stopped(process.pid));
        process_goes_on(&process);
    }
    ck_assert_uint_eq(process.state->eintr, 0);
    ck_assert_uint_eq(process.state->wrong, 0);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

// The thread finds its way back alone, from each place.
enum { AT_BEGIN, AT_MAPPED, AT_STARTED, PLACES };
static const char *const alone[] = {"nanosleep", "poll", "sem_timedwait", "read", "recv", "accept", "spin"};

static void leave_at(pid_t pid, unsigned place)
{
    struct base_error error = {0};
    const struct qut_target_options options = {.size = sizeof options,
                                               .cache_directory = cache,
                                               .compile = qutc_compile_for_qut,
                                               .compile_context = &provide,
                                               .one_by_one = true};
    struct inject_program program;
    struct victim victim;
    struct victim_figures figures = {0};
    struct qut_target *target = qut_target_process(pid, &options, NULL);
    if (!target || inject_program_open(&program, pid, target, false, &error) != 0 ||
        inject_victim_find(&program, UINT64_MAX, &victim, &figures, &error) != 0)
        _exit(1);
    struct hijack *hijack = inject_hijack_begin(&program, victim.tid, &error);
    uint64_t block;
    const struct hijack_job job = {.path = loadable_path, .symbol = "qut_agent_inject", .settings = "", .file = -1};
    if (!hijack || (place >= AT_MAPPED && inject_hijack_map(hijack, &block, &error) != 0) ||
        (place >= AT_STARTED && inject_hijack_start(hijack, block, &job, &error) != 0))
        _exit(1);
    raise(SIGKILL);
}

START_TEST(test_thread_finds_its_way_alone)
{
    struct process process = process_start(subject_path, alone[_i / PLACES], loadable_path);
    for (unsigned i = 0; i < 3; i++) {
        pid_t killed = fork();
        int status;
        if (killed == 0)
            leave_at(process.pid, (unsigned)_i % PLACES);
        ck_assert_int_eq(waitpid(killed, &status, 0), killed);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        ck_assert(!is_stopped(process.pid));
        process_goes_on(&process);
    }
    ck_assert_uint_eq(process.state->eintr, 0);
    ck_assert_uint_eq(process.state->wrong, 0);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

// ---- what is refused, and what goes wrong

static void expect_refusal(pid_t pid, const char *why)
{
    struct base_error error;
    char text[256];
    struct injection *injection = begin(pid, "", &error);
    ck_assert(!injection);
    base_error_text(&error, text, sizeof text);
    ck_assert_msg(strstr(text, why), "'%s' is not about '%s'", text, why);
}

START_TEST(test_static_program_is_refused)
{
    struct process process = process_start(static_path, "nanosleep", "");
    expect_refusal(process.pid, "static");
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

START_TEST(test_filtered_program_is_refused)
{
    struct process process = process_start(subject_path, "filtered", "");
    expect_refusal(process.pid, "seccomp");
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

START_TEST(test_no_process_is_refused)
{
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    waitpid(gone, NULL, 0);
    expect_refusal(gone, "no such process");
}
END_TEST

START_TEST(test_stopped_program_is_refused)
{
    struct process process = process_start(subject_path, "nanosleep", "");
    kill(process.pid, SIGSTOP);
    waitpid(process.pid, NULL, WUNTRACED);
    expect_refusal(process.pid, "is stopped");
    kill(process.pid, SIGCONT);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

START_TEST(test_agent_that_says_no_is_taken_out)
{
    struct process process = process_start(subject_path, "nanosleep", "");
    char *maps = process_maps(process.pid), text[256];
    struct base_error error;
    ck_assert(!begin(process.pid, "fail", &error));
    ck_assert_ptr_nonnull(strstr(base_error_text(&error, text, sizeof text), "Resource temporarily unavailable"));
    char *maps_after = process_maps(process.pid);
    ck_assert_str_eq(maps, maps_after);
    free(maps);
    free(maps_after);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

START_TEST(test_file_that_is_no_agent)
{
    struct process process = process_start(subject_path, "nanosleep", "");
    char *maps = process_maps(process.pid), text[256];
    const char *kept = loadable_path;
    struct base_error error;
    loadable_path = "/etc/passwd";
    ck_assert(!begin(process.pid, "", &error));
    loadable_path = kept;
    ck_assert_ptr_nonnull(strstr(base_error_text(&error, text, sizeof text), "cannot be loaded"));
    char *maps_after = process_maps(process.pid);
    ck_assert_str_eq(maps, maps_after);
    free(maps);
    free(maps_after);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

// The file is readable by us only. Done likewise where the process sees other files.
START_TEST(test_bytes_are_handed_over)
{
    struct process process = process_start(subject_path, "nanosleep", "");
    char *maps = process_maps(process.pid), text[256];
    unsigned fds = process_count(process.pid, "fd");
    const char *kept = loadable_path;
    struct base_error error;
    char other[64], command[512];
    snprintf(other, sizeof other, "%s/agent.so", cache);
    snprintf(command, sizeof command, "install -m 600 %s %s", loadable_path, other);
    ck_assert_int_eq(system(command), 0);
    loadable_path = other;
    struct injection *injection = begin(process.pid, "", &error);
    loadable_path = kept;
    ck_assert_msg(injection, "%s", base_error_text(&error, text, sizeof text));
    ck_assert(process_has_name_in_maps(process.pid, "memfd:libqut-agent"));
    ck_assert_int_eq(inject_remove(injection, &error), 0);
    char *maps_after = process_maps(process.pid);
    ck_assert_str_eq(maps, maps_after);
    ck_assert_uint_eq(process_count(process.pid, "fd"), fds);
    free(maps);
    free(maps_after);
    ck_assert_int_eq(process_end(&process), 0);
}
END_TEST

START_TEST(test_process_that_ends_meanwhile)
{
    struct process process = process_start(subject_path, "nanosleep", "");
    struct base_error error;
    struct injection *injection = begin(process.pid, "", &error);
    ck_assert_ptr_nonnull(injection);
    ck_assert_int_eq(process_end(&process), 0);
    ck_assert_int_eq(inject_remove(injection, &error), 0);
}
END_TEST

static void remove_cache(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    if (system(command) != 0)
        fprintf(stderr, "%s is left\n", cache);
}

int main(int argc, char **argv)
{
    if (argc < 4 || !mkdtemp(cache))
        return 2;
    subject_path = argv[1];
    static_path = argv[2];
    loadable_path = realpath(argv[3], NULL);
    if (argc > 4)
        rounds = (unsigned)atoi(argv[4]);
    if (argc > 5)
        kills = (unsigned)atoi(argv[5]);
    provide.cache_directory = cache;
    Suite *suite = suite_create("inject");
    TCase *all = tcase_create("inject");
    tcase_set_timeout(all, CASE_SECONDS);
    tcase_add_loop_test(all, test_of_nothing_is_noticed, 0, sizeof calls / sizeof *calls);
    tcase_add_loop_test(all, test_busy_program_goes_on, 0, sizeof storms / sizeof *storms);
    tcase_add_loop_test(all, test_it_runs_on_when_we_are_killed, 0, sizeof killed_at / sizeof *killed_at);
    tcase_add_loop_test(all, test_thread_finds_its_way_alone, 0, PLACES * (int)(sizeof alone / sizeof *alone));
    tcase_add_test(all, test_static_program_is_refused);
    tcase_add_test(all, test_filtered_program_is_refused);
    tcase_add_test(all, test_no_process_is_refused);
    tcase_add_test(all, test_stopped_program_is_refused);
    tcase_add_test(all, test_agent_that_says_no_is_taken_out);
    tcase_add_test(all, test_file_that_is_no_agent);
    tcase_add_test(all, test_bytes_are_handed_over);
    tcase_add_test(all, test_process_that_ends_meanwhile);
    suite_add_tcase(suite, all);
    int result = run_suite(suite);
    remove_cache();
    return result;
}
