// SPDX-License-Identifier: Apache-2.0
// Sync points: exact sums whatever is throttled, by however many threads and handlers; samples at the interval asked
// for; scopes whose beginning and end are told.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "libqut/sample/cycle_clock.h"
#include "libqut/sample/inside.h"
#include "tests/unit/libqut/sample/subject.h"

enum { MS = 1000000, THREADS = 3, HITS = 100000 };
typedef unsigned long long ull;

static int begin(uint64_t interval_ns)
{
    struct qut_sampling_options options = {
        .size = sizeof options, .trigger = QUT_TRIGGER_NONE, .sync_interval_ns = interval_ns};
    return qut_sampling_start(&options);
}

static struct qut_trace_counters_now hits_now(void)
{
    struct qut_trace_counters_now hits;
    qut_trace_get_counts(&hits, sizeof hits);
    return hits;
}

static void hit(uint32_t total, uint64_t amount)
{
    struct qut_event event = {.kind = QUT_SAMPLE_ALLOCATE};
    if (qut_sync_hit(total, amount))
        qut_sync_take(&event);
}

// ---- sums

enum { CALM_HITS = 16 };
static _Atomic int is_over, done_count;
static _Atomic uint64_t handler_hits;

struct hitting {
    pthread_t thread;
    uint64_t sum;
    _Atomic uint64_t count;
};

static void on_alarm(int number)
{
    (void)number;
    hit(QUT_TOTAL_ALLOCATIONS, 5);
    qut_trace_add(QUT_TOTAL_ALLOCATED_BYTES, 7);
    atomic_fetch_add_explicit(&handler_hits, 1, memory_order_relaxed);
}

// Until there were enough of both.
static void *hit_much(void *argument)
{
    enum { HANDLERS = 100 };
    struct hitting *own = argument;
    qut_sampling_thread_begin();
    for (uint64_t count = 0; count < HITS || atomic_load_explicit(&handler_hits, memory_order_relaxed) < HANDLERS;) {
        hit(QUT_TOTAL_ALLOCATIONS, count);
        own->sum += count++;
        atomic_store_explicit(&own->count, count, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&done_count, 1, memory_order_acq_rel);
    return NULL;
}

// Two signals in a row, so that handlers nest; the next two after some hits outside of them, or a processor that needs
// longer for a handler than a moment would do nothing else.
static void *interrupt(void *argument)
{
    struct hitting *all = argument;
    uint64_t due_count[THREADS] = {0}, sent[THREADS] = {0};
    struct timespec moment = {0, 50000};
    while (!atomic_load_explicit(&is_over, memory_order_acquire)) {
        for (int i = 0; i < THREADS; i++) {
            uint64_t count = atomic_load_explicit(&all[i].count, memory_order_relaxed);
            if (count < due_count[i])
                continue;
            pthread_kill(all[i].thread, SIGUSR1);
            if (++sent[i] % 2 == 0)
                due_count[i] = count + CALM_HITS;
        }
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    }
    return NULL;
}

static void sums_with(uint64_t interval_ns)
{
    pthread_t interrupter;
    struct hitting threads[THREADS] = {0};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER}; // it nests
    sigaction(SIGUSR1, &action, NULL);
    uint64_t wanted = 0, bytes = 0;
    is_over = done_count = 0;
    handler_hits = 0;
    subject_open(0, 0);
    CHECK(begin(interval_ns) == 0, "cannot start");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i].thread, NULL, hit_much, &threads[i]);
    pthread_create(&interrupter, NULL, interrupt, threads);
    // What has ended but was not joined may be sent signals.
    while (atomic_load_explicit(&done_count, memory_order_acquire) < THREADS)
        usleep(1000);
    atomic_store_explicit(&is_over, 1, memory_order_release);
    pthread_join(interrupter, NULL);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        wanted += threads[i].count;
        bytes += threads[i].sum;
    }
    struct qut_trace_counters_now hits = hits_now();
    wanted += handler_hits;
    bytes += 12 * handler_hits;
    CHECK(hits.totals[QUT_TOTAL_ALLOCATIONS] == wanted, "%llu of %llu", (ull)hits.totals[QUT_TOTAL_ALLOCATIONS],
          (ull)wanted);
    CHECK(hits.hits == wanted, "%llu hits of %llu", (ull)hits.hits, (ull)wanted);
    CHECK(hits.totals[QUT_TOTAL_ALLOCATED_BYTES] == bytes, "%llu of %llu bytes",
          (ull)hits.totals[QUT_TOTAL_ALLOCATED_BYTES], (ull)bytes);
    subject_check_balance("sums");
    subject_close();
}

