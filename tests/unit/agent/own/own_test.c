// SPDX-License-Identifier: Apache-2.0
// A program that puts probes in front of its own functions, by a script, and keeps its own account of their calls: in
// threads and signal handlers, of recursions, of calls that are left, put in and taken out while threads run, with
// stacks, in children of fork. Where the machine cannot, it is told so.
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/local.h>
#include <qut/own_probes.h>
#include <qut/trace.h>

#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/alone.h"
#include "tracer/probe/script.h"

#define PROBED __attribute__((noinline, patchable_function_entry(1)))

// ---- the program

enum { FIB, LEAF, JUMPER, FUNCTIONS };
static uint64_t told[FUNCTIONS], leaves[8], left;
static volatile int sink;

static void tell(unsigned function)
{
    __atomic_fetch_add(&told[function], 1, __ATOMIC_RELAXED);
}

PROBED static long fib(long n)
{
    tell(FIB);
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uintptr_t walked[64]; // by leaf itself
static size_t walked_count;
static bool walks;

PROBED static long leaf(long n)
{
    tell(LEAF);
    __atomic_fetch_add(&leaves[n & 7], 1, __ATOMIC_RELAXED);
    if (walks)
        walked_count = qut_backtrace(walked, 64, NULL);
    return n ^ 5;
}

PROBED static void jumper(jmp_buf *out, long n)
{
    tell(JUMPER);
    if (n & 1)
        longjmp(*out, 1);
    sink++;
}

__attribute__((noinline)) static long plain(long n)
{
    __asm__ volatile("" : "+r"(n));
    return n;
}

// ---- scripts

static struct {
    const char *name;
    const void *function;
} const functions[] = {{"fib", (const void *)fib}, {"leaf", (const void *)leaf}, {"jumper", (const void *)jumper}};

static struct probe_script script;

static void compile(const char *text)
{
    struct probe_diagnostic diagnostic;
    const int error = probe_compile(text, strlen(text), &script, &diagnostic);
    CHECK(error == 0, "%s", diagnostic.text);
    if (error != 0)
        _exit(1);
}

static int begin(void)
{
    struct qut_own_function put[FUNCTIONS];
    size_t count = 0;
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        uint32_t programs = 0;
        for (size_t n = 0; n < script.places.count; n++)
            if (script.places.items[n].pattern && strcmp(script.places.items[n].pattern, functions[i].name) == 0)
                programs |= UINT32_C(1) << script.places.items[n].program;
        if (programs)
            put[count++] = (struct qut_own_function){functions[i].function, programs};
    }
    const struct qut_own_options options = {.size = sizeof options,
                                            .image = script.image,
                                            .image_bytes = script.image_bytes,
                                            .functions = put,
                                            .function_count = count};
    return qut_own_probes_begin(&options);
}

static uint32_t map_of(const char *name)
{
    for (uint32_t i = 0; i < script.maps.count; i++)
        if (strcmp(script.maps.items[i].name, name) == 0)
            return i;
    CHECK(false, "no map %s", name);
    return 0;
}

// What a map has under a key, or without one.
static int64_t number_of(const char *name, uint64_t key)
{
    struct qut_own_value value;
    uint32_t position = 0;
    int64_t sum = 0;
    while (qut_own_probes_next(map_of(name), &position, &value, sizeof value))
        if (!value.key_words || value.key[0] == key)
            sum += value.number;
    return sum;
}

#define IS_EXACT(NAME, KEY, WANTED)                                                                                    \
    CHECK(number_of(NAME, KEY) == (int64_t)(WANTED), "@%s[%lu] is %ld, and not %ld", NAME, (unsigned long)(KEY),       \
          (long)number_of(NAME, KEY), (long)(WANTED))

// ---- tests

static const char counting[] = "entry:fib { @fibs = count() }"
                               "return:fib { @fib_returns = count(); @fib_sum = sum(retval); @ns = hist(duration) }"
                               "entry:leaf { @leaves[arg0] = count() }"
                               "entry:jumper { @jumps = count(); @pids = sum(pid) }"
                               "return:jumper { @jumps_back = count() }"
                               "unwind:jumper { @jumps_left = count() }";
