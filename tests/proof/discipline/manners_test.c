// SPDX-License-Identifier: Apache-2.0
// A walk's manners: what it calls, which system calls it makes, what it leaves alone, how much stack it takes.
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <qut/trace.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"

static size_t handler_count;
static struct qut_end handler_end;
static bool handler_kept;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    static uintptr_t pcs[64];
    handler_count = discipline_walk_every_way(context, pcs, 64, &handler_end, &handler_kept);
}

TEST(walks_call_nothing_of_libc_that_locks_or_allocates)
{
    uintptr_t pcs[64];
    struct qut_end end;
    bool kept;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    if (!discipline_watching_works())
        SKIP("functions of libc cannot be replaced in this build");
    uint64_t before = discipline_watched_calls();
    void *volatile block = malloc(1); // or the compiler leaves both out
    free(block);
    CHECK(discipline_watched_calls() >= before + 2, "the watch does not see malloc");
    for (unsigned registered = 0; registered < 2; registered++) {
        if (registered)
            qut_thread_register();
        else
            qut_thread_unregister();
        size_t count = discipline_walk_every_way(NULL, pcs, 64, &end, &kept);
        CHECK(count >= 1 && kept, "%zu frames, errno %s", count, kept ? "kept" : "changed");
        raise(SIGUSR1);
        CHECK(handler_count >= 1 && handler_kept, "%zu frames, errno %s", handler_count,
              handler_kept ? "kept" : "changed");
    }
}

static int handler_lost;

static void store_on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    handler_lost = discipline_store(context, &handler_kept);
}

TEST(hits_call_nothing_of_libc_that_locks_or_allocates)
{
    bool kept;
    struct sigaction action = {.sa_sigaction = store_on_signal, .sa_flags = SA_SIGINFO}, walks;
    struct qut_trace_options options = {.size = sizeof options, .segment_bytes = 4 << 20};
    sigaction(SIGUSR1, &action, &walks);
    for (unsigned registered = 0; registered < 2; registered++) {
        int result = qut_trace_open(&options);
        CHECK(result == 0, "%d", result);
        if (!registered)
            qut_thread_unregister();
        // The first hit takes a slot, the others find it.
        for (int i = 0; i < 3; i++) {
            int lost = discipline_store(NULL, &kept);
            CHECK(lost == 0 && kept, "%d lost, errno %s", lost, kept ? "kept" : "changed");
            raise(SIGUSR1);
            CHECK(handler_lost == 0 && handler_kept, "%d lost, errno %s", handler_lost,
                  handler_kept ? "kept" : "changed");
        }
        qut_trace_close();
        qut_thread_register();
    }
    sigaction(SIGUSR1, &walks, NULL);
}

TEST(walks_reach_the_outermost_frame)
{
    if (!discipline_has_compiler())
        SKIP("no QUT_TEST_QUTC: no tables, walks end at the first frame");
    uintptr_t pcs[64];
    struct qut_end end;
    bool kept;
    size_t count = discipline_walk_every_way(NULL, pcs, 64, &end, &kept);
    CHECK(end.reason == QUT_END_OUTERMOST && count >= 4, "%zu frames, %s", count, qut_end_reason_name(end.reason));
    raise(SIGUSR1);
    CHECK(handler_end.reason == QUT_END_OUTERMOST && handler_count >= 5, "%zu frames, %s", handler_count,
          qut_end_reason_name(handler_end.reason));
}

int main(void)
{
    if (!discipline_start())
        return 1;
    RUN(walks_call_nothing_of_libc_that_locks_or_allocates);
    RUN(hits_call_nothing_of_libc_that_locks_or_allocates);
    RUN(walks_reach_the_outermost_frame);
    return tap_finish();
}
