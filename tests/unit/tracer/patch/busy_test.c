// SPDX-License-Identifier: Apache-2.0
// A stop on a processor that others want as well: busy_test SUBJECT.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/tracer/patch/session.h"

static const char *subject_path;
enum { OTHERS = 15, STOPS_MAX = 40, ENOUGH_STOPPED_NS = 60000000, NAPS_A_STOP = 150, NAP_LEAST_US = 500 };

static const uint8_t work_ends[] = {1, 3, 6};

static pid_t be_busy(void)
{
    pid_t pid = fork();
    ck_assert(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            __asm__ volatile("pause");
    }
    return pid;
}

static long own_naps(void)
{
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_nvcsw;
}

// All of one processor: whoever waits for threads to stop, and looks too often whether they did, is in their way.
START_TEST(test_who_waits_for_a_stop_leaves_the_processor)
{
    pid_t others[OTHERS];
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    struct session session = session_begin(subject_path, "work", "4");
    struct patch_site site = session_site(&session, session.state->work, work_ends, sizeof work_ends);
    struct patch_figures figures;
    for (unsigned i = 0; i < OTHERS; i++)
        others[i] = be_busy();
    uint64_t stopped_ns = 0;
    unsigned stops = 0;
    long naps = 0;
    while (stopped_ns < ENOUGH_STOPPED_NS && stops < STOPS_MAX) {
        const long before = own_naps();
        session_put_in(&session, &site, 1, &figures);
        naps += own_naps() - before;
        stopped_ns += figures.stopped_ns * figures.attempts;
        stops += figures.attempts;
        session_take_out(&session, &figures);
    }
    for (unsigned i = 0; i < OTHERS; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    printf("# %u stops, %llu ms: slept %ld times\n", stops, (unsigned long long)stopped_ns / 1000000, naps);
    ck_assert_int_le(naps, (long)(stops * NAPS_A_STOP + stopped_ns / 1000 / NAP_LEAST_US));
    session_end(&session);
}
END_TEST

int main(int argc, char **argv)
{
    enum { CASE_SECONDS = 100 };
    if (argc != 2)
        return 2;
    subject_path = argv[1];
    Suite *suite = suite_create("busy");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, CASE_SECONDS);
    tcase_add_test(cases, test_who_waits_for_a_stop_leaves_the_processor);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
