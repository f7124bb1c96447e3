// SPDX-License-Identifier: Apache-2.0
// Where chunks come from, and what happens when there are none: the two modes, threads beside each other, merging.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/include/qut/trace.h"
#include "libqut/segment/segment.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/segment/decode.h"

enum { UNIT_NS = 1 << QUT_TRACE_TIME_SHIFT, MS = 1000000 };

struct play {
    struct segment segment;
    uint32_t nodes[64];
};

static bool begin(struct play *play, uint32_t mode, uint64_t bytes)
{
    struct segment_options options = {.segment_bytes = bytes, .mode = mode, .thread_count = 4, .node_bits = 10};
    int result = segment_create(&play->segment, &options);
    for (uint32_t i = 0; i < 64 && result == 0; i++)
        play->nodes[i] = segment_node(&play->segment, 0, 4096 + i, 0);
    return CHECK(result == 0, "%d", result);
}

static int put(struct play *play, struct qut_trace_thread *thread, uint32_t node, uint64_t time_ns)
{
    struct qut_trace_writer *writer = segment_begin(thread, 0, 0, 0);
    struct segment_sample sample = {.time_ns = time_ns, .node = node, .kind = QUT_TRACE_KIND_WALL};
    int stored = segment_append(&play->segment, thread, writer, &sample);
    segment_end_of(thread);
    return stored;
}

static struct segment_sums sums_of(const struct play *play)
{
    struct segment_sums sums;
    segment_sum(&play->segment, &sums);
    return sums;
}

static uint64_t present(const struct play *play, uint32_t uid, uint64_t *oldest, uint64_t *newest)
{
    struct decode d;
    decode_segment(&d, play->segment.header);
    CHECK(!d.fault, "%s", d.fault);
    uint64_t samples = 0;
    *oldest = UINT64_MAX;
    *newest = 0;
    for (size_t i = 0; i < d.count; i++) {
        const struct decoded *record = &d.records[i];
        if (record->uid != uid)
            continue;
        samples += record->count;
        *oldest = record->first_time < *oldest ? record->first_time : *oldest;
        *newest = record->last_time > *newest ? record->last_time : *newest;
    }
    free(d.records);
    return samples;
}

TEST(equal_neighbours_merge_up_to_the_gap)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    struct qut_trace_thread *thread = segment_thread_begin(&play.segment, 1, "t", 1);
    uint64_t gap = play.segment.merge_gap_units << QUT_TRACE_TIME_SHIFT, t = (uint64_t)UNIT_NS << 20;
    CHECK(put(&play, thread, play.nodes[1], t) == QUT_STORED, "the first");
    CHECK(put(&play, thread, play.nodes[1], t) == QUT_STORED_MERGED, "at the same time");
    CHECK(put(&play, thread, play.nodes[1], t += gap) == QUT_STORED_MERGED, "at the limit");
    CHECK(put(&play, thread, play.nodes[1], t += gap + UNIT_NS) == QUT_STORED, "beyond it");
    CHECK(put(&play, thread, play.nodes[2], t) == QUT_STORED, "another node");
    CHECK(put(&play, thread, play.nodes[2], t - 2 * UNIT_NS) == QUT_STORED, "time going back");
    CHECK(put(&play, thread, play.nodes[2], t) == QUT_STORED, "after what stood alone");
    CHECK(put(&play, thread, play.nodes[2], t) == QUT_STORED_MERGED, "equal again");
    struct decode d;
    decode_segment(&d, play.segment.header);
    CHECK(d.count == 5 && d.records[0].count == 3 && d.records[3].extra_values[0] == 2 * UNIT_NS, "%zu records",
          d.count);
    free(d.records);
    segment_close(&play.segment);
}