enum { THREADS = 4, ROUNDS = 300, FIB_OF = 8, FIB_IS = 21 };

static void round_of(long i, jmp_buf *here)
{
    sink = (int)fib(FIB_OF);
    sink = (int)leaf(i & 7);
    if (setjmp(*here) == 0)
        jumper(here, i);
    else
        __atomic_fetch_add(&left, 1, __ATOMIC_RELAXED);
}

static void *work(void *unused)
{
    jmp_buf here;
    for (volatile long i = 0; i <= ROUNDS; i = i + 1) // by the last one it is known that the one before was left
        round_of(i, &here);
    return unused;
}

static void on_signal(int number)
{
    (void)number;
    sink = (int)fib(2);
    sink = (int)leaf(3);
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
}

static void check_counts(void)
{
    const int64_t by_handler = (int64_t)told[LEAF] - (int64_t)THREADS * (ROUNDS + 1);
    struct qut_own_value ns;
    uint32_t position = 0;
    uint64_t in_cells = 0;
    IS_EXACT("fibs", 0, told[FIB]);
    IS_EXACT("fib_returns", 0, told[FIB]);
    for (unsigned i = 0; i < 8; i++)
        IS_EXACT("leaves", i, leaves[i]);
    IS_EXACT("jumps", 0, told[JUMPER]);
    IS_EXACT("jumps_left", 0, left);
    IS_EXACT("jumps_back", 0, told[JUMPER] - left);
    IS_EXACT("pids", 0, told[JUMPER] * (uint64_t)getpid());
    // Of fib(8) and all it calls: sum over n of fib(n) times how often it is called; of fib(2): 1 + 1 + 0.
    enum { ALL_OF_8 = 130, ALL_OF_2 = 2 };
    IS_EXACT("fib_sum", 0, (int64_t)THREADS * (ROUNDS + 1) * ALL_OF_8 + by_handler * ALL_OF_2);
    CHECK(qut_own_probes_next(map_of("ns"), &position, &ns, sizeof ns) == 1, "no durations");
    for (uint32_t i = 0; i < ns.cell_count; i++)
        in_cells += ns.cells[i];
    CHECK(in_cells == told[FIB] && ns.number > 0 && ns.cells[0] == 0, "%lu durations, together %ld ns",
          (unsigned long)in_cells, (long)ns.number);
    CHECK(left > 0 && qut_own_probes_lost() == 0, "%lu left, %lu lost", (unsigned long)left,
          (unsigned long)qut_own_probes_lost());
}

TEST(counts_are_exact)
{
    const uint64_t before = *(const uint64_t *)(const void *)fib;
    compile(counting);
    CHECK(begin() == 0 && begin() == -EALREADY, "not put in");
    CHECK(*(const uint64_t *)(const void *)fib != before, "nothing was changed");
    run_threads();
    check_counts();
    CHECK(qut_own_probes_end() == 0 && qut_own_probes_end() == -EALREADY, "not taken out");
    CHECK(*(const uint64_t *)(const void *)fib == before, "not as before");
    fib(3);
    leaf(1);
    IS_EXACT("leaves", 1, leaves[1] - 1); // as it was at the end
}

static volatile bool is_over;

static void *compute(void *wrong)
{
    while (!is_over)
        *(long *)wrong += fib(FIB_OF) != FIB_IS || leaf(2) != 7;
    return NULL;
}

