// SPDX-License-Identifier: Apache-2.0
// Appends that interrupt each other, by real signals, and those that a handler jumped out of.
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/include/qut/trace.h"
#include "libqut/segment/inside.h"
#include "libqut/segment/segment.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/segment/decode.h"

static struct segment segment;
static struct qut_trace_thread *thread;
static uint32_t node;
static uint64_t time_ns;
static uintptr_t stack_low, stack_high;

static bool begin(void)
{
    struct segment_options options = {.segment_bytes = 1 << 20, .thread_count = 4, .node_bits = 10};
    int result = segment_create(&segment, &options);
    if (!CHECK(result == 0, "%d", result))
        return false;
    thread = segment_thread_begin(&segment, 1, "levels", 1);
    node = segment_node(&segment, 0, 4096, 0);
    time_ns = 1000000;
    stack_low = 1;
    stack_high = UINTPTR_MAX - 1; // all of it is this thread's only stack, here
    return thread != NULL;
}

static int append(struct qut_trace_writer *writer)
{
    struct segment_sample sample = {.time_ns = time_ns += 50000000, .node = node};
    return segment_append(&segment, thread, writer, &sample);
}

static struct segment_sums sums_of(void)
{
    struct segment_sums sums;
    segment_sum(&segment, &sums);
    return sums;
}

// ---- nesting

// ThreadSanitizer lets no handler interrupt another one.
#ifdef SEGMENT_TRACE_NO_FENCE
static void interrupt(void (*handler)(int))
{
    handler(SIGUSR1);
}
#else
static void interrupt(void (*handler)(int))
{
    (void)handler;
    raise(SIGUSR1);
}
#endif

static void on_signal(int number);
static int raise_depth, refused;
static unsigned used_levels;

__attribute__((noinline)) static void nest(void)
{
    char here;
    struct qut_trace_writer *writer = segment_begin(thread, (uintptr_t)&here, stack_low, stack_high);
    if (!writer) {
        refused++;
        return;
    }
    used_levels |= 1u << (writer - thread->writers);
    append(writer);
    if (raise_depth-- > 0)
        interrupt(on_signal);
    append(writer);
    segment_end_of(thread);
}

static void on_signal(int number)
{
    (void)number;
    nest();
}

TEST(levels_nest_and_deeper_ones_are_refused)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    for (int depth = 0; depth <= 4; depth++) {
        if (!begin())
            return;
        raise_depth = depth;
        refused = 0;
        used_levels = 0;
        nest();
        unsigned levels = depth < QUT_TRACE_LEVELS ? (unsigned)depth + 1 : QUT_TRACE_LEVELS;
        CHECK(used_levels == (1u << levels) - 1 && segment_depth(thread) == 0, "depth %d: levels %x", depth,
              used_levels);
        struct segment_sums sums = sums_of();
        uint64_t nested = depth >= QUT_TRACE_LEVELS;
        CHECK((unsigned)refused == nested && sums.counts.lost[QUT_TRACE_LOST_NESTED] == nested, "refused %d", refused);
        CHECK(sums.counts.hits == 2 * levels + nested && sums.stored == 2 * levels && sums.under_way == 0,
              "depth %d: hits %llu, stored %llu", depth, (unsigned long long)sums.counts.hits,
              (unsigned long long)sums.stored);
        struct decode d;
        decode_segment(&d, segment.header);
        unsigned of_level[QUT_TRACE_LEVELS] = {0};
        for (size_t i = 0; i < d.count; i++)
            of_level[d.records[i].level]++;
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
            CHECK(of_level[level] == (level < levels ? 2u : 0u), "level %u has %u", level, of_level[level]);
        CHECK(!d.fault, "%s", d.fault);
        free(d.records);
        segment_close(&segment);
    }
}

// ---- jumping out

static sigjmp_buf jump;
static bool do_jump;

__attribute__((noinline)) static void append_and_jump(int frames)
{
    volatile char room[256];
    room[0] = (char)frames;
    if (frames > 0) {
        append_and_jump(frames - 1);
        room[1] = 0;
        return;
    }
    struct qut_trace_writer *writer = segment_begin(thread, (uintptr_t)room, stack_low, stack_high);
    if (!writer)
        return;
    append(writer);
    if (do_jump)
        siglongjmp(jump, 1);
    segment_end_of(thread);
}

static void jump_once(int frames)
{
    if (sigsetjmp(jump, 1) == 0) {
        do_jump = true;
        append_and_jump(frames);
    }
    do_jump = false;
}

