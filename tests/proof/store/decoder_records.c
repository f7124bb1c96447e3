// SPDX-License-Identifier: Apache-2.0
// The records of one chunk.
#include "tests/proof/store/decoder.h"

#include <string.h>

struct bytes {
    const uint8_t *at, *end;
    bool is_bad;
};

static uint8_t take_byte(struct bytes *bytes)
{
    if (bytes->at == bytes->end) {
        bytes->is_bad = true;
        return 0;
    }
    return *bytes->at++;
}

static uint64_t take_number(struct bytes *bytes)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = take_byte(bytes);
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128))
            return value;
    }
    bytes->is_bad = true;
    return 0;
}

static uint64_t take_signed(struct bytes *bytes)
{
    uint64_t value = take_number(bytes);
    return (value >> 1) ^ (0 - (value & 1));
}

static void take_run(struct decoder *decoder, struct bytes *bytes, uint8_t tag, const struct qut_trace_chunk *header,
                     uint32_t *recent, struct decoded_end *end, struct decoded_record *record)
{
    if (tag & QUT_TRACE_TAG_KIND) {
        end->kind = take_byte(bytes);
        end->kind |= (uint32_t)take_byte(bytes) << 8;
    }
    record->kind = end->kind & 0xff;
    record->flags = (uint16_t)(end->kind >> 8);
    if (tag & QUT_TRACE_TAG_RECENT) {
        record->node = recent[take_byte(bytes)];
        if (record->node == 0)
            decoder_fault(decoder, "chunk %llu, thread %u, level %u: record %u names a recent node that there is not",
                          (unsigned long long)header->seq, header->thread_uid, header->level, end->records);
    } else {
        uint64_t node = take_number(bytes);
        if (node >= decoder->header.node_capacity)
            bytes->is_bad = true;
        record->node = (uint32_t)node;
        recent[qut_trace_recent_index(record->node)] = record->node;
    }
    record->first_time = end->time + take_number(bytes);
    record->last_time = record->first_time;
    record->count = 1;
    if (tag & QUT_TRACE_TAG_COUNT) {
        uint64_t count = take_number(bytes) + 2;
        if (count > UINT32_MAX)
            bytes->is_bad = true;
        record->count = (uint32_t)count;
        record->last_time += take_number(bytes);
    }
    uint64_t growth = 0;
    if (header->flags & QUT_TRACE_HAS_CPU_TIME) {
        growth = take_signed(bytes) + end->cpu_step * record->count;
        end->cpu_time += growth;
        end->cpu_step = (uint64_t)((int64_t)growth / (int64_t)(record->count ? record->count : 1));
    }
    record->cpu_time = end->cpu_time;
    end->time = record->last_time;
    if (tag & QUT_TRACE_TAG_METRICS) {
        uint8_t mask = take_byte(bytes);
        if (mask & ~header->metric_mask)
            decoder_fault(decoder, "metrics %x that are not among %x", mask, header->metric_mask);
        for (unsigned i = 0; i < QUT_TRACE_METRIC_COUNT; i++)
            if (mask >> i & 1)
                end->metrics[i] += take_number(bytes);
    }
    memcpy(record->metrics, end->metrics, sizeof record->metrics);
    if (tag & QUT_TRACE_TAG_TOLD) {
        if (!(header->flags & QUT_TRACE_HAS_CPU_TIME))
            bytes->is_bad = true;
        record->extras[0].key = QUT_TRACE_EXTRA_CPU_NS;
        record->extras[0].value = (take_signed(bytes) + growth) << decoder->header.time_shift;
        record->extra_count = 1;
    }
    if (tag & QUT_TRACE_TAG_EXTRAS) {
        uint32_t first = record->extra_count, more = take_byte(bytes);
        if (more == 0 || first + more > QUT_TRACE_EXTRAS_MAX) {
            bytes->is_bad = true;
            more = 0;
        }
        record->extra_count = first + more;
        for (uint32_t i = first; i < record->extra_count; i++) {
            record->extras[i].key = take_byte(bytes);
            record->extras[i].value = take_number(bytes);
            if (record->extras[i].key == QUT_TRACE_EXTRA_RESULT)
                record->extras[i].value = record->extras[i].value >> 1 ^ (0 - (record->extras[i].value & 1));
        }
    }
    end->samples += record->count;
}

bool decoder_records(struct decoder *decoder, const struct qut_trace_chunk *header, const uint8_t *records,
                     uint32_t used_bytes, decoded_fn visit, void *context, struct decoded_end *end)
{
    struct bytes bytes = {records, records + used_bytes, false};
    uint32_t recent[QUT_TRACE_RECENT_COUNT] = {0};
    *end =
        (struct decoded_end){.time = header->base_time, .cpu_time = header->base_cpu_time, .kind = header->base_kind};
    memcpy(end->metrics, header->base_metrics, sizeof end->metrics);
    while (bytes.at < bytes.end) {
        const uint8_t *start = bytes.at;
        struct decoded_record record = {
            .thread_uid = header->thread_uid, .tid = header->tid, .level = header->level, .chunk_seq = header->seq};
        uint8_t tag = take_byte(&bytes);
        switch (tag & QUT_TRACE_TAG_TYPE_MASK) {
        case QUT_TRACE_TAG_RUN: take_run(decoder, &bytes, tag, header, recent, end, &record); break;
        case QUT_TRACE_TAG_MARK:
            record.is_mark = true;
            record.mark_kind = take_byte(&bytes);
            end->time += take_number(&bytes);
            record.first_time = record.last_time = end->time;
            record.id = take_number(&bytes);
            record.string = (uint32_t)take_number(&bytes);
            end->marks++;
            break;
        default: bytes.is_bad = true;
        }
        if (bytes.is_bad || bytes.at - start > QUT_TRACE_RECORD_BYTES_MAX) {
            decoder_fault(decoder, "chunk %llu: a malformed record at %td of %u, tag %x",
                          (unsigned long long)header->seq, start - records, used_bytes, tag);
            return false;
        }
        end->records++;
        if (visit)
            visit(context, &record);
    }
    return true;
}
