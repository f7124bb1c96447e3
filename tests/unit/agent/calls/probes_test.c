// SPDX-License-Identifier: Apache-2.0
// Programs of probes in stubs, within one process: what they count is what the functions have counted themselves, in
// threads and signal handlers, of recursions, of functions that jump to others at their ends, and of calls that are
// left.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"
#include "tests/unit/agent/calls/account.h"
#include "tests/unit/agent/calls/tail.h"

// ---- programs: each adds 1, or a field, to a sum

enum { BY_ARGUMENT, SUMS, MAPS };
enum { ONE = -1 };
static const struct wanted {
    enum qut_probe_kind kind;
    unsigned function; // at which it runs
    int adds;          // field, or ONE
    unsigned map;      // of SUMS the key is the program's number, else the first argument
} wanted[] = {
    {QUT_PROBE_ENTRY, LEAF, ONE, BY_ARGUMENT},
    {QUT_PROBE_ENTRY, FIB, ONE, SUMS},
    {QUT_PROBE_RETURN, FIB, QUT_PROBE_RETVAL, SUMS},
    {QUT_PROBE_RETURN, FIB, ONE, SUMS},
    {QUT_PROBE_RETURN, FIB, QUT_PROBE_DURATION, SUMS},
    {QUT_PROBE_RETURN, TAIL_A, QUT_PROBE_RETVAL, SUMS},
    {QUT_PROBE_RETURN, TAIL_B, QUT_PROBE_RETVAL, SUMS},
    {QUT_PROBE_ENTRY, TAIL_B, QUT_PROBE_ARG0, SUMS},
    {QUT_PROBE_ENTRY, JUMPER, ONE, SUMS},
    {QUT_PROBE_RETURN, JUMPER, ONE, SUMS},
    {QUT_PROBE_UNWIND, JUMPER, ONE, SUMS},
    {QUT_PROBE_ENTRY, JUMPER, QUT_PROBE_PID, SUMS},
};
enum { PROGRAMS = sizeof wanted / sizeof *wanted, STEPS = 9 };
enum {
    FIB_ENTERS = 1,
    FIB_RETVALS,
    FIB_RETURNS,
    FIB_NS,
    A_RETVALS,
    B_RETVALS,
    B_ARGUMENTS,
    JUMPS,
    JUMPS_BACK,
    JUMPS_LEFT,
    JUMPS_PID
};

struct image {
    struct qut_probe_header header;
    struct qut_probe_program programs[PROGRAMS];
    struct qut_probe_map maps[MAPS];
    struct qut_probe_instruction code[PROGRAMS][STEPS];
};

static struct qut_probe_instruction step(uint8_t opcode, unsigned to, unsigned from, int offset, int immediate)
{
    return (struct qut_probe_instruction){opcode, (uint8_t)(to | from << 4), (int16_t)offset, immediate};
}

static void make_program(struct image *image, unsigned number)
{
    enum { LOAD = 0x79, STORE = 0x7b, PUT = 0x7a, COPY = 0xbf, MOVE = 0xb7, ADD = 0x07, CALL = 0x85, EXIT = 0x95 };
    const struct wanted *of = &wanted[number];
    const bool is_keyed = of->map == BY_ARGUMENT;
    const struct qut_probe_instruction code[STEPS] = {
        of->adds == ONE ? step(MOVE, 3, 0, 0, 1) : step(LOAD, 3, 1, of->adds * 8, 0),
        is_keyed ? step(LOAD, 4, 1, QUT_PROBE_ARG0 * 8, 0) : step(MOVE, 4, 0, 0, (int)number),
        step(STORE, 10, 4, -8, 0),
        step(COPY, 2, 10, 0, 0),
        step(ADD, 2, 0, 0, -8),
        step(MOVE, 1, 0, 0, (int)of->map),
        step(CALL, 0, 0, 0, QUT_PROBE_AGGREGATE),
        step(MOVE, 0, 0, 0, 0),
        step(EXIT, 0, 0, 0, 0)};
    memcpy(image->code[number], code, sizeof code);
    image->programs[number] = (struct qut_probe_program){.first_instruction = number * STEPS,
                                                         .instruction_count = STEPS,
                                                         .kind = of->kind,
                                                         .fields = (of->adds == ONE ? 0 : 1u << of->adds) |
                                                                   (is_keyed ? 1u << QUT_PROBE_ARG0 : 0)};
}

