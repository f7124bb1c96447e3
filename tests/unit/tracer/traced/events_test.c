// SPDX-License-Identifier: Apache-2.0
// A ring as its reader finds it, with places that are reserved and not written: by hand, at each moment that matters,
// and drawn. Of all that a writer has written, each event is read once, or counted as lost.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/tap.h"
#include "tracer/traced/events.h"
#include "tracer/traced/inside.h"

enum {
    PAGE_BYTES = 4096,
    PAGE_EVENTS = PAGE_BYTES / (int)sizeof(struct qut_calls_event),
    RINGS_AT = 2 * PAGE_BYTES,
    ROOM_BYTES = 8 * PAGE_BYTES,
    ENOUGH = QUT_CALLS_SPARE_EVENTS / 2, // full places behind a hole
    NESTED_MAX = 4,
    TOO_LATE = 64,
};

static struct traced_process process;
static const struct traced_options options;
static uint8_t *memory;
static struct qut_calls_event *places;
static uint64_t events_in_ring, head, now_ticks, written, jumped;
static int file_fd;

static struct qut_calls_ring *entry(void)
{
    return (void *)(memory + PAGE_BYTES);
}

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    printf("%s\n", what);
    abort();
}

static void begin(uint64_t events)
{
    struct base_error error = {0};
    memset(memory, 0, ROOM_BYTES);
    head = written = jumped = 0;
    events_in_ring = events;
    file_fd = memfd_create("events", MFD_CLOEXEC);
    const struct collect_calls_process told = {.pid = (uint32_t)getpid(), .begin_ns = 1};
    process = (struct traced_process){.pid = getpid(), .options = &options, .memory = memory};
    process.header = (struct qut_calls_header){.ring_count = 1,
                                               .ring_bytes = events * sizeof(struct qut_calls_event),
                                               .directory_offset_bytes = PAGE_BYTES,
                                               .rings_offset_bytes = RINGS_AT};
    process.writer = collect_calls_begin(file_fd, &told, &error);
    need(process.writer && traced_rings_begin(&process, &error) == 0, "no file");
    ((struct qut_calls_header *)(void *)memory)->rings_used = 1;
    *entry() = (struct qut_calls_ring){.state = QUT_CALLS_RING_TAKEN, .tid = (uint32_t)getpid()};
}

static void drain(void)
{
    struct base_error error = {0};
    need(traced_drain(&process, &error) >= 0, "not drained");
}

// What is read and what is lost are all that was written.
static void end(uint64_t lost)
{
    struct base_error error = {0};
    struct collect_calls_sums sums;
    need(traced_drain_last(&process, &error) == 0, "not drained");
    collect_calls_sums(process.writer, &sums);
    CHECK(process.result.lost_enters == lost, "%llu lost", (unsigned long long)process.result.lost_enters);
    CHECK(sums.enters + sums.lost_enters == written, "%llu read and %llu lost of %llu", (unsigned long long)sums.enters,
          (unsigned long long)sums.lost_enters, (unsigned long long)written);
    CHECK(sums.enters == process.result.enters && sums.lost_enters == lost && sums.exits + sums.lost_exits == 0,
          "%llu in the file", (unsigned long long)sums.enters);
    need(collect_calls_end(process.writer, &(struct collect_calls_ending){.end_ns = 2}, &error) == 0, "no end");
    traced_rings_end(&process);
    close(file_fd);
}

// ---- a writer

static uint64_t reserve(void)
{
    return head++;
}

static void write_at(uint64_t at)
{
    struct qut_calls_event *place = &places[at & (events_in_ring - 1)];
    place->time_ticks = ++now_ticks;
    __atomic_store_n(&place->word, qut_calls_word(UINT64_C(0x7ffff0000008), false, 1), __ATOMIC_RELEASE);
    written++;
}

static void write_events(uint64_t count)
{
    while (count-- > 0)
        write_at(reserve());
}

// The place is passed by the reader: so many events are behind it.
static uint64_t pass(uint64_t behind)
{
    const uint64_t hole = reserve();
    write_events(behind);
    drain();
    drain();
    CHECK(entry()->tail_events == head, "it is at %llu", (unsigned long long)entry()->tail_events);
    return hole;
}

TEST(one_that_is_left_by_a_jump)
{
    begin(PAGE_EVENTS);
    write_events(10);
    pass(ENOUGH);
    for (unsigned i = 0; i < 50; i++) {
        write_events(100);
        drain();
    }
    end(0);
}

TEST(one_that_is_written_before_it_is_passed)
{
    begin(PAGE_EVENTS);
    const uint64_t hole = reserve();
    write_events(ENOUGH);
    drain();
    CHECK(process.result.enters == 0, "%llu read", (unsigned long long)process.result.enters);
    write_at(hole);
    end(0);
}

TEST(one_that_is_written_soon)
{
    begin(PAGE_EVENTS);
    write_at(pass(ENOUGH));
    for (unsigned i = 0; i < 50; i++) {
        write_events(100);
        drain();
    }
    end(1);
}

TEST(one_that_is_written_when_others_may_come_there)
{
    begin(PAGE_EVENTS);
    const uint64_t hole = pass(ENOUGH);
    write_events(100);
    drain();
    write_at(hole);
    drain();
    for (unsigned i = 0; i < 50; i++) {
        write_events(100);
        drain();
    }
    end(1);
}