// Threads are in these functions at any time, and in calls that end later than the probes.
TEST(threads_run_meanwhile)
{
    enum { TIMES = 20, CALLS = 100 };
    pthread_t threads[THREADS];
    long wrong[THREADS] = {0}, seen = 0;
    compile(counting);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, compute, &wrong[i]) == 0, "no thread");
    for (unsigned i = 0; i < TIMES; i++) {
        const uint64_t before = __atomic_load_n(&told[FIB], __ATOMIC_RELAXED);
        int error = begin();
        CHECK(error == 0, "time %u: %s", i, strerror(-error));
        while (error == 0 && number_of("fibs", 0) < CALLS)
            sched_yield();
        error = qut_own_probes_end();
        const int64_t entries = number_of("fibs", 0), returns = number_of("fib_returns", 0),
                      most = (int64_t)(__atomic_load_n(&told[FIB], __ATOMIC_RELAXED) - before);
        // Who has entered and has not counted itself yet is one call of each thread.
        CHECK(error == 0 && entries <= most + THREADS && returns <= entries, "%ld entries, %ld returns, of %ld calls",
              (long)entries, (long)returns, (long)most);
        seen += entries;
    }
    is_over = true;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(wrong[i] == 0, "%ld results are wrong", wrong[i]);
    }
    CHECK(seen >= TIMES * CALLS && qut_own_probes_lost() == 0, "%ld calls were seen, %lu lost", seen,
          (unsigned long)qut_own_probes_lost());
}

__attribute__((noinline)) static long one(long n)
{
    return leaf(n) + 1;
}

__attribute__((noinline)) static long two(long n)
{
    volatile char room[200];
    room[n] = (char)leaf(n);
    return room[n] + one(n);
}

// Whether a node's stack is what leaf has walked last, without leaf itself.
static bool is_walked(const struct view *view, uint32_t node)
{
    struct view_frame frames[64];
    const size_t count = view_stack(view, node, frames, 64);
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        if (frames[i].class != QUT_TRACE_CLASS_CODE) // how the walk ended
            continue;
        if (same + 1 >= walked_count || frames[i].pc / 4 != walked[same + 1] / 4)
            return false;
        same++;
    }
    return same > 2 && same + 1 == walked_count;
}

static void check_frames(const struct view *view)
{
    uint32_t found = 0;
    for (uint32_t node = 1; node < view->header->node_capacity; node++)
        found += view->nodes[node] && is_walked(view, node);
    CHECK(found > 0, "the trace has no such stack of %zu frames", walked_count);
}

TEST(stacks_are_those_of_the_callers)
{
    const struct qut_trace_options options = {.size = sizeof options};
    struct view view;
    struct qut_own_value value;
    uint32_t position = 0, kinds = 0;
    if (!discipline_has_compiler())
        SKIP("no QUT_TEST_QUTC: no tables");
    compile("entry:leaf { @by[stack(64)] = count() } return:leaf { @after[stack(64)] = count() }");
    CHECK(discipline_start() && qut_thread_register() == 0 && qut_trace_open(&options) == 0 && view_open(&view),
          "no trace");
    CHECK(begin() == 0, "not put in");
    walks = true;
    for (volatile long i = 0; i < 10; i = i + 1)
        sink = (int)one(i & 7);
    check_frames(&view);
    for (volatile long i = 0; i < 20; i = i + 1)
        sink = (int)two(i & 7);
    check_frames(&view);
    // one() by the test, leaf() by two(), one() by two(): how often each.
    int64_t counts[3] = {0};
    while (qut_own_probes_next(map_of("by"), &position, &value, sizeof value)) {
        CHECK(value.key[0] != 0, "a stack was not taken");
        CHECK(number_of("after", value.key[0]) == value.number, "at the exit it is another one");
        if (kinds < 3)
            counts[kinds] = value.number;
        kinds++;
    }
    CHECK(kinds == 3 && counts[0] + counts[1] + counts[2] == 50 && counts[0] % 10 == 0 && counts[1] % 10 == 0,
          "%u stacks: %ld, %ld, %ld", kinds, (long)counts[0], (long)counts[1], (long)counts[2]);
    view_close(&view);
}

