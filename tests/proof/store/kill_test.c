// SPDX-License-Identifier: Apache-2.0
// Processes that are killed (SIGKILL) while four of their threads append, and handlers in them: every append that had
// returned is in the segment or was overwritten, what is there is what was stored, and the balance is exact.
//
// Usage: kill_test [PROCESSES]
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/proof/store/shadow.h"
#include "tests/proof/store/ticks.h"
#include "tests/support/tap.h"

enum { THREADS = 4 };

static uint32_t process_count = 50;
static struct shadow *shadow;
static struct segment segment;
static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)random_state * bound >> 32);
}

// ---- child

static _Thread_local struct shadow_thread *volatile mine;
static _Thread_local struct qut_trace_thread *slot;

static void append(void)
{
    if (mine)
        shadow_append(shadow, mine, &segment, slot, 0, 0);
}

static void *appender(void *argument)
{
    struct shadow_thread *of = argument;
    slot = segment_thread_begin(&segment, (uint32_t)(of - shadow->threads) + 1, "killed", segment.header->start_ns);
    of->uid = slot->uid;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    mine = of;
    struct ticks ticks;
    ticks_start(&ticks, 53000 + (uint64_t)(of - shadow->threads) * 1000, 37000);
    // What was lost is listed one by one, and the list has an end.
    while (of->writers[0].lost + of->writers[1].lost + of->writers[2].lost < SHADOW_DOUBTS / 2)
        append();
    mine = NULL;
    for (;;)
        pause();
    return NULL;
}

static _Noreturn void child(void)
{
    ticks_handle(append);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, appender, &shadow->threads[i]) != 0)
            _exit(1);
    for (;;)
        pause();
}

// ---- parent

struct sums {
    uint64_t hits, kept, overwritten, lost, under_way, nested, begun_chunks;
    uint32_t silent; // processes that were killed before their first append
};

static bool one_process(uint32_t number, const struct shadow_plan *plan, uint32_t mode, struct sums *sums)
{
    struct segment_options options = {.segment_bytes = 1 << 20,
                                      .mode = mode,
                                      .flags = QUT_TRACE_HAS_CPU_TIME,
                                      .metric_mask = plan->has_metrics ? 1 << QUT_TRACE_METRIC_ALLOCATED_BYTES : 0,
                                      .thread_count = 8,
                                      .node_bits = 10,
                                      .merge_gap_ns = 20000000,
                                      .pid = (uint32_t)getpid(),
                                      .arch = 1,
                                      .word_bytes = sizeof(void *),
                                      .command = "kill_test"};
    int created = segment_create(&segment, &options);
    if (!CHECK(created == 0, "%d", created) || !CHECK(shadow_begin(shadow, &segment, plan), "nodes"))
        return false;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child();
    struct timespec pause = {.tv_nsec = (long)random_below(12000000)};
    // Every other one at any time, the rest when it has begun, which takes long in an emulator.
    for (int i = 0; number % 2 && i < 2000 && shadow->threads[0].hits == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    nanosleep(&pause, NULL);
    int status;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "process %u ended with %#x", number, status);

    struct decoder decoder;
    struct decoded_totals totals;
    bool is_fine = CHECK(decoder_open(&decoder, segment.header, (size_t)segment.segment_bytes), "%s", decoder.fault) &&
                   CHECK(shadow_check(shadow, &decoder, &totals), "process %u: %s (%u faults)", number, decoder.fault,
                         decoder.fault_count);
    if (is_fine) {
        sums->hits += totals.sum.hits;
        sums->kept += totals.in_chunks + totals.in_runs;
        sums->overwritten += totals.overwritten;
        sums->lost += totals.sum.lost;
        sums->under_way += totals.sum.under_way;
        sums->begun_chunks += totals.begun_chunks;
        sums->silent += totals.sum.hits == 0;
        for (int i = 0; i < THREADS; i++)
            sums->nested += shadow->threads[i].writers[1].done + shadow->threads[i].writers[2].done;
    }
    segment_unmap(&segment);
    return is_fine;
}

static void kill_them(uint32_t mode)
{
    static const struct shadow_plan plans[] = {
        {.run_length = 50, .has_metrics = true},
        {.run_length = 1},
        {.run_length = 3, .mark_every = 5, .extra_every = 4, .has_metrics = true},
    };
    struct sums sums = {0};
    uint32_t i = 0;
    for (; i < process_count / 2; i++)
        if (!one_process(i, &plans[i % 3], mode, &sums))
            break;
    printf("# %u processes, %llu hits, of which in signals in appends %llu; there %llu, overwritten %llu, lost %llu, "
           "under way %llu, chunks just taken %llu; killed before the first %u\n",
           i, (unsigned long long)sums.hits, (unsigned long long)sums.nested, (unsigned long long)sums.kept,
           (unsigned long long)sums.overwritten, (unsigned long long)sums.lost, (unsigned long long)sums.under_way,
           (unsigned long long)sums.begun_chunks, sums.silent);
    CHECK(sums.hits > 0, "nothing was appended");
}

TEST(killed_while_it_keeps_the_newest)
{
    kill_them(QUT_TRACE_OVERWRITE);
}

TEST(killed_while_it_keeps_all)
{
    kill_them(QUT_TRACE_STREAM);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        process_count = (uint32_t)atoi(argv[1]);
    shadow = shadow_create();
    if (!shadow)
        return 1;
    RUN(killed_while_it_keeps_the_newest);
    RUN(killed_while_it_keeps_all);
    return tap_finish();
}