TEST(overwriting_keeps_the_newest_of_each_thread)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    // A thread that says much, one that says a tenth of that, and one that says little, and ends.
    struct qut_trace_thread *threads[3];
    uint64_t put_count[3] = {0}, times[3] = {0};
    for (uint32_t i = 0; i < 3; i++)
        threads[i] = segment_thread_begin(&play.segment, i, "t", 1);
    for (uint32_t i = 0; i < 2000000; i++) {
        uint32_t which = i < 3000 && i % 3 == 2 ? 2 : i % 10 == 0;
        if (i == 3000)
            segment_thread_end(&play.segment, threads[2], 1);
        times[which] = (uint64_t)(i + 1) * 1000;
        put(&play, threads[which], play.nodes[i % 63], times[which]);
        put_count[which]++;
    }
    struct segment_sums sums = sums_of(&play);
    uint64_t all = 0, oldest, newest;
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t there = present(&play, i + 1, &oldest, &newest);
        all += there;
        CHECK(i == 2 || newest == times[i] >> QUT_TRACE_TIME_SHIFT, "thread %u: the newest is missing", i);
        CHECK(i == 2 || there > 10000, "thread %u: only %llu of %llu", i, (unsigned long long)there,
              (unsigned long long)put_count[i]);
        if (i < 2) // nothing is missing between the oldest and the newest
            CHECK(there * (i == 0 ? 10000 / 9 : 10000) / UNIT_NS < newest - oldest + 200 &&
                      there * (i == 0 ? 10000 / 9 : 10000) / UNIT_NS + 200 > newest - oldest,
                  "thread %u: %llu in %llu units", i, (unsigned long long)there, (unsigned long long)(newest - oldest));
    }
    CHECK(sums.stored == 2000000 && sums.counts.hits == 2000000 && all + sums.overwritten == 2000000, "%llu + %llu",
          (unsigned long long)all, (unsigned long long)sums.overwritten);
    segment_close(&play.segment);
}

TEST(who_comes_late_gets_chunks_of_others)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    struct qut_trace_thread *threads[4];
    uint64_t count = 0, oldest, newest;
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = segment_thread_begin(&play.segment, i, "t", 1);
        for (uint32_t j = 0; j < 200000; j++, count++)
            CHECK(put(&play, threads[i], play.nodes[j % 63], (count + 1) * 1000) == QUT_STORED, "%u", j);
        uint64_t there = present(&play, i + 1, &oldest, &newest);
        CHECK(there > 10000, "thread %u has %llu", i, (unsigned long long)there);
    }
    segment_close(&play.segment);
}

TEST(streaming_refuses_and_goes_on)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_STREAM, 1 << 20))
        return;
    struct qut_trace_thread *thread = segment_thread_begin(&play.segment, 1, "t", 1);
    uint64_t time = MS, stored = 0;
    while (put(&play, thread, play.nodes[stored % 63], time += MS) == QUT_STORED)
        stored++;
    for (int i = 0; i < 1000; i++)
        CHECK(put(&play, thread, play.nodes[i % 63], time += MS) == QUT_STORED_NOT, "%d", i);
    struct segment_sums sums = sums_of(&play);
    CHECK(sums.counts.lost[QUT_TRACE_LOST_POOL] == 1001 && sums.stored == stored && sums.under_way == 0, "%llu",
          (unsigned long long)sums.counts.lost[QUT_TRACE_LOST_POOL]);
    uint64_t oldest, newest;
    CHECK(present(&play, 1, &oldest, &newest) == stored, "not all is there");
    // As a collector does it: a sealed chunk becomes a free one, then the first of the list.
    struct segment *s = &play.segment;
    uint32_t index = 0;
    while ((s->directory[index] & 3) != QUT_TRACE_CHUNK_SEALED)
        index++;
    const struct qut_trace_chunk *chunk = (const struct qut_trace_chunk *)(s->chunks + (size_t)index * 4096);
    uint64_t collected = chunk->sample_count;
    s->directory[index] = 0;
    s->free_list[index] = (uint32_t)s->header->free_head;
    s->header->free_head = ((s->header->free_head >> 32) + 1) << 32 | (index + 1);
    uint64_t more = 0;
    while (put(&play, thread, play.nodes[more % 63], time += MS) == QUT_STORED)
        more++;
    CHECK(more > 300, "%llu", (unsigned long long)more);
    CHECK(present(&play, 1, &oldest, &newest) == stored + more - collected, "not all is there");
    struct decode d;
    decode_segment(&d, play.segment.header);
    CHECK(d.count && d.records[d.count - 1].last_time - d.records[d.count - 2].last_time <= MS >> 6, "the last ones");
    free(d.records);
    segment_close(&play.segment);
}

// Else a head may look the same, although chunks went and came since it was read.
TEST(a_chunk_that_is_taken_changes_the_heads_number)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_STREAM, 1 << 20))
        return;
    const struct qut_trace_header *header = play.segment.header;
    struct qut_trace_thread *thread = segment_thread_begin(&play.segment, 1, "t", 1);
    uint64_t before = header->free_head;
    CHECK(put(&play, thread, play.nodes[1], MS) == QUT_STORED, "stored");
    uint64_t taken = header->free_head;
    CHECK((uint32_t)taken != (uint32_t)before && taken >> 32 != before >> 32, "taken: %llx, %llx",
          (unsigned long long)before, (unsigned long long)taken);
    segment_close(&play.segment);
}