// The reader comes from those before it, and finds it.
TEST(one_that_is_met_in_the_next_round)
{
    begin(PAGE_EVENTS);
    const uint64_t hole = pass(ENOUGH);
    write_events(100);
    drain();
    write_at(hole);
    write_events(hole + events_in_ring - head);
    CHECK(head == hole + events_in_ring, "%llu", (unsigned long long)head);
    drain();
    CHECK(entry()->tail_events == head, "it is at %llu of %llu", (unsigned long long)entry()->tail_events,
          (unsigned long long)head);
    for (unsigned i = 0; i < 50; i++) {
        write_events(100);
        drain();
    }
    end(1);
}

TEST(one_of_a_thread_that_ends)
{
    begin(PAGE_EVENTS);
    const uint64_t hole = pass(ENOUGH);
    write_events(100);
    drain();
    write_at(hole);
    entry()->state = QUT_CALLS_RING_ENDED;
    drain();
    CHECK(entry()->state == QUT_CALLS_RING_FREE, "the ring is %u", entry()->state);
    // Another one's, from the beginning.
    entry()->state = QUT_CALLS_RING_TAKEN;
    head = 0;
    write_events(100);
    end(1);
}

// ---- it is written between two looks at it: what is behind it is on a page that the reader stops at

static void *guarded;
static uint64_t late_hole;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if (info->si_addr < guarded || (uint8_t *)info->si_addr >= (uint8_t *)guarded + PAGE_BYTES || !guarded)
        _exit(3);
    mprotect(guarded, PAGE_BYTES, PROT_READ | PROT_WRITE);
    guarded = NULL;
    write_at(late_hole);
}

TEST(one_that_is_written_while_it_is_looked_at)
{
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    begin(2 * PAGE_EVENTS);
    write_events(PAGE_EVENTS - 1);
    late_hole = reserve();
    write_events(ENOUGH);
    drain(); // the first look
    CHECK(entry()->tail_events == late_hole, "it is at %llu", (unsigned long long)entry()->tail_events);
    sigaction(SIGSEGV, &action, &before);
    guarded = &places[PAGE_EVENTS];
    mprotect(guarded, PAGE_BYTES, PROT_NONE);
    drain();
    sigaction(SIGSEGV, &before, NULL);
    CHECK(!guarded, "nobody was there");
    CHECK(entry()->tail_events == head, "it is at %llu", (unsigned long long)entry()->tail_events);
    write_events(100);
    end(0);
}

// ---- drawn

static uint64_t drawn;
static uint64_t draw(uint64_t below)
{
    drawn = drawn * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (drawn >> 33) % below;
}

// A writer's handlers interrupt it, come back or jump, with the ring full or not. Never so late that another one is
// written at the same place: what is written over is not seen.
static void storm(uint64_t seed)
{
    uint64_t open[NESTED_MAX], lost_full = 0;
    unsigned depth = 0, since_late = 0;
    begin(seed % 2 ? 2 * PAGE_EVENTS : PAGE_EVENTS);
    drawn = seed;
    for (unsigned i = 0; i < 4000; i++) {
        const uint64_t what = draw(256);
        const bool has_room =
            head < __atomic_load_n(&entry()->tail_events, __ATOMIC_ACQUIRE) + events_in_ring - QUT_CALLS_SPARE_EVENTS;
        if (what < 4 && !since_late && depth < NESTED_MAX && has_room) {
            open[depth++] = reserve();
        } else if (what < 7 && depth && head - open[0] <= events_in_ring - TOO_LATE) {
            write_at(open[--depth]);
            since_late += !since_late;
        } else if (what == 7 || (depth && head - open[0] > events_in_ring - TOO_LATE)) {
            jumped += depth;
            depth = 0;
        } else if (what < 16 || since_late > TOO_LATE / 2) { // else one could be written over that nobody has seen
            drain();
            since_late = 0;
        } else if (has_room) {
            write_at(reserve());
            since_late += since_late > 0;
        } else {
            lost_full++;
            written++;
            __atomic_fetch_add(&entry()->lost_enters, 1, __ATOMIC_RELAXED);
        }
    }
    struct base_error error = {0};
    need(traced_drain_last(&process, &error) == 0, "not drained");
    if (!CHECK(process.result.lost_enters >= lost_full, "seed %llu", (unsigned long long)seed))
        return;
    end(process.result.lost_enters);
    CHECK(!tap.failed_checks, "seed %llu", (unsigned long long)seed);
}

static unsigned storms = 300;
TEST(drawn_ones)
{
    uint64_t late = 0;
    for (unsigned i = 1; i <= storms && !tap.failed_checks; i++) {
        storm(i);
        late += process.result.lost_enters;
    }
    CHECK(late > 0, "none was late");
}

int main(int count, char **arguments)
{
    if (count > 1)
        storms = (unsigned)atoi(arguments[1]);
    memory = mmap(NULL, ROOM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(memory != MAP_FAILED, "no memory");
    places = (void *)(memory + RINGS_AT);
    RUN(one_that_is_left_by_a_jump);
    RUN(one_that_is_written_before_it_is_passed);
    RUN(one_that_is_written_soon);
    RUN(one_that_is_written_when_others_may_come_there);
    RUN(one_that_is_met_in_the_next_round);
    RUN(one_of_a_thread_that_ends);
    RUN(one_that_is_written_while_it_is_looked_at);
    RUN(drawn_ones);
    return tap_finish();
}
