// SPDX-License-Identifier: Apache-2.0
// Traces. The first byte says as what the rest is read: as it is; as the sections of a small segment with a good
// header; as the contents of a file's blocks with good checksums.
#include "formats/qut_table_check.h"
#include "formats/qut_trace_file.h"
#include "tests/proof/fuzz/fuzz.h"
#include "tests/proof/fuzz/segment_input.h"
#include "tracer/trace/raw_trace.h"

// What has a number has a name; what is open lasts no less than it has.
static void read_words(const struct trace *trace)
{
    for (size_t i = 0; i < trace->thread_count; i++) {
        const struct trace_thread *thread = &trace->threads[i];
        const struct trace_process process = trace_process_of(trace, thread);
        fuzz_require(process.command != NULL);
        for (size_t j = 0; j < thread->sample_count; j++) {
            const struct trace_sample *sample = &trace->samples[thread->first_sample + j];
            uint64_t value;
            if (sample->is_open)
                fuzz_require(trace_open_until(trace, thread, sample) >= sample->last_ns);
            for (size_t k = 0; k < sample->extra_count; k++)
                fuzz_require(trace_extra_name(trace->extras[sample->first_extra + k].key)[0] &&
                             trace_extra(trace, sample, trace->extras[sample->first_extra + k].key, &value));
        }
    }
    for (unsigned i = 0; i < 256; i++)
        fuzz_require(trace_metric_name(i)[0] && trace_total_name(i)[0] && trace_lost_name(i)[0] &&
                     trace_cut_name(i)[0]);
    for (size_t i = 0; i < trace->note_count && i < 16; i++) {
        uint64_t value;
        trace_note_sum(trace, trace->notes[i].name);
        trace_note_number(trace, i % 2 ? 0 : TRACE_NONE, trace->notes[i].name, &value);
    }
}

static void read_all(uint8_t *bytes, size_t size)
{
    struct trace trace;
    struct base_error error = {0};
    if (trace_read_bytes(bytes, size, "fuzz", &trace, &error) != 0) {
        fuzz_require(error.reason != BASE_OK);
        return;
    }
    uint64_t present = 0;
    fuzz_require(trace.process_count > 0);
    for (size_t i = 0; i < trace.thread_count; i++) {
        const struct trace_thread *thread = &trace.threads[i];
        fuzz_require(thread->process < trace.process_count &&
                     thread->first_sample + thread->sample_count <= trace.sample_count &&
                     thread->first_mark + thread->mark_count <= trace.mark_count &&
                     thread->first_gap + thread->gap_count <= trace.gap_count);
    }
    for (size_t i = 0; i < trace.note_count; i++)
        fuzz_require(strlen(trace.notes[i].name) < QUT_TRACE_FILE_NOTE_BYTES_MAX);
    for (size_t i = 0; i < trace.sample_count; i++) {
        const struct trace_sample *sample = &trace.samples[i];
        fuzz_require(sample->node < trace.node_count && sample->first_extra + sample->extra_count <= trace.extra_count);
        fuzz_require(sample->metrics == TRACE_NONE || sample->metrics < trace.metrics_count);
        fuzz_require(trace_kind_name(&trace, sample->kind)[0] != 0);
        present += sample->count;
    }
    fuzz_require(present == trace.present_samples);
    for (size_t i = 1; i < trace.node_count; i++) {
        const struct trace_node *node = &trace.nodes[i];
        fuzz_require(node->parent < i && (node->module == TRACE_NONE || node->module < trace.module_count));
        fuzz_require(node->class_ < QUT_TRACE_CLASS_COUNT);
        fuzz_require(!node->label || strlen(node->label) < 1000);
    }
    for (size_t i = 0; i < trace.module_count; i++)
        fuzz_require(strlen(trace.modules[i].path) <= QUT_TRACE_STRING_BYTES_MAX);
    read_words(&trace);
    struct trace_balance balance = trace_balance(&trace);
    fuzz_require(!trace.is_complete || (!balance.hits_missing && !balance.samples_missing));
    trace_free(&trace);
}

static void as_segment(const uint8_t *data, size_t size)
{
    size_t segment_bytes;
    uint8_t *bytes = fuzz_segment(data, size, &segment_bytes);
    read_all(bytes, segment_bytes);
    free(bytes);
}

struct output {
    uint8_t *bytes;
    size_t size;
    uint32_t blocks;
};