// What was lost inside a chunk stands between the counts at its two ends.
TEST(chunks_say_what_was_lost_in_them)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    struct segment *s = &play.segment;
    struct qut_trace_thread *thread = segment_thread_begin(s, 1, "t", 1);
    struct qut_trace_writer *writer = &thread->writers[0];
    uint64_t time = MS, lost = 0, seen = 0;
    for (uint32_t i = 0, chunk = 0; i < 20000; i++) {
        put(&play, thread, play.nodes[i % 63], time += MS);
        uint32_t now = writer->commits[writer->version & 1].chunk;
        if (now == chunk)
            continue;
        const struct qut_trace_chunk *begun = (const void *)(s->chunks + (size_t)(now - 1) * QUT_TRACE_CHUNK_BYTES);
        CHECK(begun->lost_before == lost, "%llu before, not %llu", (unsigned long long)begun->lost_before,
              (unsigned long long)lost);
        if (chunk) {
            const struct qut_trace_chunk *sealed =
                (const void *)(s->chunks + (size_t)(chunk - 1) * QUT_TRACE_CHUNK_BYTES);
            CHECK(sealed->lost_at_end == lost && sealed->lost_before + 3 == lost, "%llu to %llu, not %llu",
                  (unsigned long long)sealed->lost_before, (unsigned long long)sealed->lost_at_end,
                  (unsigned long long)lost);
            seen++;
        }
        chunk = now;
        for (int j = 0; j < 3; j++, lost++)
            segment_lose(writer, QUT_TRACE_LOST_BAD);
    }
    CHECK(seen > 10, "%llu chunks", (unsigned long long)seen);
    segment_close(s);
}

// So that all those of a chunk can be counted in 32 bits.
TEST(a_run_has_an_end)
{
    enum { RUN_SAMPLES_MAX = 1 << 20 };
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    struct qut_trace_thread *thread = segment_thread_begin(&play.segment, 1, "t", 1);
    uint32_t merged = 0;
    for (uint32_t i = 0; i < RUN_SAMPLES_MAX; i++)
        merged += put(&play, thread, play.nodes[1], MS) == QUT_STORED_MERGED;
    CHECK(merged == RUN_SAMPLES_MAX - 1, "%u", merged);
    CHECK(put(&play, thread, play.nodes[1], MS) == QUT_STORED, "one more");
    CHECK(put(&play, thread, play.nodes[1], MS) == QUT_STORED_MERGED, "with that one");
    struct decode d;
    decode_segment(&d, play.segment.header);
    CHECK(!d.fault && d.count == 2 && d.records[0].count == RUN_SAMPLES_MAX && d.records[1].count == 2, "%zu records",
          d.count);
    free(d.records);
    segment_close(&play.segment);
}

TEST(a_free_list_of_others_making_is_not_trusted)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_STREAM, 1 << 20))
        return;
    struct qut_trace_thread *thread = segment_thread_begin(&play.segment, 1, "t", 1);
    struct segment *s = &play.segment;
    s->header->free_head = s->chunk_count + 1; // beyond the last
    CHECK(put(&play, thread, play.nodes[1], MS) == QUT_STORED_NOT, "a chunk that is none");
    s->free_list[0] = UINT32_MAX;
    s->header->free_head = 1;
    CHECK(put(&play, thread, play.nodes[1], MS) == QUT_STORED, "the first is good");
    CHECK((uint32_t)s->header->free_head == 0, "what it leads to is not");
    s->header->free_head = 1; // is open
    struct qut_trace_thread *other = segment_thread_begin(&play.segment, 2, "u", 1);
    CHECK(put(&play, other, play.nodes[1], MS) == QUT_STORED_NOT, "a chunk of another writer");
    segment_close(&play.segment);
}

TEST(a_thread_that_ends_leaves_sealed_chunks)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    struct qut_trace_thread *a = segment_thread_begin(&play.segment, 1, "a", 1);
    struct qut_trace_thread *b = segment_thread_begin(&play.segment, 2, "b", 1);
    put(&play, a, play.nodes[1], MS);
    put(&play, b, play.nodes[1], MS);
    put(&play, a, play.nodes[1], 2 * MS);
    segment_thread_end(&play.segment, a, 3 * MS);
    struct decode d;
    decode_segment(&d, play.segment.header);
    CHECK(d.sealed_chunks == 1 && d.open_chunks == 1 && d.samples == 3 && !d.fault, "%llu sealed",
          (unsigned long long)d.sealed_chunks);
    free(d.records);
    segment_close(&play.segment);
}

