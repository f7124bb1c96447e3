// SPDX-License-Identifier: Apache-2.0
// What programs see is what they see without the agent; and what the agent counts is what they did.
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/sample.h>

#include "tests/support/run_suite.h"
#include "tests/unit/agent/listener.h"

static struct listener_run with, without;
static const char *subject, *counting, *own_allocator;

// The first line that differs, for the reader of the failure.
static void check_same(const struct listener_run *a, const struct listener_run *b)
{
    const char *at = a->output, *other = b->output;
    while (*at || *other) {
        size_t length = strcspn(at, "\n"), other_length = strcspn(other, "\n");
        ck_assert_msg(length == other_length && memcmp(at, other, length) == 0, "with: %.*s, without: %.*s",
                      (int)length, at, (int)other_length, other);
        at += length + (at[length] != 0);
        other += other_length + (other[other_length] != 0);
    }
    ck_assert_int_eq(a->status, b->status);
}

static void run_both(const struct agent_settings *settings, const char *const *arguments)
{
    listener_run(settings, arguments, true, &with);
    listener_run(NULL, arguments, false, &without);
    ck_assert_uint_gt(with.output_bytes, 0);
    check_same(&with, &without);
    ck_assert_uint_eq(with.malformed, 0);
}

static void end_both(void)
{
    listener_free(&with);
    listener_free(&without);
}

static void check_alike_watching(const char *mode, const char *more, size_t least_processes, bool follow, uint32_t sync)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.follow = follow;
    settings.sync = sync;
    settings.signal_number = SIGSTKFLT; // what the subject looks at
    run_both(&settings, (const char *[]){subject, mode, more, NULL});
    ck_assert_uint_ge(with.process_count + with.never_begun, least_processes);
    ck_assert(with.never_begun == 0 || !(sync & AGENT_SYNC_ALLOCATE));
    end_both();
}

static void check_alike(const char *mode, const char *more, size_t least_processes, bool follow)
{
    check_alike_watching(mode, more, least_processes, follow, AGENT_SYNC_ALL);
}

START_TEST(state_is_the_same)
{
    check_alike("state", NULL, 1, true);
    check_alike("state", NULL, 1, false);
}
END_TEST

START_TEST(an_environment_shows_nothing)
{
    check_alike("environment", NULL, 1, false);
}
END_TEST

START_TEST(an_older_preload_is_put_back)
{
    struct agent_settings settings;
    char preload[1000];
    listener_settings(&settings);
    settings.follow = false;
    strcpy(settings.preload, "libm.so.6");
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s:libm.so.6", getenv("QUT_TEST_AGENT"));
    listener_run(&settings,
                 (const char *[]){"sh", "-c", "export \"$1\"; exec \"$0\" environment", subject, preload, NULL}, true,
                 &with);
    ck_assert_ptr_ne(with.output, NULL);
    end_both();
}
END_TEST

START_TEST(our_signal_is_the_programs)
{
    check_alike("signals", NULL, 2, true);
    check_alike("signals", NULL, 1, false);
}
END_TEST

START_TEST(processes_are_the_same)
{
    check_alike("fork", NULL, 38, true);
    check_alike("fork", NULL, 1, false);
}
END_TEST

// With ticks alone, children of fork wait with all else.
START_TEST(children_that_wait_are_the_same)
{
    const uint32_t sync = AGENT_SYNC_LOAD | AGENT_SYNC_THREAD;
    check_alike_watching("fork", NULL, 38, true, sync);
    check_alike_watching("signals", NULL, 1, true, sync); // a signal ends its children
    check_alike_watching("last-thread", NULL, 2, true, sync);
}
END_TEST

// Too short for a tick, and long enough: each is heard of once.
START_TEST(each_child_is_heard_of_once)
{
    static const char *const lengths_ms[] = {"0", "40"};
    for (size_t i = 0; i < 2; i++) {
        struct agent_settings settings;
        listener_settings(&settings);
        settings.sync = AGENT_SYNC_LOAD | AGENT_SYNC_THREAD;
        settings.period_ns = i == 0 ? UINT64_C(10000000000) : 1000000;
        run_both(&settings, (const char *[]){subject, "forks", lengths_ms[i], NULL});
        ck_assert_uint_eq(with.process_count, i == 0 ? 1 : 21);
        ck_assert_uint_eq(with.never_begun, i == 0 ? 20 : 0);
        for (size_t k = 1; k < with.process_count; k++) {
            struct trace trace;
            ck_assert_int_eq(with.processes[k].hello.begin, AGENT_BEGAN_BY_FORK);
            listener_trace(&with, k, &trace);
            ck_assert_uint_gt(trace.sample_count, 0);
            ck_assert_uint_eq(trace.thread_count, 1);
            trace_free(&trace);
        }
        end_both();
    }
}
END_TEST

