// SPDX-License-Identifier: Apache-2.0
// storm SECONDS [LIBRARY_FOLDER]: see storm.h. The summary is one line; below it, where walks ended that should not
// have. Exits 1 if a walk was wrong, ended without an explanation, changed errno, or was not counted.
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/local.h>

#include "libqut/runtime/tiers.h"
#include "qutc/include/qutc/provide.h"
#include "tests/proof/storm/storm.h"

enum { STUCK_SECONDS = 60 };

_Atomic bool storm_over;
const char *storm_library_folder = ".";
static struct storm_thread threads[STORM_THREADS];

STORM_ROOT static void *thread_root(void *argument)
{
    struct storm_thread *self = argument;
    unsigned index = (unsigned)(self - threads);
    qut_thread_register();
    if (storm_thread_begin(self) != 0) {
        perror("storm: timers");
        abort();
    }
    for (unsigned round = 0; !atomic_load_explicit(&storm_over, memory_order_relaxed); round++) {
        unsigned activity = (round + index * 2) % storm_activity_count;
        atomic_store_explicit(&self->activity, activity, memory_order_relaxed);
        storm_activities[activity].run(round / storm_activity_count + index);
        atomic_fetch_add_explicit(&self->progress, 1, memory_order_relaxed);
    }
    storm_thread_end(self);
    atomic_store_explicit(&self->ended, true, memory_order_release);
    return NULL;
}

static bool all_ended(void)
{
    for (unsigned i = 0; i < STORM_THREADS; i++)
        if (!atomic_load_explicit(&threads[i].ended, memory_order_acquire))
            return false;
    return true;
}

// Which shortcuts all threads may take, another choice every few milliseconds; all of them half of the time.
static void switch_tiers_for_a_tenth(void)
{
    enum { SWITCHES = 20 };
    static uint32_t state = 2463534242u;
    for (unsigned i = 0; i < SWITCHES; i++) {
        struct timespec pause = {.tv_nsec = 100000000 / SWITCHES};
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        atomic_store_explicit(&runtime_tiers, state & 16 ? RUNTIME_TIERS_ALL : state % (RUNTIME_TIERS_ALL + 1),
                              memory_order_relaxed);
        nanosleep(&pause, NULL);
    }
}

// Until all threads ended, which they shall after some seconds; a thread that gets nothing done for long is stuck.
static void watch(unsigned seconds)
{
    uint64_t seen[STORM_THREADS] = {0};
    unsigned still[STORM_THREADS] = {0};
    for (unsigned tenth = 0; !all_ended(); tenth++) {
        switch_tiers_for_a_tenth();
        if (tenth >= seconds * 10)
            atomic_store_explicit(&storm_over, true, memory_order_relaxed);
        for (unsigned i = 0; i < STORM_THREADS; i++) {
            uint64_t progress = atomic_load_explicit(&threads[i].progress, memory_order_relaxed);
            bool ended = atomic_load_explicit(&threads[i].ended, memory_order_acquire);
            still[i] = progress == seen[i] && !ended ? still[i] + 1 : 0;
            seen[i] = progress;
            if (still[i] < STUCK_SECONDS * 10)
                continue;
            fprintf(stderr, "storm: thread %u is stuck in %s\n", i, storm_activities[threads[i].activity].name);
            abort();
        }
    }
}

static int report(double seconds, const struct qut_stats *stats)
{
    storm_explain();
    uint64_t walks = storm_get(STORM_WALKS), handled = storm_get(STORM_IN_HANDLER);
    uint64_t counted = 0;
    for (int which = STORM_OUTERMOST; which <= STORM_WRONG; which++)
        counted += storm_get((enum storm_count)which);
    uint64_t bad = atomic_load_explicit(&storm_children_bad, memory_order_relaxed);
    printf(
        "storm: %.0f s, %" PRIu64 " walks (%" PRIu64 " in handlers, %.0f a second; %" PRIu64 " of these in handlers "
        "of handlers), %.1f frames each; outermost %" PRIu64 ", table pending %" PRIu64 ", end of a coroutine %" PRIu64
        ", in libgcc's change of frames %" PRIu64 ", in libc functions whose unwind information is wrong %" PRIu64
        ", in C runtime code %" PRIu64 ", unexplained %" PRIu64 ", wrong %" PRIu64 ", lost %" PRIu64
        ", errno changed %" PRIu64 "; walked again without shortcuts %" PRIu64 ", of these another way %" PRIu64
        "; frames remembered %" PRIu64 "; in libraries that came and went %" PRIu64 ", in coroutines %" PRIu64
        "; %" PRIu64 " dlopens (%" PRIu64 " in another's place), %" PRIu64 " forks (%" PRIu64 " bad), %" PRIu64
        " threads; handler %.1f us on average, %.1f ms at most; tables %" PRIu64
        ", the last walkable after %.1f ms, the slowest after %.1f ms\n",
        seconds, walks, handled, (double)handled / seconds, storm_get(STORM_NESTED),
        walks ? (double)storm_get(STORM_FRAMES) / (double)walks : 0, storm_get(STORM_OUTERMOST),
        storm_get(STORM_PENDING), storm_get(STORM_START_CONTEXT), storm_get(STORM_EH_RETURN), storm_get(STORM_BAD_CFI),
        storm_get(STORM_CRT), storm_get(STORM_UNEXPLAINED), storm_get(STORM_WRONG), walks - counted,
        storm_get(STORM_ERRNO), storm_get(STORM_TWICE), storm_get(STORM_DIFFERENT), storm_get(STORM_REMEMBERED),
        storm_get(STORM_LIBRARY_HITS), storm_get(STORM_COROUTINE_HITS), storm_loads, storm_replaced, storm_forks, bad,
        storm_threads_made, handled ? (double)storm_get(STORM_HANDLER_NS) / (double)handled * 1e-3 : 0,
        (double)storm_handler_ns_most() * 1e-6, stats->tables_compiled, (double)stats->walkable_last_ns * 1e-6,
        (double)stats->walkable_most_ns * 1e-6);
    storm_print_ends(stdout);
    storm_print_wrong(stdout);
    bool good = handled > 0 && walks == counted && storm_get(STORM_UNEXPLAINED) == 0 && storm_get(STORM_WRONG) == 0 &&
                storm_get(STORM_ERRNO) == 0 && bad == 0 && storm_get(STORM_TWICE) > 0 &&
                storm_get(STORM_DIFFERENT) == 0 && storm_get(STORM_REMEMBERED) > 0;
    printf("%d passed, %d failed, 0 skipped\n", good, !good);
    return good ? 0 : 1;
}

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 5;
    if (argc > 2)
        storm_library_folder = argv[2];
    alarm(seconds + 120); // the watchdog's watchdog
    struct qut_options options = {.size = sizeof options, .compile = qutc_compile_for_qut};
    int started = qut_start(&options);
    if (started != 0 || qut_wait(60000) != 0 || !storm_handlers()) {
        fprintf(stderr, "storm: cannot start (%d)\n", started);
        return 1;
    }
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    pthread_t ids[STORM_THREADS];
    for (unsigned i = 0; i < STORM_THREADS; i++)
        if (pthread_create(&ids[i], NULL, thread_root, &threads[i]) != 0)
            return 1;
    watch(seconds);
    for (unsigned i = 0; i < STORM_THREADS; i++)
        pthread_join(ids[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    struct qut_stats stats;
    qut_get_stats(&stats, sizeof stats);
    qut_stop();
    return report((double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9, &stats);
}