TEST(sums_are_exact_when_throttled)
{
    sums_with(10 * MS);
}

TEST(sums_are_exact_when_all_are_taken)
{
    sums_with(1);
}

// ---- throttle

TEST(samples_come_at_the_interval)
{
    subject_open(0, 0);
    CHECK(begin(50 * MS) == 0, "cannot start");
    uint64_t begin_ms = subject_now_ms(), taken = 0, count = 0, passed_ms;
    do {
        struct qut_event event = {.kind = QUT_SAMPLE_ALLOCATE};
        count++;
        if (qut_sync_hit(QUT_TOTAL_OWN_FIRST, 3)) {
            taken++;
            qut_sync_take(&event);
        }
        passed_ms = subject_now_ms() - begin_ms;
    } while (passed_ms < 400);
    struct qut_trace_counters_now hits = hits_now();
    // The first at once, then one for each interval; the clock's step is 10 ms at most.
    CHECK(taken >= 2 && taken <= 1 + passed_ms / 50, "%llu in %llu ms", (ull)taken, (ull)passed_ms);
    CHECK(hits.throttled == count - taken && hits.stored + hits.merged == taken, "%llu of %llu throttled",
          (ull)hits.throttled, (ull)count);
    CHECK(hits.totals[QUT_TOTAL_OWN_FIRST] == count && hits.totals[QUT_TOTAL_OWN_FIRST + 1] == 3 * count, "%llu",
          (ull)hits.totals[QUT_TOTAL_OWN_FIRST]);
    qut_sampling_stop();
    CHECK(!qut_sync_hit(QUT_TOTAL_OWN_FIRST, 3), "due after the stop");
    CHECK(hits_now().throttled == count - taken + 1, "%llu", (ull)hits_now().throttled);
    subject_close();
    CHECK(!qut_sync_hit(QUT_TOTAL_NONE, 0), "due without a trace");
}

// The clock is not looked at for each of many hits; a tick, and a scope that may take long, make the next one look.
TEST(many_hits_share_a_look_at_the_clock)
{
    enum { HITS_MAX = 50000000 };
    struct qut_scope scope = {.kind = QUT_SAMPLE_SLEEP};
    uint64_t count = 0;
    subject_open(0, 0);
    CHECK(begin(1000 * MS) == 0, "cannot start");
    while (os_thread_word(OS_WORD_SYNC_LEFT) < 8 && count < HITS_MAX) {
        qut_sync_hit(QUT_TOTAL_OWN_FIRST, 1);
        count++;
    }
    uintptr_t left = os_thread_word(OS_WORD_SYNC_LEFT);
    CHECK(left >= 8, "%llu hits, each with a look of its own", (ull)count);
    qut_sync_hit(QUT_TOTAL_OWN_FIRST, 1);
    CHECK(os_thread_word(OS_WORD_SYNC_LEFT) == left - 1, "%llu", (ull)os_thread_word(OS_WORD_SYNC_LEFT));
    qut_scope_begin(&scope);
    CHECK(os_thread_word(OS_WORD_SYNC_LEFT) == 0, "%llu behind a scope", (ull)os_thread_word(OS_WORD_SYNC_LEFT));
    qut_scope_end(&scope, QUT_TOTAL_NONE, UINT64_MAX, NULL, 0);
    os_set_thread_word(OS_WORD_SYNC_LEFT, 50);
    os_set_thread_word(OS_WORD_SYNC_LAST, os_thread_word(OS_WORD_SYNC_LAST) - UINTPTR_MAX / 2); // long ago
    sample_sync_tick();
    CHECK(os_thread_word(OS_WORD_SYNC_LEFT) == 0 && qut_sync_hit(QUT_TOTAL_NONE, 0), "not due behind a tick");
    qut_trace_skip();
    CHECK(hits_now().totals[QUT_TOTAL_OWN_FIRST] == count + 1, "%llu of %llu",
          (ull)hits_now().totals[QUT_TOTAL_OWN_FIRST], (ull)count + 1);
    subject_check_balance("looks");
    subject_close();
}