START_TEST(every_exec_is_the_same)
{
    static const char *const all[] = {"l", "lp", "le", "v", "vp", "vpe", "ve", "f", "at"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_alike("exec", all[i], 1, true);
}
END_TEST

START_TEST(no_tick_outlives_an_exec)
{
    struct agent_settings settings;
    listener_settings(&settings);
    settings.period_ns = 100000;
    settings.signal_number = SIGSTKFLT; // whose events outlive it (SIGTRAP's do not)
    run_both(&settings, (const char *[]){subject, "exec-storm", "60", NULL});
    ck_assert_uint_eq(with.process_count, 61);
    end_both();
}
END_TEST

START_TEST(threads_are_the_same)
{
    check_alike("threads", NULL, 1, true);
}
END_TEST

START_TEST(a_process_ends_with_its_last_thread)
{
    for (int i = 0; i < 5; i++)
        check_alike("last-thread", NULL, 2, true);
    check_alike("last-thread", NULL, 1, false);
}
END_TEST

START_TEST(our_thread_that_comes_late_does_not_end_a_process)
{
    check_alike("last-thread-late", NULL, 3, true);
}
END_TEST

START_TEST(a_namespace_for_single_threads_can_be_entered)
{
    check_alike("unshare", NULL, 1, true);
}
END_TEST

START_TEST(allocations_are_counted_exactly)
{
    struct agent_settings settings;
    listener_settings(&settings);
    listener_run(&settings, (const char *[]){counting, NULL}, true, &with);
    unsigned long long own[4];
    struct trace trace;
    ck_assert_int_eq(sscanf(with.output, "%llu %llu %llu %llu", &own[0], &own[1], &own[2], &own[3]), 4);
    listener_trace(&with, 0, &trace);
    // What libc takes for each new thread is the first thread's, and counted too.
    uint64_t workers[4] = {0};
    for (size_t i = 0; i < trace.thread_count; i++)
        for (int k = 0; k < 4 && trace.threads[i].tid != trace.pid; k++)
            workers[k] += trace.threads[i].totals[k];
    for (int i = 0; i < 4; i++)
        ck_assert_msg(workers[i] == own[i], "%s: %llu, the program counted %llu", trace_total_name((unsigned)i),
                      (unsigned long long)workers[i], own[i]);
    ck_assert_uint_gt(trace.sample_count, 0);
    trace_free(&trace);
    listener_free(&with);
}
END_TEST

START_TEST(an_own_allocator_is_left_alone)
{
    struct agent_settings settings;
    listener_settings(&settings);
    run_both(&settings, (const char *[]){own_allocator, NULL});
    end_both();
}
END_TEST

START_TEST(without_a_recorder_nothing_is_on)
{
    struct agent_settings settings;
    listener_settings(&settings);
    static const char *const modes[] = {"state", "signals", "fork", "threads"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        const char *arguments[] = {subject, modes[i], NULL};
        listener_run(&settings, arguments, false, &with);
        listener_run(NULL, arguments, false, &without);
        check_same(&with, &without);
        end_both();
    }
}
END_TEST

START_TEST(real_programs_run)
{
    static const char *const commands[][4] = {
        {"/usr/bin/python3", "-c",
         "import subprocess, threading, signal, os\n"
         "print(subprocess.run(['echo', 'hi'], capture_output=True))\n"
         "print([subprocess.run(['sh', '-c', 'exit %d' % i]).returncode for i in range(10)])\n"
         "t = [threading.Thread(target=sum, args=(range(10000),)) for i in range(10)]\n"
         "[x.start() for x in t]; [x.join() for x in t]\n"
         "print(signal.getsignal(signal.SIGSTKFLT), sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))\n"
         "print(sorted(os.listdir('/proc/self/fd')))\n"},
        {"bash", "-c", "for i in 1 2 3; do (echo $i | cat; exit $i); echo $?; done; ls /proc/self/fd | wc -l"},
        {"sh", "-c", "x=$(printf 'a%sb' c | tr a-z A-Z); echo $x; kill -STKFLT $$"},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct agent_settings settings;
        listener_settings(&settings);
        run_both(&settings, commands[i]);
        end_both();
    }
}
END_TEST

START_TEST(settings_come_back_as_they_were)
{
    struct agent_settings settings, back;
    char text[AGENT_SETTINGS_BYTES];
    listener_settings(&settings);
    strcpy(settings.socket, "/tmp/a b/socket");
    strcpy(settings.cache, "/var/cache/x=y");
    strcpy(settings.preload, "a.so:b.so");
    settings.trigger = QUT_TRIGGER_WALL;
    settings.signal_number = 27;
    settings.group_count = 2;
    strcpy(settings.groups[0].pattern, "main");
    settings.groups[0].period_ns = 5;
    strcpy(settings.groups[1].pattern, "a:b*");
    settings.groups[1].period_ns = UINT64_MAX;
    size_t length = agent_settings_write(&settings, text, sizeof text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_int_eq(agent_settings_read(&back, text), 0);
    ck_assert_mem_eq(&settings, &back, sizeof back);
    // A key that comes twice: of the first text nothing is left, not even behind the end of the second.
    struct agent_settings twice;
    ck_assert_int_eq(agent_settings_read(&twice, "v=1;t=aaaa;t=b"), 0);
    ck_assert_int_eq(agent_settings_read(&back, "v=1;t=b"), 0);
    ck_assert_mem_eq(&twice, &back, sizeof back);
    // Too small by one, and all that is smaller.
    for (size_t size = 0; size <= length; size++)
        ck_assert_uint_eq(agent_settings_write(&settings, text, size), 0);
    strcpy(settings.cache, "a;b");
    ck_assert_uint_eq(agent_settings_write(&settings, text, sizeof text), 0);
    static const char *const bad[] = {"",
                                      "v=;t=a",
                                      "v=1",
                                      "v=1;",
                                      "v=1;t=",
                                      "v=2;t=",
                                      "t=a",
                                      "v=0x1;t=a",
                                      "v=1;t=a;p=",
                                      "v=1;t=a;p=x",
                                      "v=1;t=a;;",
                                      "v=1;t=a;F=2",
                                      "v=1;t=a;S=65",
                                      "v=1;t=a;g=",
                                      "v=1;t=a;g=a",
                                      "v=1;t=a;p",
                                      "v=1;t=a;g=a:b",
                                      "v=1;t=a;p=18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(agent_settings_read(&back, bad[i]) == -EINVAL, "%s", bad[i]);
    ck_assert_int_eq(agent_settings_read(&back, "v=1;t=a;Z=what;p=18446744073709551615"), 0);
    ck_assert_uint_eq(back.period_ns, UINT64_MAX);
    // Of other versions all is passed over but what says how to reach the recorder.
    static const char *const others[] = {"v=0;t=a;k=@b;p=3", "v=2;t=a;k=@b;p=x;what", "v=4294967295;p=x;k=@b;t=a"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        ck_assert_int_eq(agent_settings_read(&back, others[i]), -EPROTONOSUPPORT);
        ck_assert_str_eq(back.token, "a");
        ck_assert_str_eq(back.socket, "@b");
        ck_assert_uint_eq(back.period_ns, 0);
    }
}
END_TEST

// Each key with a value of its own: neither order nor spelling may change, since agents and recorders of two builds
// meet.
START_TEST(settings_are_this_text)
{
    static const struct agent_settings settings = {.token = "0123456789abcdef0123456789abcdef",
                                                   .socket = "@qut-x",
                                                   .cache = "/c",
                                                   .preload = "p.so",
                                                   .trigger = 1,
                                                   .signal_number = 2,
                                                   .period_ns = 3,
                                                   .sync_interval_ns = 4,
                                                   .fault_period = 5,
                                                   .segment_bytes = 6,
                                                   .blocked_least_ns = UINT64_MAX,
                                                   .sync = 7,
                                                   .metric_mask = UINT32_MAX,
                                                   .group_count = 2,
                                                   .follow = true,
                                                   .groups = {{"main", 8}, {"a:b*", 0}}};
    char text[AGENT_SETTINGS_BYTES];
    agent_settings_write(&settings, text, sizeof text);
    ck_assert_str_eq(text, "v=1;t=0123456789abcdef0123456789abcdef;k=@qut-x;c=/c;P=p.so;T=1;S=2;p=3;i=4;f=5;b=6;"
                           "l=18446744073709551615;s=7;m=4294967295;F=1;N=0;g=main:8;g=a:b*:0");
    struct agent_settings beyond = settings;
    beyond.signal_number = -1;
    ck_assert_uint_eq(agent_settings_write(&beyond, text, sizeof text), 0);
    struct agent_settings seldom = settings, back;
    seldom.call_ring_bytes = 65536; // written only where it is set
    ck_assert_uint_gt(agent_settings_write(&seldom, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, ";N=0;X=65536;g="));
    ck_assert_int_eq(agent_settings_read(&back, text), 0);
    ck_assert_uint_eq(back.call_ring_bytes, 65536);
    ck_assert(!back.traps);
    seldom.traps = true;
    ck_assert_uint_gt(agent_settings_write(&seldom, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, ";N=0;X=65536;B=1;g="));
    ck_assert_int_eq(agent_settings_read(&back, text), 0);
    ck_assert(back.traps);
    struct agent_settings folder = settings;
    strcpy(folder.folder, "/run/qut");
    ck_assert_uint_gt(agent_settings_write(&folder, text, sizeof text), 0);
    ck_assert_ptr_nonnull(strstr(text, ";N=0;d=/run/qut;g="));
    ck_assert_int_eq(agent_settings_read(&back, text), 0);
    ck_assert_str_eq(back.folder, "/run/qut");
}
END_TEST

START_TEST(a_folder_stands_for_what_is_usual)
{
    struct agent_settings settings, same;
    ck_assert_int_eq(agent_settings_read(&settings, "/run/qut"), 0);
    ck_assert_str_eq(settings.folder, "/run/qut");
    ck_assert_str_eq(settings.cache, AGENT_FOLDER_CACHE);
    ck_assert_uint_eq(settings.period_ns, 52631578);
    ck_assert_uint_eq(settings.segment_bytes, 2 << 20);
    ck_assert(settings.follow && settings.keep_newest && settings.token[0] == '\0' && settings.sync == 0);
    char text[AGENT_SETTINGS_BYTES];
    ck_assert_uint_gt(agent_settings_write(&settings, text, sizeof text), 0);
    ck_assert_int_eq(agent_settings_read(&same, text), 0);
    ck_assert_mem_eq(&settings, &same, sizeof same);
    ck_assert_int_eq(agent_settings_read(&settings, "/run/qut;p=1000000;b=1048576;F=0;c="), 0);
    ck_assert_uint_eq(settings.period_ns, 1000000);
    ck_assert_uint_eq(settings.segment_bytes, 1 << 20);
    ck_assert(!settings.follow && settings.cache[0] == '\0');
    ck_assert_int_eq(agent_settings_read(&settings, "/run/qut;p="), -EINVAL);
    ck_assert_int_eq(agent_settings_read(&settings, "run/qut"), -EINVAL);
    char longest[AGENT_PATH_BYTES + 1];
    memset(longest, '/', AGENT_PATH_BYTES);
    longest[AGENT_PATH_BYTES] = '\0';
    ck_assert_int_eq(agent_settings_read(&settings, longest), -EINVAL);
    longest[AGENT_PATH_BYTES - 1] = '\0';
    ck_assert_int_eq(agent_settings_read(&settings, longest), 0);
}
END_TEST

int main(int argument_count, char **arguments)
{
    if (argument_count != 5)
        return 2;
    setenv("QUT_TEST_AGENT", arguments[1], 1);
    subject = arguments[2];
    counting = arguments[3];
    own_allocator = arguments[4];
    Suite *suite = suite_create("agent");
    TCase *cases = tcase_create("same");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, settings_come_back_as_they_were);
    tcase_add_test(cases, settings_are_this_text);
    tcase_add_test(cases, a_folder_stands_for_what_is_usual);
    tcase_add_test(cases, state_is_the_same);
    tcase_add_test(cases, an_environment_shows_nothing);
    tcase_add_test(cases, an_older_preload_is_put_back);
    tcase_add_test(cases, our_signal_is_the_programs);
    tcase_add_test(cases, processes_are_the_same);
    tcase_add_test(cases, every_exec_is_the_same);
    tcase_add_test(cases, no_tick_outlives_an_exec);
    tcase_add_test(cases, threads_are_the_same);
    tcase_add_test(cases, a_process_ends_with_its_last_thread);
    tcase_add_test(cases, our_thread_that_comes_late_does_not_end_a_process);
    tcase_add_test(cases, a_namespace_for_single_threads_can_be_entered);
    tcase_add_test(cases, allocations_are_counted_exactly);
    tcase_add_test(cases, an_own_allocator_is_left_alone);
    tcase_add_test(cases, without_a_recorder_nothing_is_on);
    tcase_add_test(cases, real_programs_run);
    suite_add_tcase(suite, cases);
    TCase *waiting = tcase_create("waiting"); // CK_RUN_CASE=waiting: these alone
    tcase_set_timeout(waiting, 60);
    tcase_add_test(waiting, children_that_wait_are_the_same);
    tcase_add_test(waiting, each_child_is_heard_of_once);
    suite_add_tcase(suite, waiting);
    return run_suite(suite);
}