static void make_image(struct image *image)
{
    image->header = (struct qut_probe_header){.magic = QUT_PROBE_MAGIC,
                                              .version = QUT_PROBE_VERSION,
                                              .total_bytes = sizeof *image,
                                              .program_count = PROGRAMS,
                                              .map_count = MAPS,
                                              .instruction_count = PROGRAMS * STEPS};
    for (unsigned i = 0; i < MAPS; i++)
        image->maps[i] = (struct qut_probe_map){.kind = QUT_PROBE_SUM, .key_words = 1};
    for (unsigned i = 0; i < PROGRAMS; i++)
        make_program(image, i);
}

// ---- the tool's side

static struct bytecode_maps maps;
static struct image image;

static void probes_begin(uint32_t flags)
{
    make_image(&image);
    const struct qut_probe_image parts = qut_probe_parts(&image);
    bytecode_maps_lay_out(&maps, &parts);
    struct qut_probe_live live = {.base_ticks = calls_ticks(),
                                  .rate = UINT64_C(1) << 32, // a tick is a nanosecond
                                  .flags = flags};
    qut_probe_live_lay_out(&live, &parts, maps.words, 0);
    const uint64_t all = live.total_bytes + (uint64_t)QUT_PROBE_LIVE_PROCESS_BYTES;
    const int fd = memfd_create("probes", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)all) == 0, "no memory");
    uint8_t *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(memory, &live, sizeof live);
    memcpy(memory + live.image_offset_bytes, &image, sizeof image);
    maps.memory = (uint64_t *)(memory + live.maps_offset_bytes);
    uint32_t *masks = (uint32_t *)(memory + live.total_bytes);
    for (unsigned i = 0; i < PROGRAMS; i++)
        masks[wanted[i].function] |= UINT32_C(1) << i;
    const int error = calls_probe_begin(fd, live.total_bytes, all);
    CHECK(error == 0, "error %d", error);
    close(fd);
}

static int64_t number_of(unsigned map, uint64_t key)
{
    int64_t sum = 0;
    struct bytecode_slot slot;
    for (uint32_t i = 0; i < maps.maps[map].slot_count; i++)
        if (bytecode_maps_slot(&maps, map, i, &slot) && slot.key[0] == key)
            sum += bytecode_maps_number(&image.maps[map], slot.values[0]);
    return sum;
}

// ---- the program's

enum { THREADS = 4, ROUNDS = 500, FIB_OF = 8, LEAVES = 8 };
static uint64_t leaves[LEAVES], left;
static long tails;

TRACED static void jumper(jmp_buf *out, long n)
{
    tell(JUMPER);
    if (n & 1)
        longjmp(*out, 1);
    sink++;
}

static void *work(void *unused)
{
    jmp_buf here;
    for (volatile int i = 0; i < ROUNDS; i = i + 1) {
        const int argument = i % LEAVES;
        fib(FIB_OF);
        const int retval = tail_a(i);
        __atomic_fetch_add(&tails, retval, __ATOMIC_RELAXED);
        sink = leaf(argument);
        __atomic_fetch_add(&leaves[argument], 1, __ATOMIC_RELAXED);
        if (setjmp(here) == 0)
            jumper(&here, i);
        else
            __atomic_fetch_add(&left, 1, __ATOMIC_RELAXED);
    }
    jumper(&here, 0); // by which it is known that the last one was left
    return unused;
}

static void on_signal(int number)
{
    (void)number;
    fib(2);
    sink = leaf(3);
    __atomic_fetch_add(&leaves[3], 1, __ATOMIC_RELAXED);
}

// What all calls return that one of fib makes.
static long sum_of_fib(int n, long *value)
{
    long first = 0, second = 0;
    const long below = n < 2 ? 0 : sum_of_fib(n - 1, &first) + sum_of_fib(n - 2, &second);
    *value = n < 2 ? n : first + second;
    return below + *value;
}