TEST(ticks_make_hits_due)
{
    if (!subject_has(QUT_TRIGGER_CPU_TIMER))
        return;
    struct qut_sampling_options options = {
        .size = sizeof options, .trigger = QUT_TRIGGER_CPU_TIMER, .period_ns = 10 * MS, .sync_interval_ns = 20 * MS};
    subject_open(0, 0);
    CHECK(qut_sampling_start(&options) == 0, "cannot start");
    uint64_t taken = 0;
    for (int i = 0; i < 10; i++) {
        subject_spin_ms(30); // where words have 32 bits, an interval is up to 66 us longer
        taken += qut_sync_hit(QUT_TOTAL_NONE, 0);
    }
    CHECK(taken >= 8, "%llu of 10", (ull)taken);
    subject_close();
}

// ---- scopes

TEST(scopes_sum_up_and_tell_their_ends)
{
    struct timespec rest = {0, 20 * MS};
    subject_open(0, 0);
    CHECK(begin(60000u * (uint64_t)MS) == 0, "cannot start");
    CHECK(qut_sync_hit(QUT_TOTAL_NONE, 0), "the first hit is due");
    qut_trace_skip();
    struct qut_trace_counters_now before = hits_now();
    uint64_t sum = 0;
    for (int i = 0; i < 100; i++) {
        struct qut_scope scope = {.kind = QUT_SAMPLE_LOCK};
        qut_scope_begin(&scope);
        sum += qut_scope_end(&scope, QUT_TOTAL_LOCK_WAITS, UINT64_MAX, NULL, 0);
    }
    struct qut_trace_counters_now now = hits_now();
    CHECK(now.throttled == before.throttled + 100, "%llu throttled", (ull)(now.throttled - before.throttled));
    CHECK(now.totals[QUT_TOTAL_LOCK_WAITS] == 100 && now.totals[QUT_TOTAL_LOCK_WAIT_NS] == sum, "%llu ns of %llu",
          (ull)now.totals[QUT_TOTAL_LOCK_WAIT_NS], (ull)sum);
    // Long enough: only its end is a sample.
    struct qut_scope scope = {.kind = QUT_SAMPLE_SLEEP};
    struct qut_extra extra = {.key = QUT_EXTRA_RESULT, .value = (uint64_t)-1};
    qut_scope_begin(&scope);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    uint64_t duration_ns = qut_scope_end(&scope, QUT_TOTAL_BLOCKED_CALLS, 10 * MS, &extra, 1);
    CHECK(duration_ns >= 20 * MS, "%llu", (ull)duration_ns);
    CHECK(hits_now().stored == now.stored + 1, "%llu", (ull)(hits_now().stored - now.stored));
    CHECK(hits_now().totals[QUT_TOTAL_BLOCKED_NS] == duration_ns, "%llu", (ull)hits_now().totals[QUT_TOTAL_BLOCKED_NS]);
    qut_sampling_stop();
    // All are due: both ends are samples.
    CHECK(begin(1) == 0, "cannot start");
    now = hits_now();
    for (int i = 0; i < 10; i++) {
        scope = (struct qut_scope){.kind = QUT_SAMPLE_READ};
        qut_scope_begin(&scope);
        CHECK(scope.begin_node != 0, "no node");
        qut_scope_end(&scope, QUT_TOTAL_NONE, UINT64_MAX, NULL, 0);
    }
    CHECK(hits_now().stored == now.stored + 20 && hits_now().merged == now.merged, "%llu stored, %llu merged",
          (ull)(hits_now().stored - now.stored), (ull)(hits_now().merged - now.merged));
    // Points do not merge, however close.
    now = hits_now();
    for (int i = 0; i < 5; i++) {
        struct qut_event event = {.kind = QUT_SAMPLE_READ, .flags = QUT_EVENT_BEGINS};
        qut_trace_sample(NULL, &event);
    }
    CHECK(hits_now().stored == now.stored + 5, "%llu", (ull)(hits_now().stored - now.stored));
    subject_check_balance("scopes");
    subject_close();
    scope = (struct qut_scope){.kind = QUT_SAMPLE_READ};
    qut_scope_begin(&scope);
    CHECK(scope.begin_ns == 0 && qut_scope_end(&scope, QUT_TOTAL_NONE, 0, NULL, 0) == 0, "without a trace");
}

