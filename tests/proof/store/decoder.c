// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/store/decoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "formats/qut_table_check.h"

enum { RECORDS_BYTES_MAX = QUT_TRACE_CHUNK_BYTES - (int)sizeof(struct qut_trace_chunk) };

void decoder_fault(struct decoder *decoder, const char *format, ...)
{
    if (decoder->fault_count++ > 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(decoder->fault, sizeof decoder->fault, format, arguments);
    va_end(arguments);
}

static bool is_section(struct decoder *decoder, const char *name, const struct qut_trace_section *section,
                       uint64_t least_bytes)
{
    if (section->offset_bytes % 64 == 0 && section->offset_bytes >= sizeof(struct qut_trace_header) &&
        section->offset_bytes <= decoder->size && section->size_bytes <= decoder->size - section->offset_bytes &&
        section->size_bytes >= least_bytes)
        return true;
    decoder_fault(decoder, "section %s: at %llu, %llu bytes", name, (unsigned long long)section->offset_bytes,
                  (unsigned long long)section->size_bytes);
    return false;
}

bool decoder_open(struct decoder *decoder, const void *bytes, size_t size)
{
    memset(decoder, 0, sizeof *decoder);
    decoder->bytes = bytes;
    decoder->size = size;
    struct qut_trace_header *h = &decoder->header;
    if (size < sizeof *h) {
        decoder_fault(decoder, "shorter than a header");
        return false;
    }
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, QUT_TRACE_MAGIC, 8) != 0 || h->version != QUT_TRACE_VERSION || h->segment_bytes > size) {
        decoder_fault(decoder, "not a segment");
        return false;
    }
    uint64_t ring_bytes = 4 * ((uint64_t)h->ring_capacity + 2 * (uint64_t)h->outer_ring_capacity);
    if (h->thread_capacity > QUT_TRACE_THREADS_MAX || h->chunk_count > QUT_TRACE_CHUNKS_MAX ||
        h->node_capacity > 1u << QUT_TRACE_NODE_BITS_MAX || h->raw_capacity > 1u << QUT_TRACE_RAW_BITS_MAX ||
        h->node_capacity == 0 || h->raw_capacity == 0 || (h->node_capacity & (h->node_capacity - 1)) ||
        (h->raw_capacity & (h->raw_capacity - 1)) || h->thread_stride_bytes % 64 != 0 ||
        h->thread_stride_bytes < sizeof(struct qut_trace_thread) + ring_bytes || h->time_shift > 20 ||
        h->command[sizeof h->command - 1] != 0) {
        decoder_fault(decoder, "the header's capacities");
        return false;
    }
    return is_section(decoder, "counters", &h->counters, sizeof(struct qut_trace_counters)) &&
           is_section(decoder, "threads", &h->threads, (uint64_t)h->thread_capacity * h->thread_stride_bytes) &&
           is_section(decoder, "modules", &h->modules,
                      (uint64_t)h->module_capacity * sizeof(struct qut_trace_module)) &&
           is_section(decoder, "strings", &h->strings, 4) &&
           is_section(decoder, "raw", &h->raw, h->raw_capacity * 8ull) &&
           is_section(decoder, "nodes", &h->nodes, h->node_capacity * 8ull) &&
           is_section(decoder, "free list", &h->free_list, h->chunk_count * 4ull) &&
           is_section(decoder, "directory", &h->directory, h->chunk_count * 8ull) &&
           is_section(decoder, "chunks", &h->chunks, (uint64_t)h->chunk_count * QUT_TRACE_CHUNK_BYTES);
}

static uint64_t word_at(const struct decoder *decoder, uint64_t offset)
{
    return __atomic_load_n((const qut_trace_u64 *)(const void *)(decoder->bytes + offset), __ATOMIC_ACQUIRE);
}

const struct qut_trace_thread *decoder_thread(const struct decoder *decoder, uint32_t slot)
{
    return (const void *)(decoder->bytes + decoder->header.threads.offset_bytes +
                          (uint64_t)slot * decoder->header.thread_stride_bytes);
}

