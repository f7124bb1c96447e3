// SPDX-License-Identifier: Apache-2.0
#include "libqut/segment/inside.h"

enum {
    TRIES_MAX = 64,
    WINDOW_CHUNKS = 128,    // that are compared when one is taken from another thread
    SCAN_CHUNKS_MAX = 4096, // that are looked at for that
    // In a ring, the low bits of a chunk's seq stand above its index: it may have been taken and used again since.
    RING_INDEX_BITS = 22,
};
static_assert(QUT_TRACE_CHUNKS_MAX <= 1 << RING_INDEX_BITS, "an index fits");

// A stack: the head has the first one's index + 1, and a number that changes with every change, so that a head that
// looks the same is the same. A collector pushes, too; what it writes is not trusted to be an index.
uint32_t segment_pool_pop(struct segment *segment)
{
    qut_trace_u64 *head = &segment->header->free_head;
    uint64_t old = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        uint32_t chunk = (uint32_t)old;
        if (chunk == 0 || chunk > segment->chunk_count)
            return 0;
        uint32_t next = segment_get32(&segment->free_list[chunk - 1]);
        if (next > segment->chunk_count)
            next = 0;
        if (!__atomic_compare_exchange_n(head, &old, ((old >> 32) + 1) << 32 | next, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            continue;
        // Acquire: its former owner is done with it, also where a collector, which is not seen here, came between.
        if (segment_word_state(__atomic_load_n(&segment->directory[chunk - 1], __ATOMIC_ACQUIRE)) ==
            QUT_TRACE_CHUNK_FREE)
            return chunk;
        old = __atomic_load_n(head, __ATOMIC_ACQUIRE); // it was put there by mistake: it has an owner
    }
    return 0;
}

void segment_pool_push(struct segment *segment, uint32_t chunk)
{
    qut_trace_u64 *head = &segment->header->free_head;
    uint64_t old = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        segment_put32(&segment->free_list[chunk - 1], (uint32_t)old);
        if (__atomic_compare_exchange_n(head, &old, ((old >> 32) + 1) << 32 | chunk, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return;
    }
}

static uint32_t *ring_of(const struct segment *segment, uint32_t slot, uint32_t level)
{
    uint32_t *rings = (uint32_t *)(segment_thread_at(segment, slot) + 1);
    return level == 0 ? rings : rings + segment->ring_capacity[0] + (level - 1) * segment->ring_capacity[1];
}

static uint32_t ring_entry(uint32_t index, uint64_t seq)
{
    return (uint32_t)seq << RING_INDEX_BITS | index;
}

void segment_ring_push(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer, uint32_t chunk)
{
    uint32_t level = writer->level, capacity = segment->ring_capacity[level], count = writer->ring_count;
    // A full one has been made room in before; where a handler jumped out meanwhile, others can take the chunk.
    if (segment->mode != QUT_TRACE_OVERWRITE || count >= capacity)
        return;
    uint64_t seq = segment_word_seq(segment_get64(&segment->directory[chunk - 1]));
    segment_put32(&ring_of(segment, slot, level)[(writer->ring_first + count) % capacity], ring_entry(chunk - 1, seq));
    segment_put32(&writer->ring_count, count + 1);
}

// Says what is about to be taken before it is: see `taking`.
static void announce(struct qut_trace_writer *writer, uint32_t chunk, uint32_t samples)
{
    segment_put32(&writer->taking, 0);
    segment_order();
    segment_put32(&writer->taking_samples, samples);
    segment_order();
    segment_put32(&writer->taking, chunk);
    segment_order();
}

static uint64_t next_open_word(struct segment *segment, uint32_t slot, uint32_t level)
{
    uint64_t seq = __atomic_fetch_add(&segment->header->chunk_seq_next, 1, __ATOMIC_RELAXED);
    return segment_directory_word(seq, slot, level, QUT_TRACE_CHUNK_OPEN);
}

static uint32_t take_free(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    uint32_t chunk = segment_pool_pop(segment);
    if (chunk) {
        announce(writer, chunk, 0);
        __atomic_store_n(&segment->directory[chunk - 1], next_open_word(segment, slot, writer->level),
                         __ATOMIC_RELEASE);
    }
    return chunk;
}

// A sealed one, if it still is what `word` says.
static uint32_t take_sealed(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer, uint32_t index,
                            uint64_t word)
{
    // Acquire: what its header says belongs to this word.
    if (__atomic_load_n(&segment->directory[index], __ATOMIC_ACQUIRE) != word)
        return 0;
    announce(writer, index + 1, segment_get32(&segment_chunk_at(segment, index)->sample_count));
    uint64_t open = next_open_word(segment, slot, writer->level);
    if (!__atomic_compare_exchange_n(&segment->directory[index], &word, open, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        segment_put32(&writer->taking, 0);
        return 0;
    }
    segment_count_shared(&segment->counters->overwritten_chunks, 1);
    return index + 1;
}

static uint32_t take_own_oldest(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    uint32_t level = writer->level, capacity = segment->ring_capacity[level];
    const uint32_t *ring = ring_of(segment, slot, level);
    for (int tries = 0; tries < TRIES_MAX && writer->ring_count; tries++) {
        uint32_t first = writer->ring_first % capacity, entry = segment_get32(&ring[first]);
        uint32_t index = entry & ((1u << RING_INDEX_BITS) - 1), chunk = 0;
        uint64_t word = index < segment->chunk_count ? segment_get64(&segment->directory[index]) : 0;
        if (segment_word_state(word) == QUT_TRACE_CHUNK_SEALED && segment_word_slot(word) == slot &&
            segment_word_level(word) == level && ring_entry(index, segment_word_seq(word)) == entry)
            chunk = take_sealed(segment, slot, writer, index, word);
        segment_put32(&writer->ring_first, (first + 1) % capacity);
        segment_put32(&writer->ring_count, writer->ring_count - 1);
        if (chunk)
            return chunk;
    }
    return 0;
}

struct candidate {
    uint32_t index;
    uint64_t word;
    bool has_ended; // its thread
};

// Older, and first of all of a thread that has ended.
static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (b->word == 0 || a->has_ended != b->has_ended)
        return b->word == 0 || a->has_ended;
    return segment_word_seq(a->word) < segment_word_seq(b->word);
}

static struct candidate find_sealed(struct segment *segment)
{
    struct candidate best = {0, 0, false};
    uint32_t count = segment->chunk_count;
    for (uint32_t seen = 0; seen < count && seen < SCAN_CHUNKS_MAX && !best.word; seen += WINDOW_CHUNKS) {
        uint32_t hand = __atomic_fetch_add(&segment->chunk_hand, WINDOW_CHUNKS, __ATOMIC_RELAXED);
        for (uint32_t i = 0; i < WINDOW_CHUNKS && i < count; i++) {
            struct candidate one = {.index = (hand + i) % count};
            one.word = segment_get64(&segment->directory[one.index]);
            uint32_t slot = segment_word_slot(one.word);
            if (segment_word_state(one.word) != QUT_TRACE_CHUNK_SEALED || slot >= segment->thread_capacity)
                continue;
            one.has_ended = segment_get32(&segment_thread_at(segment, slot)->state) != QUT_TRACE_THREAD_LIVE;
            if (is_better(&one, &best))
                best = one;
        }
    }
    return best;
}

static uint32_t take_from_others(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    for (int tries = 0; tries < 4; tries++) {
        struct candidate best = find_sealed(segment);
        uint32_t chunk = best.word ? take_sealed(segment, slot, writer, best.index, best.word) : 0;
        if (chunk || !best.word)
            return chunk;
    }
    return 0;
}

bool segment_pool_has_taken(const struct segment *segment, uint32_t slot, const struct qut_trace_writer *writer)
{
    uint32_t chunk = writer->taking;
    if (chunk == 0 || chunk > segment->chunk_count)
        return false;
    const struct qut_trace_commit *commit = &writer->commits[segment_get32(&writer->version) & 1];
    uint64_t word = segment_get64(&segment->directory[chunk - 1]);
    return segment_word_state(word) == QUT_TRACE_CHUNK_OPEN && segment_word_slot(word) == slot &&
           segment_word_level(word) == writer->level &&
           !(commit->chunk == chunk && commit->chunk_seq == (uint32_t)segment_word_seq(word));
}

uint32_t segment_pool_take(struct segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    if (segment_pool_has_taken(segment, slot, writer))
        return writer->taking;
    if (segment->mode == QUT_TRACE_STREAM)
        return take_free(segment, slot, writer);
    uint32_t level = writer->level, chunk = 0;
    if (writer->ring_count >= segment->ring_capacity[level])
        chunk = take_own_oldest(segment, slot, writer);
    if (!chunk)
        chunk = take_free(segment, slot, writer);
    if (chunk)
        return chunk;
    // A writer that has far less than others takes theirs, until all have about the same.
    uint32_t threads = segment_get32(&segment->header->thread_count);
    uint32_t share = level == 0 ? segment->chunk_count / (2 * (threads ? threads : 1)) : 1;
    if (writer->ring_count >= share)
        chunk = take_own_oldest(segment, slot, writer);
    if (!chunk)
        chunk = take_from_others(segment, slot, writer);
    return chunk ? chunk : take_own_oldest(segment, slot, writer);
}