// By how many the counter grows at a time (an emulator's: by a microsecond).
static uint64_t step;

static void find_step(void)
{
    step = ARCH_NATIVE_HAS_COUNTER ? UINT64_MAX : 0;
    for (int i = 0; ARCH_NATIVE_HAS_COUNTER && i < 1000; i++) {
        uint64_t before = arch_native_counter(), now;
        while ((now = arch_native_counter()) == before)
            ;
        step = now - before < step ? now - before : step;
    }
}

// Between two exact readings inside of it, and two outside.
static void check_duration(uint64_t least_ns, uint64_t duration_ns, uint64_t most_ns)
{
    uint64_t slack_ns = 101 + most_ns / 1000 + (step * sample_counter_ratio >> SAMPLE_COUNTER_SHIFT);
    CHECK(duration_ns + slack_ns >= least_ns && duration_ns <= most_ns + slack_ns, "%llu ns of %llu to %llu",
          (ull)duration_ns, (ull)least_ns, (ull)most_ns);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void scope_of(uint64_t length_ns)
{
    struct qut_scope scope = {.kind = QUT_SAMPLE_LOCK};
    uint64_t before_ns = now_ns();
    qut_scope_begin(&scope);
    uint64_t begin_ns = now_ns(), end_ns;
    while ((end_ns = now_ns()) - begin_ns < length_ns)
        ;
    uint64_t duration_ns = qut_scope_end(&scope, QUT_TOTAL_LOCK_WAITS, UINT64_MAX, NULL, 0);
    check_duration(end_ns - begin_ns, duration_ns, now_ns() - before_ns);
}

// With the processor's counter where there is one, whatever the kernel makes its clock of: emulators' run by time, too.
TEST(scopes_take_as_long_as_the_clock_says)
{
    subject_open(0, 0);
    CHECK(begin(60000u * (uint64_t)MS) == 0, "cannot start");
    qut_sync_hit(QUT_TOTAL_NONE, 0);
    find_step();
    sample_counter_begin(true);
    uint64_t begin_ms = subject_now_ms();
    while (ARCH_NATIVE_HAS_COUNTER && !sample_counter_ratio && subject_now_ms() - begin_ms < 20000)
        scope_of(1000);
    CHECK(ARCH_NATIVE_HAS_COUNTER == (sample_counter_ratio != 0), "a count is worth %u",
          (unsigned)sample_counter_ratio);
    printf("# %s\n", sample_counter_ratio ? "by the counter" : "by the clock");
    for (uint64_t length_ns = 1; length_ns < 20 * MS; length_ns *= 2)
        for (int i = 0; i < 5; i++)
            scope_of(length_ns);
    subject_close();
}

TEST(a_counter_that_is_wrong_is_used_no_more)
{
    struct timespec rest = {0, 50 * MS};
    subject_open(0, 0);
    CHECK(begin(60000u * (uint64_t)MS) == 0, "cannot start");
    qut_sync_hit(QUT_TOTAL_NONE, 0);
    sample_counter_ratio = UINT32_MAX; // far too long
    struct qut_scope scope = {.kind = QUT_SAMPLE_SLEEP};
    qut_scope_begin(&scope);
    uint64_t begin_ns = now_ns();
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    uint64_t end_ns = now_ns();
    uint64_t duration_ns = qut_scope_end(&scope, QUT_TOTAL_BLOCKED_CALLS, UINT64_MAX, NULL, 0);
    CHECK(duration_ns >= end_ns - begin_ns, "%llu ns", (ull)duration_ns);
    CHECK(duration_ns < UINT32_MAX * (uint64_t)10, "%llu ns", (ull)duration_ns);
    CHECK(!ARCH_NATIVE_HAS_COUNTER || !sample_counter_ratio, "it is still used");
    sample_counter_ratio = 0;
    scope_of(MS);
    // It ran far slower than it does now.
    sample_counter_begin(true);
    sample_counter_ratio = UINT32_MAX;
    sample_counter_compare(now_ns());
    CHECK(sample_counter_ratio == UINT32_MAX, "compared too soon");
    begin_ns = now_ns();
    for (uint64_t passed_ns = 0; passed_ns < 5000 * (uint64_t)MS && ARCH_NATIVE_HAS_COUNTER && sample_counter_ratio;) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        passed_ns = now_ns() - begin_ns;
        sample_counter_compare(begin_ns + passed_ns);
    }
    CHECK(!ARCH_NATIVE_HAS_COUNTER || !sample_counter_ratio, "it is still used");
    sample_counter_ratio = 0;
    subject_close();
}