static void add_block(struct output *output, unsigned type, const void *contents, size_t size)
{
    struct qut_trace_file_block block = {.magic = QUT_TRACE_FILE_BLOCK_MAGIC,
                                         .type = (uint8_t)type,
                                         .index = output->blocks++,
                                         .packed_bytes = (uint32_t)size,
                                         .unpacked_bytes = (uint32_t)size,
                                         .contents_checksum = qut_table_checksum(contents, size)};
    block.checksum = qut_table_checksum(&block, offsetof(struct qut_trace_file_block, checksum));
    memcpy(output->bytes + output->size, &block, sizeof block);
    memcpy(output->bytes + output->size + sizeof block, contents, size);
    output->size += sizeof block + size;
}

// Chunks' own checksums, in a block of them.
static void seal_block(uint8_t *contents, size_t size)
{
    uint32_t count;
    struct qut_trace_file_chunk told;
    struct qut_trace_chunk chunk[QUT_TRACE_CHUNK_BYTES / sizeof(struct qut_trace_chunk) + 1];
    if (size < 8)
        return;
    memcpy(&count, contents, 4);
    count %= 4;
    memcpy(contents, &count, 4);
    size_t headers = 8 + count * sizeof told, records = headers + count * sizeof *chunk;
    for (uint32_t i = 0; i < count && records <= size; i++) {
        uint8_t *at = contents + 8 + i * sizeof told, *header = contents + headers + i * sizeof *chunk;
        memcpy(&told, at, sizeof told);
        told.used_bytes %= 256;
        told.is_open &= 1;
        if (records + told.used_bytes > size)
            return;
        memcpy(chunk, header, sizeof *chunk);
        memcpy(chunk + 1, contents + records, told.used_bytes);
        chunk->used_bytes = told.used_bytes;
        fuzz_seal(chunk);
        memcpy(header, chunk, sizeof *chunk);
        memcpy(at, &told, sizeof told);
        records += told.used_bytes;
    }
}

// What a part begins with.
static void add_head(struct output *output)
{
    struct qut_trace_file_header header = {.version = QUT_TRACE_FILE_VERSION};
    memcpy(header.magic, QUT_TRACE_FILE_MAGIC, sizeof header.magic);
    header.checksum = qut_table_checksum(&header, offsetof(struct qut_trace_file_header, checksum));
    memcpy(output->bytes + output->size, &header, sizeof header);
    output->size += sizeof header;
    output->blocks = 0;
    uint8_t segment[sizeof(struct qut_trace_header) + sizeof(struct qut_trace_counters)] = {0};
    const struct qut_trace_header good = fuzz_segment_header();
    memcpy(segment, &good, sizeof good);
    add_block(output, QUT_TRACE_FILE_SEGMENT, segment, sizeof segment);
}

static void as_file(const uint8_t *data, size_t size)
{
    enum { PARTS_MAX = 4, PART_BYTES = 64 + 2048 + 512 };
    struct output output = {.bytes = aligned_alloc(64, (PARTS_MAX * PART_BYTES + size * 48 + 4096) & ~(size_t)63)};
    unsigned parts = 1;
    fuzz_require(output.bytes != NULL);
    add_head(&output);
    // type, two bytes of size, contents
    while (size >= 3) {
        size_t length = data[1] | (size_t)data[2] << 8;
        uint8_t contents[0x10000];
        unsigned type = data[0] % (QUT_TRACE_FILE_TYPE_END + 1);
        data += 3;
        size -= 3;
        length = length < size ? length : size;
        memcpy(contents, data, length);
        if (type == QUT_TRACE_FILE_CHUNKS)
            seal_block(contents, length);
        if (type == QUT_TRACE_FILE_TYPE_END && parts < PARTS_MAX) {
            add_head(&output);
            parts++;
        }
        add_block(&output, type, contents, length);
        data += length;
        size -= length;
    }
    struct qut_trace_file_trailer trailer = {.end = QUT_TRACE_FILE_END_CLOSED,
                                             .block_count = output.blocks,
                                             .file_bytes =
                                                 output.size + sizeof(struct qut_trace_file_block) + sizeof trailer};
    add_block(&output, QUT_TRACE_FILE_TRAILER, &trailer, sizeof trailer);
    read_all(output.bytes, output.size);
    free(output.bytes);
}

static void as_it_is(const uint8_t *data, size_t size)
{
    uint8_t *bytes = aligned_alloc(64, (size + 64) & ~(size_t)63);
    fuzz_require(bytes != NULL);
    memcpy(bytes, data, size);
    read_all(bytes, size);
    free(bytes);
}

int fuzz_trace(const uint8_t *data, size_t size)
{
    static void (*const ways[])(const uint8_t *, size_t) = {as_it_is, as_segment, as_file};
    if (size == 0)
        return 0;
    ways[data[0] % 3](data + 1, size - 1);
    return 0;
}