TEST(a_level_that_was_jumped_out_of_is_given_again)
{
    if (!begin())
        return;
    for (int i = 0; i < 10; i++) {
        jump_once(3);
        CHECK(segment_depth(thread) == 1, "depth %u", segment_depth(thread));
        append_and_jump(0); // less deep: what was there is gone
        CHECK(segment_depth(thread) == 0, "depth %u", segment_depth(thread));
    }
    struct segment_sums sums = sums_of();
    CHECK(sums.counts.hits == 20 && sums.stored == 20 && sums.under_way == 0, "%llu", (unsigned long long)sums.stored);
    // Deeper than the one before, nothing is proven: the next level.
    jump_once(0);
    append_and_jump(3);
    CHECK(segment_depth(thread) == 1, "depth %u", segment_depth(thread));
    append_and_jump(0);
    CHECK(segment_depth(thread) == 0, "depth %u", segment_depth(thread));
    // Nor where the stack is not known.
    stack_high = 0;
    for (int i = 0; i < 5; i++)
        jump_once(3);
    CHECK(segment_depth(thread) == QUT_TRACE_LEVELS, "depth %u", segment_depth(thread));
    append_and_jump(0);
    sums = sums_of();
    CHECK(sums.counts.lost[QUT_TRACE_LOST_NESTED] == 3, "%llu",
          (unsigned long long)sums.counts.lost[QUT_TRACE_LOST_NESTED]);
    stack_high = UINTPTR_MAX - 1;
    append_and_jump(0);
    CHECK(segment_depth(thread) == 0, "depth %u", segment_depth(thread));
    segment_close(&segment);
}

TEST(a_hit_that_was_jumped_out_of_is_counted_as_that)
{
    if (!begin())
        return;
    struct qut_trace_writer *writer = &thread->writers[0];
    append(writer);
    // As if a handler had jumped out between the first words that an append writes and the last.
    writer->under_way = 1;
    writer->counts.hits++;
    CHECK(sums_of().under_way == 1, "%llu", (unsigned long long)sums_of().under_way);
    append(writer);
    struct segment_sums sums = sums_of();
    CHECK(sums.under_way == 0 && sums.counts.lost[QUT_TRACE_LOST_JUMPED] == 1 && sums.counts.hits == 3 &&
              sums.stored == 2,
          "hits %llu", (unsigned long long)sums.counts.hits);
    segment_close(&segment);
}

// As far as a sealing comes before the writer knows of it.
static void seal_and_leave(struct qut_trace_writer *writer)
{
    struct segment_transaction t;
    segment_transaction_begin(&t, &segment, thread, writer);
    segment_transaction_commit(&t);
    const struct qut_trace_commit *commit = &writer->commits[writer->version & 1];
    struct qut_trace_chunk *chunk = segment_chunk_at(&segment, commit->chunk - 1);
    writer->sealing = 1;
    chunk->used_bytes = commit->used_bytes;
    chunk->record_count = commit->record_count;
    chunk->sample_count = commit->chunk_samples;
    segment.directory[commit->chunk - 1] ^= QUT_TRACE_CHUNK_OPEN ^ QUT_TRACE_CHUNK_SEALED;
}

// Every state that the way from one chunk to the next can be left in: nothing is lost, no chunk leaks.
TEST(a_change_of_chunks_can_be_left_anywhere)
{
    for (int state = 0; state < 4; state++) {
        if (!begin())
            return;
        struct qut_trace_writer *writer = &thread->writers[0];
        for (int i = 0; i < 20000; i++) {
            if (i)
                append(writer);
            const struct qut_trace_commit *commit = &writer->commits[writer->version & 1];
            if (i % 1000 > 1)
                continue;
            int now = i % 1000 == 0 ? state : -1;
            if (now == 0)
                writer->sealing = 1; // it was to be sealed, and is not
            if (now == 1 && commit->chunk)
                writer->taking = commit->chunk;   // it was taken, and is in use
            if (now == 2 && commit->chunk == 0) { // one was taken, and is not yet in use
                uint32_t chunk = (uint32_t)segment.header->free_head;
                if (chunk) {
                    segment.header->free_head = segment.free_list[chunk - 1];
                    segment.directory[chunk - 1] =
                        (segment.header->chunk_seq_next++ << QUT_TRACE_CHUNK_SEQ_SHIFT) | QUT_TRACE_CHUNK_OPEN;
                    writer->taking_samples = 0;
                    writer->taking = chunk;
                }
            }
            if (now == 3 && commit->chunk)
                seal_and_leave(writer);
            struct decode d;
            decode_segment(&d, segment.header);
            struct segment_sums sums = sums_of();
            CHECK(!d.fault && d.samples + sums.overwritten == sums.stored + sums.merged, "state %d, hit %d: %llu",
                  state, i, (unsigned long long)d.samples);
            free(d.records);
        }
        segment_thread_end(&segment, thread, 1);
        unsigned open = 0;
        for (uint32_t i = 0; i < segment.chunk_count; i++)
            open += (segment.directory[i] & 3) == QUT_TRACE_CHUNK_OPEN;
        CHECK(open == 0, "state %d: %u are open", state, open);
        segment_close(&segment);
    }
}

int main(void)
{
    RUN(levels_nest_and_deeper_ones_are_refused);
    RUN(a_level_that_was_jumped_out_of_is_given_again);
    RUN(a_hit_that_was_jumped_out_of_is_counted_as_that);
    RUN(a_change_of_chunks_can_be_left_anywhere);
    return tap_finish();
}