TEST(children_count_into_the_same_maps)
{
    compile(counting);
    CHECK(begin() == 0, "not put in");
    fib(3);
    const uint64_t before = told[FIB];
    const pid_t pid = fork();
    if (pid == 0) {
        jmp_buf here;
        fib(4);
        jumper(&here, 2);
        _exit(told[FIB] - before != 9 || qut_own_probes_end() != 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "status 0x%x", (unsigned)status);
    IS_EXACT("fibs", 0, before + 9);
    IS_EXACT("pids", 0, pid);
    fib(2); // the child has taken out its own alone
    IS_EXACT("fibs", 0, before + 12);
    CHECK(qut_own_probes_end() == 0, "not taken out");
}

TEST(records_come_in_order)
{
    enum { RECORDS = 100 };
    uint32_t record, count = 0;
    uint64_t words[2];
    compile("entry:leaf { printf(\"%d is %d\\n\", arg0, arg0 * 3) }");
    CHECK(begin() == 0, "not put in");
    for (volatile long i = 0; i < RECORDS; i = i + 1)
        sink = (int)leaf(i);
    while (qut_own_probes_record(&record, words, 2)) {
        CHECK(record == 0 && words[0] == count * 3 && words[1] == count, "record %u: %lu, %lu", count,
              (unsigned long)words[0], (unsigned long)words[1]); // the last one comes first
        count++;
    }
    CHECK(count == RECORDS && qut_own_probes_lost() == 0, "%u records", count);
}

static int begin_with(const void *image, size_t image_bytes, const struct qut_own_function *put, size_t count)
{
    const struct qut_own_options options = {
        .size = sizeof options, .image = image, .image_bytes = image_bytes, .functions = put, .function_count = count};
    return qut_own_probes_begin(&options);
}

TEST(what_cannot_be_is_refused)
{
    const uint64_t before = *(const uint64_t *)(const void *)leaf;
    compile("entry:leaf { @n = count() } timer:1s { print(@n) } offset:leaf+4 { @m = count() }");
    const struct qut_own_function good = {(const void *)leaf, 1}, not_there = {(const void *)leaf, 1 << 3},
                                  none = {(const void *)leaf, 0}, tools = {(const void *)leaf, 1 << 1},
                                  within = {(const void *)leaf, 1 << 2},
                                  with_plain[] = {good, {(const void *)plain, 1}};
    const struct {
        const struct qut_own_function *put;
        size_t count;
        int error;
    } cases[] = {{&good, 0, -EINVAL},  {&not_there, 1, -EINVAL}, {&none, 1, -EINVAL},
                 {&tools, 1, -EINVAL}, {&within, 1, -EINVAL},    {with_plain, 2, -ENOTSUP}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int error = begin_with(script.image, script.image_bytes, cases[i].put, cases[i].count);
        CHECK(error == cases[i].error, "case %u: %d", i, error);
    }
    uint8_t *bytes = malloc(script.image_bytes);
    for (size_t size = 0; size < script.image_bytes; size += 8) { // cut off anywhere
        memcpy(bytes, script.image, size);
        const int error = begin_with(bytes, size, &good, 1);
        CHECK(error == -EINVAL, "%zu bytes: %d", size, error);
    }
    free(bytes);
    CHECK(*(const uint64_t *)(const void *)leaf == before && qut_own_probes_end() == -EALREADY, "something was put in");
    sink = (int)plain(leaf(1));
}

TEST(machines_that_cannot_say_so)
{
    compile(counting);
    CHECK(begin() == -ENOSYS && qut_own_probes_end() == -EALREADY, "it could");
    run_threads();
    CHECK(number_of("fibs", 0) == 0 && told[FIB] > 0, "something was counted");
}

int main(void)
{
    if (OWN_IS_POSSIBLE) {
        RUN_ALONE(counts_are_exact);
        RUN_ALONE(threads_run_meanwhile);
        RUN_ALONE(stacks_are_those_of_the_callers);
        RUN_ALONE(children_count_into_the_same_maps);
        RUN_ALONE(records_come_in_order);
        RUN_ALONE(what_cannot_be_is_refused);
    } else {
        RUN_ALONE(machines_that_cannot_say_so);
    }
    return tap_finish();
}