struct burst {
    struct play *play;
    uint32_t tid;
};

static void *append_many(void *argument)
{
    struct burst *burst = argument;
    struct play *play = burst->play;
    struct qut_trace_thread *thread = segment_thread_begin(&play->segment, burst->tid, "burst", 1);
    for (uint32_t i = 0; thread && i < 200000; i++)
        put(play, thread, play->nodes[i * 7 / 3 % 61], (uint64_t)i * 1000);
    if (thread)
        segment_thread_end(&play->segment, thread, 1);
    return NULL;
}

TEST(threads_beside_each_other_lose_nothing)
{
    for (uint32_t mode = QUT_TRACE_OVERWRITE; mode <= QUT_TRACE_STREAM; mode++) {
        struct play play;
        if (!begin(&play, mode, 1 << 20))
            return;
        pthread_t threads[4];
        struct burst bursts[4];
        for (uint32_t i = 0; i < 4; i++) {
            bursts[i] = (struct burst){&play, i};
            CHECK(pthread_create(&threads[i], NULL, append_many, &bursts[i]) == 0, "no thread");
        }
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        struct segment_sums sums = sums_of(&play);
        struct decode d;
        decode_segment(&d, play.segment.header);
        CHECK(sums.counts.hits == 800000 && sums.under_way == 0 && !d.fault &&
                  sums.stored + sums.merged + sums.counts.lost[QUT_TRACE_LOST_POOL] == 800000 &&
                  d.samples + sums.overwritten == sums.stored + sums.merged,
              "mode %u: hits %llu, stored %llu, there %llu, overwritten %llu", mode,
              (unsigned long long)sums.counts.hits, (unsigned long long)sums.stored, (unsigned long long)d.samples,
              (unsigned long long)sums.overwritten);
        CHECK(d.open_chunks == 0 && (mode == QUT_TRACE_STREAM || sums.counts.lost[QUT_TRACE_LOST_POOL] == 0),
              "lost %llu", (unsigned long long)sums.counts.lost[QUT_TRACE_LOST_POOL]);
        free(d.records);
        segment_close(&play.segment);
    }
}

// A result below 0 is as short as one above.
TEST(results_have_a_sign)
{
    struct play play;
    if (!begin(&play, QUT_TRACE_OVERWRITE, 1 << 20))
        return;
    struct qut_trace_thread *thread = segment_thread_begin(&play.segment, 1, "t", 1);
    const struct segment_extra extras[] = {{.key = QUT_TRACE_EXTRA_RESULT, .value = (uint64_t)-1},
                                           {.key = QUT_TRACE_EXTRA_RESULT, .value = (uint64_t)INT64_MIN},
                                           {.key = QUT_TRACE_EXTRA_SIZE, .value = UINT64_MAX}};
    struct qut_trace_writer *writer = &thread->writers[0];
    for (uint32_t count = 1; count <= 3; count += 2) {
        struct segment_sample sample = {
            .time_ns = 1000 * MS, .node = play.nodes[1], .extras = extras, .extra_count = count};
        CHECK(segment_begin(thread, 0, 0, 0) == writer, "level 0");
        CHECK(segment_append(&play.segment, thread, writer, &sample) == QUT_STORED, "stored");
        segment_end_of(thread);
        uint32_t used_bytes = writer->commits[writer->version & 1].used_bytes;
        CHECK(count > 1 || used_bytes <= 12, "%u bytes", used_bytes);
    }
    struct decode d;
    decode_segment(&d, play.segment.header);
    if (CHECK(!d.fault && d.count == 2 && d.records[1].extra_count == 3, "%zu records", d.count))
        for (size_t i = 0; i < 4; i++)
            CHECK(d.records[i != 0].extra_values[i ? i - 1 : 0] == extras[i ? i - 1 : 0].value, "extra %zu", i);
    free(d.records);
    segment_close(&play.segment);
}

int main(void)
{
    RUN(results_have_a_sign);
    RUN(equal_neighbours_merge_up_to_the_gap);
    RUN(overwriting_keeps_the_newest_of_each_thread);
    RUN(who_comes_late_gets_chunks_of_others);
    RUN(streaming_refuses_and_goes_on);
    RUN(a_chunk_that_is_taken_changes_the_heads_number);
    RUN(chunks_say_what_was_lost_in_them);
    RUN(a_run_has_an_end);
    RUN(a_free_list_of_others_making_is_not_trusted);
    RUN(a_thread_that_ends_leaves_sealed_chunks);
    RUN(threads_beside_each_other_lose_nothing);
    return tap_finish();
}
