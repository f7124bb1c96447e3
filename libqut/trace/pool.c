// SPDX-License-Identifier: Apache-2.0
#include "libqut/trace/inside.h"

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
uint32_t qut_pool_pop(struct qut_segment *segment)
{
    qut_trace_u64 *head = &segment->header->free_head;
    uint64_t old = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        uint32_t chunk = (uint32_t)old;
        if (chunk == 0 || chunk > segment->chunk_count)
            return 0;
        uint32_t next = qut_get32(&segment->free_list[chunk - 1]);
        if (next > segment->chunk_count)
            next = 0;
        if (!__atomic_compare_exchange_n(head, &old, ((old >> 32) + 1) << 32 | next, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            continue;
        // Acquire: who had it before is done with it, also where a collector, which nobody here sees, came between.
        if (qut_word_state(__atomic_load_n(&segment->directory[chunk - 1], __ATOMIC_ACQUIRE)) == QUT_TRACE_CHUNK_FREE)
            return chunk;
        old = __atomic_load_n(head, __ATOMIC_ACQUIRE); // somebody put it there who must not: it is somebody's
    }
    return 0;
}

void qut_pool_push(struct qut_segment *segment, uint32_t chunk)
{
    qut_trace_u64 *head = &segment->header->free_head;
    uint64_t old = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        qut_put32(&segment->free_list[chunk - 1], (uint32_t)old);
        if (__atomic_compare_exchange_n(head, &old, ((old >> 32) + 1) << 32 | chunk, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return;
    }
}

static uint32_t *ring_of(const struct qut_segment *segment, uint32_t slot, uint32_t level)
{
    uint32_t *rings = (uint32_t *)(qut_thread_at(segment, slot) + 1);
    return level == 0 ? rings : rings + segment->ring_capacity[0] + (level - 1) * segment->ring_capacity[1];
}

static uint32_t ring_entry(uint32_t index, uint64_t seq)
{
    return (uint32_t)seq << RING_INDEX_BITS | index;
}

void qut_ring_push(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer, uint32_t chunk)
{
    uint32_t level = writer->level, capacity = segment->ring_capacity[level], count = writer->ring_count;
    // A full one has been made room in before; where a handler jumped out meanwhile, others can take the chunk.
    if (segment->mode != QUT_TRACE_OVERWRITE || count >= capacity)
        return;
    uint64_t seq = qut_word_seq(qut_get64(&segment->directory[chunk - 1]));
    qut_put32(&ring_of(segment, slot, level)[(writer->ring_first + count) % capacity], ring_entry(chunk - 1, seq));
    qut_put32(&writer->ring_count, count + 1);
}

// Says what is about to be taken before it is: see `taking`.
static void announce(struct qut_trace_writer *writer, uint32_t chunk, uint32_t samples)
{
    qut_put32(&writer->taking, 0);
    qut_order();
    qut_put32(&writer->taking_samples, samples);
    qut_order();
    qut_put32(&writer->taking, chunk);
    qut_order();
}

static uint64_t next_open_word(struct qut_segment *segment, uint32_t slot, uint32_t level)
{
    uint64_t seq = __atomic_fetch_add(&segment->header->chunk_seq_next, 1, __ATOMIC_RELAXED);
    return qut_directory_word(seq, slot, level, QUT_TRACE_CHUNK_OPEN);
}

static uint32_t take_free(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    uint32_t chunk = qut_pool_pop(segment);
    if (chunk) {
        announce(writer, chunk, 0);
        __atomic_store_n(&segment->directory[chunk - 1], next_open_word(segment, slot, writer->level),
                         __ATOMIC_RELEASE);
    }
    return chunk;
}

// A sealed one, if it still is what `word` says.
static uint32_t take_sealed(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer, uint32_t index,
                            uint64_t word)
{
    // Acquire: what its header says belongs to this word.
    if (__atomic_load_n(&segment->directory[index], __ATOMIC_ACQUIRE) != word)
        return 0;
    announce(writer, index + 1, qut_get32(&qut_chunk_at(segment, index)->sample_count));
    uint64_t open = next_open_word(segment, slot, writer->level);
    if (!__atomic_compare_exchange_n(&segment->directory[index], &word, open, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        qut_put32(&writer->taking, 0);
        return 0;
    }
    qut_count_shared(&segment->counters->overwritten_chunks, 1);
    return index + 1;
}

static uint32_t take_own_oldest(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    uint32_t level = writer->level, capacity = segment->ring_capacity[level];
    const uint32_t *ring = ring_of(segment, slot, level);
    for (int tries = 0; tries < TRIES_MAX && writer->ring_count; tries++) {
        uint32_t first = writer->ring_first % capacity, entry = qut_get32(&ring[first]);
        uint32_t index = entry & ((1u << RING_INDEX_BITS) - 1), chunk = 0;
        uint64_t word = index < segment->chunk_count ? qut_get64(&segment->directory[index]) : 0;
        if (qut_word_state(word) == QUT_TRACE_CHUNK_SEALED && qut_word_slot(word) == slot &&
            qut_word_level(word) == level && ring_entry(index, qut_word_seq(word)) == entry)
            chunk = take_sealed(segment, slot, writer, index, word);
        qut_put32(&writer->ring_first, (first + 1) % capacity);
        qut_put32(&writer->ring_count, writer->ring_count - 1);
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
    return qut_word_seq(a->word) < qut_word_seq(b->word);
}

static struct candidate find_sealed(struct qut_segment *segment)
{
    struct candidate best = {0, 0, false};
    uint32_t count = segment->chunk_count;
    for (uint32_t seen = 0; seen < count && seen < SCAN_CHUNKS_MAX && !best.word; seen += WINDOW_CHUNKS) {
        uint32_t hand = __atomic_fetch_add(&segment->chunk_hand, WINDOW_CHUNKS, __ATOMIC_RELAXED);
        for (uint32_t i = 0; i < WINDOW_CHUNKS && i < count; i++) {
            struct candidate one = {.index = (hand + i) % count};
            one.word = qut_get64(&segment->directory[one.index]);
            uint32_t slot = qut_word_slot(one.word);
            if (qut_word_state(one.word) != QUT_TRACE_CHUNK_SEALED || slot >= segment->thread_capacity)
                continue;
            one.has_ended = qut_get32(&qut_thread_at(segment, slot)->state) != QUT_TRACE_THREAD_LIVE;
            if (is_better(&one, &best))
                best = one;
        }
    }
    return best;
}

static uint32_t take_from_others(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    for (int tries = 0; tries < 4; tries++) {
        struct candidate best = find_sealed(segment);
        uint32_t chunk = best.word ? take_sealed(segment, slot, writer, best.index, best.word) : 0;
        if (chunk || !best.word)
            return chunk;
    }
    return 0;
}

bool qut_pool_has_taken(const struct qut_segment *segment, uint32_t slot, const struct qut_trace_writer *writer)
{
    uint32_t chunk = writer->taking;
    if (chunk == 0 || chunk > segment->chunk_count)
        return false;
    const struct qut_trace_commit *commit = &writer->commits[qut_get32(&writer->version) & 1];
    uint64_t word = qut_get64(&segment->directory[chunk - 1]);
    return qut_word_state(word) == QUT_TRACE_CHUNK_OPEN && qut_word_slot(word) == slot &&
           qut_word_level(word) == writer->level &&
           !(commit->chunk == chunk && commit->chunk_seq == (uint32_t)qut_word_seq(word));
}

uint32_t qut_pool_take(struct qut_segment *segment, uint32_t slot, struct qut_trace_writer *writer)
{
    if (qut_pool_has_taken(segment, slot, writer))
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
    // Who has far less than others takes theirs, until all have about the same.
    uint32_t threads = qut_get32(&segment->header->thread_count);
    uint32_t share = level == 0 ? segment->chunk_count / (2 * (threads ? threads : 1)) : 1;
    if (writer->ring_count >= share)
        chunk = take_own_oldest(segment, slot, writer);
    if (!chunk)
        chunk = take_from_others(segment, slot, writer);
    return chunk ? chunk : take_own_oldest(segment, slot, writer);
}