// ---- what it costs, with an argument

static double least_ns(void (*body)(int))
{
    enum { ROUNDS = 50, CALLS = 100000 };
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        body(CALLS);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CALLS;
        least = ns < least ? ns : least;
    }
    return least;
}

__attribute__((noinline)) static bool plain(uint32_t total, uint64_t amount)
{
    __asm__ volatile("" ::"r"(total), "r"(&amount) : "memory");
    return false;
}

static void calls(int count)
{
    for (int i = 0; i < count; i++)
        plain(0, (uint64_t)i);
}

static void hits(int count)
{
    for (int i = 0; i < count; i++)
        hit(QUT_TOTAL_ALLOCATIONS, (uint64_t)i);
}

static void scopes(int count)
{
    for (int i = 0; i < count; i++) {
        struct qut_scope scope = {.kind = QUT_SAMPLE_LOCK};
        qut_scope_begin(&scope);
        qut_scope_end(&scope, QUT_TOTAL_LOCK_WAITS, UINT64_MAX, NULL, 0);
    }
}

static void measure(void)
{
    subject_open(0, 0);
    begin(60000u * (uint64_t)MS);
    hit(QUT_TOTAL_NONE, 0);
    printf("a call %.1f ns, a throttled hit %.1f ns, a throttled scope %.1f ns\n", least_ns(calls), least_ns(hits),
           least_ns(scopes));
    subject_close();
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        measure();
        return 0;
    }
    RUN(sums_are_exact_when_throttled);
    RUN(sums_are_exact_when_all_are_taken);
    RUN(samples_come_at_the_interval);
    RUN(many_hits_share_a_look_at_the_clock);
    RUN(ticks_make_hits_due);
    RUN(scopes_sum_up_and_tell_their_ends);
    RUN(scopes_take_as_long_as_the_clock_says);
    RUN(a_counter_that_is_wrong_is_used_no_more);
    return tap_finish();
}