static void run_all(uint32_t flags)
{
    pthread_t threads[THREADS];
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    trace_begins((uint64_t)4 * RING, THREADS + 2);
    probes_begin(flags);
    CHECK(THUNKS_TRACE(fib, FIB) && THUNKS_TRACE(leaf, LEAF) && THUNKS_TRACE(tail_a, TAIL_A) &&
              THUNKS_TRACE(tail_b, TAIL_B) && THUNKS_TRACE(jumper, JUMPER),
          "no nops");
    const uint64_t began = calls_ticks();
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0, "no thread");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    const int64_t took = (int64_t)(calls_ticks() - began);
    long last;
    const int64_t by_handler = (int64_t)leaves[3] - THREADS * ((ROUNDS + LEAVES - 1 - 3) / LEAVES);
    const int64_t retvals = THREADS * ROUNDS * sum_of_fib(FIB_OF, &last) + by_handler * sum_of_fib(2, &last);
    for (unsigned i = 0; i < LEAVES; i++)
        CHECK(number_of(BY_ARGUMENT, i) == (int64_t)leaves[i], "leaf(%u): %ld", i, (long)number_of(BY_ARGUMENT, i));
    CHECK(number_of(SUMS, FIB_ENTERS) == (int64_t)told[FIB] && number_of(SUMS, FIB_RETURNS) == (int64_t)told[FIB],
          "%ld entries, %ld returns of %lu", (long)number_of(SUMS, FIB_ENTERS), (long)number_of(SUMS, FIB_RETURNS),
          (unsigned long)told[FIB]);
    CHECK(number_of(SUMS, FIB_RETVALS) == retvals, "%ld", (long)number_of(SUMS, FIB_RETVALS));
    // Each is in all that it lies in.
    const int64_t ns = number_of(SUMS, FIB_NS);
    CHECK(ns > 0 && ns <= took * THREADS * (FIB_OF + 1), "%ld ns, of %ld", (long)ns, (long)took);
    CHECK(number_of(SUMS, A_RETVALS) == tails && number_of(SUMS, B_RETVALS) == tails, "%ld and %ld of %ld",
          (long)number_of(SUMS, A_RETVALS), (long)number_of(SUMS, B_RETVALS), tails);
    CHECK(number_of(SUMS, B_ARGUMENTS) == tails - THREADS * ROUNDS * 2, "%ld", (long)number_of(SUMS, B_ARGUMENTS));
    CHECK(number_of(SUMS, JUMPS) == (int64_t)told[JUMPER] && number_of(SUMS, JUMPS_LEFT) == (int64_t)left &&
              number_of(SUMS, JUMPS_BACK) == (int64_t)(told[JUMPER] - left),
          "%ld, %ld, %ld of %lu, %lu left", (long)number_of(SUMS, JUMPS), (long)number_of(SUMS, JUMPS_BACK),
          (long)number_of(SUMS, JUMPS_LEFT), (unsigned long)told[JUMPER], (unsigned long)left);
    CHECK(number_of(SUMS, JUMPS_PID) == getpid() * (int64_t)told[JUMPER], "another process");
    CHECK(left > 0 && tails > 0, "nothing was done");
}

TEST(counts_are_exact)
{
    run_all(0);
    thunks_drain();
    CHECK(thunks_sums()->events == 0, "%lu events", (unsigned long)thunks_sums()->events);
}

TEST(counts_are_exact_by_the_interpreter)
{
    run_all(QUT_PROBE_LIVE_INTERPRETS);
}

// Rings are read at the end: they have room for all.
TEST(calls_are_told_as_well)
{
    run_all(QUT_PROBE_LIVE_TELLS_CALLS);
    uint64_t lost = 0;
    for (uint32_t i = 0; i < thunks_header()->ring_count; i++)
        lost += thunks_ring(i)->lost_enters + thunks_ring(i)->lost_exits;
    thunks_drain();
    const struct thunks_sums *sums = thunks_sums();
    CHECK(lost == 0, "%lu lost", (unsigned long)lost);
    check_whole(FIB);
    check_whole(LEAF);
    CHECK(sums->enters[JUMPER] == told[JUMPER] && sums->exits[JUMPER] == told[JUMPER] - left, "%lu, %lu",
          (unsigned long)sums->enters[JUMPER], (unsigned long)sums->exits[JUMPER]);
    CHECK(sums->enters[TAIL_A] == THREADS * ROUNDS && sums->tails[TAIL_B] == THREADS * ROUNDS &&
              sums->exits[TAIL_A] == 0 && sums->exits[TAIL_B] == THREADS * ROUNDS,
          "tail calls");
    check_order();
}

int main(void)
{
    RUN_ALONE(counts_are_exact);
    RUN_ALONE(counts_are_exact_by_the_interpreter);
    RUN_ALONE(calls_are_told_as_well);
    return tap_finish();
}