static struct decoded_balance of_counts(const struct qut_trace_counts *counts)
{
    uint64_t passed = counts->passed;
    struct decoded_balance balance = {.hits = counts->hits + passed,
                                      .throttled = counts->throttled + passed,
                                      .marks = counts->marks,
                                      .lost_marks = counts->lost_marks};
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        balance.lost += counts->lost[i];
    for (int i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        balance.cut += counts->cut[i];
    return balance;
}

static struct qut_trace_commit held(const struct qut_trace_writer *writer)
{
    return writer->commits[__atomic_load_n(&writer->version, __ATOMIC_ACQUIRE) & 1];
}

static void close_balance(struct decoded_balance *balance)
{
    balance->under_way = balance->hits - balance->stored - balance->merged - balance->throttled - balance->lost;
}

static struct decoded_balance balance_of(struct decoder *decoder, const struct qut_trace_writer *writer, bool is_last)
{
    struct qut_trace_commit commit = held(writer);
    struct decoded_balance balance = of_counts(&writer->counts);
    balance.stored = commit.stored;
    balance.merged = commit.merged;
    close_balance(&balance);
    // Those that were nested too deep are counted here, too: as a hit, then as lost.
    if (balance.under_way > (is_last ? 8 : 1))
        decoder_fault(decoder, "a writer's balance: %llu hits, %llu stored, %llu merged, %llu throttled, %llu lost",
                      (unsigned long long)balance.hits, (unsigned long long)balance.stored,
                      (unsigned long long)balance.merged, (unsigned long long)balance.throttled,
                      (unsigned long long)balance.lost);
    return balance;
}

static void add_balance(struct decoded_totals *totals, const struct decoded_balance *balance,
                        const struct qut_trace_counts *counts)
{
    struct decoded_balance *sum = &totals->sum;
    sum->hits += balance->hits;
    sum->stored += balance->stored;
    sum->merged += balance->merged;
    sum->throttled += balance->throttled;
    sum->lost += balance->lost;
    sum->marks += balance->marks;
    sum->lost_marks += balance->lost_marks;
    sum->cut += balance->cut;
    for (int i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        totals->lost[i] += counts->lost[i];
}

// A seal that is whole: what a chunk was before it was taken can be told as long as nothing of it was written anew.
static bool is_sealed(const uint8_t *chunk, uint64_t seq)
{
    struct qut_trace_chunk header;
    memcpy(&header, chunk, sizeof header);
    if (header.magic != QUT_TRACE_CHUNK_MAGIC || header.used_bytes > RECORDS_BYTES_MAX || (seq && header.seq != seq))
        return false;
    static _Thread_local union {
        uint8_t bytes[QUT_TRACE_CHUNK_BYTES];
        struct qut_trace_chunk header;
        uint64_t aligned;
    } copy;
    memcpy(copy.bytes, chunk, sizeof header + header.used_bytes);
    copy.header.checksum = 0;
    return qut_table_checksum(copy.bytes, sizeof header + header.used_bytes) == header.checksum;
}

static int64_t sealed_chunk(struct decoder *decoder, const uint8_t *chunk, decoded_fn visit, void *context,
                            uint64_t *marks)
{
    struct qut_trace_chunk header;
    struct decoded_end end;
    memcpy(&header, chunk, sizeof header);
    if (!decoder_records(decoder, &header, chunk + sizeof header, header.used_bytes, visit, context, &end))
        return -1;
    if (end.samples != header.sample_count || end.records != header.record_count || end.time != header.end_time) {
        decoder_fault(decoder, "chunk %llu says %u samples, %u records, end %llu; it has %llu, %u, %llu",
                      (unsigned long long)header.seq, header.sample_count, header.record_count,
                      (unsigned long long)header.end_time, (unsigned long long)end.samples, end.records,
                      (unsigned long long)end.time);
        return -1;
    }
    if (marks)
        *marks += end.marks;
    return (int64_t)end.samples;
}

int64_t decoder_chunk(struct decoder *decoder, const uint8_t *chunk, decoded_fn visit, void *context)
{
    if (!is_sealed(chunk, 0)) {
        decoder_fault(decoder, "a chunk's seal is broken");
        return -1;
    }
    return sealed_chunk(decoder, chunk, visit, context, NULL);
}

static const uint8_t *chunk_at(const struct decoder *decoder, uint32_t index)
{
    return decoder->bytes + decoder->header.chunks.offset_bytes + (uint64_t)index * QUT_TRACE_CHUNK_BYTES;
}

static uint64_t chunk_word(const struct decoder *decoder, uint32_t index)
{
    return word_at(decoder, decoder->header.directory.offset_bytes + 8ull * index);
}

// Is chunk `index`, with that directory word, the open one of a writer?
static bool is_open_of(uint64_t word, uint32_t slot, unsigned level, uint32_t seq)
{
    return (word & 3) == QUT_TRACE_CHUNK_OPEN && (word >> QUT_TRACE_CHUNK_SLOT_SHIFT & 0xffff) == slot &&
           (word >> QUT_TRACE_CHUNK_LEVEL_SHIFT & 3) == level && (uint32_t)(word >> QUT_TRACE_CHUNK_SEQ_SHIFT) == seq;
}

static void open_chunk(struct decoder *decoder, const struct qut_trace_commit *commit, decoded_fn visit, void *context,
                       struct decoded_totals *totals)
{
    const uint8_t *chunk = chunk_at(decoder, commit->chunk - 1);
    struct qut_trace_chunk header;
    struct decoded_end end;
    memcpy(&header, chunk, sizeof header);
    if (header.magic != QUT_TRACE_CHUNK_MAGIC || (uint32_t)header.seq != commit->chunk_seq ||
        commit->used_bytes > RECORDS_BYTES_MAX) {
        decoder_fault(decoder, "open chunk %u: magic %x, seq %llu for %u, %u bytes", commit->chunk - 1, header.magic,
                      (unsigned long long)header.seq, commit->chunk_seq, commit->used_bytes);
        return;
    }
    if (!decoder_records(decoder, &header, chunk + sizeof header, commit->used_bytes, visit, context, &end))
        return;
    totals->in_chunks += end.samples;
    totals->marks_seen += end.marks;
    if (end.samples != commit->chunk_samples || end.records != commit->record_count || end.time != commit->time ||
        ((header.flags & QUT_TRACE_HAS_CPU_TIME) && end.cpu_time != commit->cpu_time) ||
        memcmp(end.metrics, commit->metrics, sizeof end.metrics) != 0)
        decoder_fault(decoder, "open chunk %llu: %llu samples for %u, %u records for %u, time %llu for %llu",
                      (unsigned long long)header.seq, (unsigned long long)end.samples, commit->chunk_samples,
                      end.records, commit->record_count, (unsigned long long)end.time,
                      (unsigned long long)commit->time);
}

static void one_writer(struct decoder *decoder, uint32_t slot, unsigned level, decoded_fn visit, void *context,
                       struct decoded_totals *totals)
{
    const struct qut_trace_thread *thread = decoder_thread(decoder, slot);
    const struct qut_trace_writer *writer = &thread->writers[level];
    struct decoded_balance balance = balance_of(decoder, writer, level == QUT_TRACE_LEVELS - 1);
    add_balance(totals, &balance, &writer->counts);
    for (int i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        totals->totals[i] += writer->totals[i];
    struct qut_trace_commit commit = held(writer);
    if (commit.chunk > decoder->header.chunk_count) {
        decoder_fault(decoder, "slot %u, level %u: chunk %u", slot, level, commit.chunk);
        return;
    }
    totals->overwritten += commit.overwritten;
    uint32_t taking = writer->taking;
    bool has_chunk =
        commit.chunk != 0 && is_open_of(chunk_word(decoder, commit.chunk - 1), slot, level, commit.chunk_seq);
    if (taking > decoder->header.chunk_count) {
        decoder_fault(decoder, "slot %u, level %u: taking %u", slot, level, taking);
    } else if (taking != 0) {
        uint64_t word = chunk_word(decoder, taking - 1);
        uint32_t seq = (uint32_t)(word >> QUT_TRACE_CHUNK_SEQ_SHIFT);
        if (is_open_of(word, slot, level, seq) && !(commit.chunk == taking && commit.chunk_seq == seq))
            totals->overwritten += writer->taking_samples;
    }
    if (has_chunk)
        open_chunk(decoder, &commit, visit, context, totals);
    if (commit.run.count == 0)
        return;
    if (!has_chunk)
        decoder_fault(decoder, "slot %u, level %u: an open record without a chunk", slot, level);
    totals->in_runs += commit.run.count;
    if (commit.run.first_time < commit.time || commit.run.last_time < commit.run.first_time ||
        commit.run.node >= decoder->header.node_capacity)
        decoder_fault(decoder, "slot %u, level %u: the open record", slot, level);
    struct decoded_record record = {.thread_uid = thread->uid,
                                    .tid = thread->tid,
                                    .level = (uint8_t)level,
                                    .is_open = true,
                                    .chunk_seq = UINT64_MAX,
                                    .first_time = commit.run.first_time,
                                    .last_time = commit.run.last_time,
                                    .node = commit.run.node,
                                    .count = commit.run.count,
                                    .kind = commit.run.kind,
                                    .flags = commit.run.flags,
                                    .cpu_time = commit.run.cpu_time};
    memcpy(record.metrics, commit.run.metrics, sizeof record.metrics);
    if (visit)
        visit(context, &record);
}

static void one_chunk(struct decoder *decoder, uint32_t index, decoded_fn visit, void *context,
                      struct decoded_totals *totals)
{
    const uint8_t *chunk = chunk_at(decoder, index);
    uint64_t word = chunk_word(decoder, index);
    uint32_t slot = word >> QUT_TRACE_CHUNK_SLOT_SHIFT & 0xffff;
    unsigned level = word >> QUT_TRACE_CHUNK_LEVEL_SHIFT & 3;
    switch (word & 3) {
    case QUT_TRACE_CHUNK_FREE: totals->free_chunks++; return;
    case QUT_TRACE_CHUNK_SEALED: {
        totals->sealed_chunks++;
        int64_t samples = -1;
        if (is_sealed(chunk, word >> QUT_TRACE_CHUNK_SEQ_SHIFT))
            samples = sealed_chunk(decoder, chunk, visit, context, &totals->marks_seen);
        else
            decoder_fault(decoder, "chunk %u, seq %llu: its seal is broken", index,
                          (unsigned long long)(word >> QUT_TRACE_CHUNK_SEQ_SHIFT));
        if (samples < 0)
            totals->damaged_chunks++;
        else
            totals->in_chunks += (uint64_t)samples;
        return;
    }
    case QUT_TRACE_CHUNK_OPEN:
        totals->open_chunks++;
        if (slot < decoder->header.thread_capacity && level < QUT_TRACE_LEVELS) {
            struct qut_trace_commit commit = held(&decoder_thread(decoder, slot)->writers[level]);
            if (commit.chunk == index + 1 && is_open_of(word, slot, level, commit.chunk_seq))
                return; // with its writer
        }
        totals->begun_chunks++; // nothing is in it yet
        return;
    default: decoder_fault(decoder, "chunk %u: state 3", index);
    }
}

bool decoder_all(struct decoder *decoder, uint64_t collected, decoded_fn visit, void *context,
                 struct decoded_totals *totals)
{
    const struct qut_trace_header *h = &decoder->header;
    const struct qut_trace_counters *counters = (const void *)(decoder->bytes + h->counters.offset_bytes);
    const struct qut_trace_retired *gone =
        &counters->retired[__atomic_load_n(&counters->retired_version, __ATOMIC_ACQUIRE) & 1];
    *totals = (struct decoded_totals){.collected = collected};
    decoder->fault_count = 0;
    for (uint32_t index = 0; index < h->chunk_count; index++)
        one_chunk(decoder, index, visit, context, totals);
    for (uint32_t slot = 0; slot < h->thread_capacity; slot++) {
        uint32_t state = __atomic_load_n(&decoder_thread(decoder, slot)->state, __ATOMIC_ACQUIRE);
        if (state == QUT_TRACE_THREAD_NONE ||
            (state == QUT_TRACE_THREAD_TAKEN && decoder_thread(decoder, slot)->uid == gone->uid))
            continue;
        totals->threads++;
        totals->live_threads += state == QUT_TRACE_THREAD_LIVE;
        for (unsigned level = 0; level < QUT_TRACE_LEVELS; level++)
            one_writer(decoder, slot, level, visit, context, totals);
    }
    struct decoded_balance unowned = of_counts(&counters->unowned), retired = of_counts(&gone->counts);
    retired.stored = gone->stored;
    retired.merged = gone->merged;
    add_balance(totals, &unowned, &counters->unowned);
    add_balance(totals, &retired, &gone->counts);
    for (int i = 0; i < QUT_TRACE_TOTAL_COUNT; i++)
        totals->totals[i] += gone->totals[i] + counters->unowned_totals[i];
    totals->overwritten += gone->overwritten;
    totals->node_count = (uint32_t)counters->node_count;
    close_balance(&totals->sum);
    uint64_t kept = totals->sum.stored + totals->sum.merged;
    if (totals->collected + totals->in_chunks + totals->in_runs + totals->overwritten != kept)
        decoder_fault(decoder, "%llu stored and merged; %llu in chunks, %llu in open records, %llu overwritten",
                      (unsigned long long)kept, (unsigned long long)totals->in_chunks,
                      (unsigned long long)totals->in_runs, (unsigned long long)totals->overwritten);
    return decoder->fault_count == 0;
}

int decoder_stack(struct decoder *decoder, uint32_t node, struct decoded_frame *frames, int max)
{
    const struct qut_trace_header *h = &decoder->header;
    int count = 0;
    while (node != 0) {
        uint64_t word = node < h->node_capacity ? word_at(decoder, h->nodes.offset_bytes + 8ull * node) : 0;
        if (word == 0 || (uint32_t)count >= h->node_capacity) {
            decoder_fault(decoder, "node %u: is none", node);
            return -1;
        }
        unsigned kind = word & ((1u << QUT_TRACE_KIND_BITS) - 1);
        uint64_t code = word >> QUT_TRACE_KIND_BITS & ((1ull << QUT_TRACE_CODE_BITS) - 1);
        unsigned class_ = kind >> QUT_TRACE_CLASS_SHIFT;
        if (class_ == QUT_TRACE_CLASS_RAW || class_ == QUT_TRACE_CLASS_JIT || class_ == QUT_TRACE_CLASS_DEX)
            code = code < h->raw_capacity ? word_at(decoder, h->raw.offset_bytes + 8 * code) : 0;
        if (count < max)
            frames[count] = (struct decoded_frame){code, (uint8_t)class_, (kind & QUT_TRACE_NODE_EXACT) != 0,
                                                   (kind & QUT_TRACE_NODE_GUESSED) != 0};
        count++;
        node = (uint32_t)(word >> QUT_TRACE_PARENT_SHIFT);
    }
    return count;
}

bool decoder_string(const struct decoder *decoder, uint32_t id, char *text, size_t size)
{
    const struct qut_trace_section *section = &decoder->header.strings;
    text[0] = 0;
    if (id == 0)
        return true;
    uint64_t offset = 4ull * id;
    if (offset + 3 > section->size_bytes)
        return false;
    const uint8_t *at = decoder->bytes + section->offset_bytes + offset;
    size_t length = at[0] | (size_t)at[1] << 8;
    if (length + 3 > section->size_bytes - offset || length + 1 > size)
        return false;
    memcpy(text, at + 2, length);
    text[length] = 0;
    return at[2 + length] == 0;
}
