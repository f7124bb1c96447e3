// SPDX-License-Identifier: Apache-2.0
#include "libqut/segment/segment.h"

#include <errno.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/os/shared_memory.h"
#include "libqut/segment/inside.h"
#include "libqut/segment/layout.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "segments are read elsewhere as they are");

enum { DEFAULT_MERGE_GAP_NS = 20 * 1000 * 1000 };

static void find_sections(struct segment *segment)
{
    struct qut_trace_header *h = segment->header;
    uint8_t *base = (uint8_t *)h;
    segment->counters = (struct qut_trace_counters *)(base + h->counters.offset_bytes);
    segment->threads = base + h->threads.offset_bytes;
    segment->modules = (struct qut_trace_module *)(base + h->modules.offset_bytes);
    segment->strings = base + h->strings.offset_bytes;
    segment->string_index = (uint32_t *)(base + h->string_index.offset_bytes);
    segment->raw = (qut_trace_u64 *)(base + h->raw.offset_bytes);
    segment->nodes = (qut_trace_u64 *)(base + h->nodes.offset_bytes);
    segment->free_list = (uint32_t *)(base + h->free_list.offset_bytes);
    segment->directory = (qut_trace_u64 *)(base + h->directory.offset_bytes);
    segment->chunks = base + h->chunks.offset_bytes;
    segment->segment_bytes = h->segment_bytes;
    segment->thread_capacity = h->thread_capacity;
    segment->thread_stride_bytes = h->thread_stride_bytes;
    segment->module_capacity = h->module_capacity;
    segment->raw_mask = h->raw_capacity - 1;
    segment->node_mask = h->node_capacity - 1;
    segment->chunk_count = h->chunk_count;
    segment->ring_capacity[0] = h->ring_capacity;
    for (int level = 1; level < QUT_TRACE_LEVELS; level++)
        segment->ring_capacity[level] = h->outer_ring_capacity;
    segment->string_bytes = (uint32_t)h->strings.size_bytes;
    segment->string_index_mask = (uint32_t)(h->string_index.size_bytes / sizeof(uint32_t)) - 1;
    segment->mode = h->mode;
    segment->flags = h->flags;
    segment->metric_mask = h->metric_mask;
    segment->used_bytes_max = SEGMENT_TRACE_RECORD_ROOM_BYTES - segment_run_bytes_max(segment);
    segment->plain_bytes_max = segment->used_bytes_max - segment_run_bytes_max(segment);
    segment->merge_gap_units = h->merge_gap_ns >> QUT_TRACE_TIME_SHIFT;
}

// In words, each of which is of one command: a reader may look meanwhile.
static void put_command(struct qut_trace_header *header, const char *command)
{
    static_assert(offsetof(struct qut_trace_header, command) % sizeof(qut_trace_u64) == 0, "of whole words");
    qut_trace_u64 words[sizeof header->command / sizeof(qut_trace_u64)] = {0};
    if (command)
        memcpy(words, command, strnlen(command, sizeof words - 1));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        segment_put64((qut_trace_u64 *)(void *)header->command + i, words[i]);
}

void segment_set_command(struct segment *segment, const char *command)
{
    put_command(segment->header, command);
}

static void fill_header(struct qut_trace_header *header, const struct segment_options *options)
{
    header->version = QUT_TRACE_VERSION;
    header->arch = options->arch;
    header->word_bytes = options->word_bytes;
    header->mode = (uint8_t)options->mode;
    header->time_shift = QUT_TRACE_TIME_SHIFT;
    header->pid = options->pid;
    header->parent_pid = options->parent_pid;
    header->metric_mask = options->metric_mask & ((1u << QUT_TRACE_METRIC_COUNT) - 1);
    header->flags = options->flags;
    header->merge_gap_ns = options->merge_gap_ns ? options->merge_gap_ns : DEFAULT_MERGE_GAP_NS;
    os_random(header->identity, sizeof header->identity);
    put_command(header, options->command);
    header->thread_uid_next = 1;
    header->string_used_bytes = 4; // id 0 is the empty string
    header->chunk_seq_next = 1;
    header->free_head = 1;
}

// Of the mapping, which is zero elsewhere.
static void fill(struct segment *segment, uint64_t begun_ns)
{
    struct qut_trace_header *header = segment->header;
    for (uint32_t i = 0; i + 1 < segment->chunk_count; i++)
        segment->free_list[i] = i + 2; // index + 1 of the next
    uint64_t start_ns, realtime_ns, boottime_ns;
    os_read_clocks(&start_ns, &realtime_ns, &boottime_ns);
    const uint64_t ago_ns = begun_ns && begun_ns < start_ns ? start_ns - begun_ns : 0;
    header->start_ns = start_ns - ago_ns;
    header->realtime_ns = realtime_ns - ago_ns;
    header->boottime_ns = boottime_ns - ago_ns;
    header->state = QUT_TRACE_RUNNING;
    // A process that opens a file of that name meanwhile does not take it for a segment before it is one.
    segment_order_stores();
    memcpy(header->magic, QUT_TRACE_MAGIC, sizeof header->magic);
}

int segment_create(struct segment *segment, const struct segment_options *options)
{
    struct qut_trace_header header;
    memset(&header, 0, sizeof header);
    if (options->mode > QUT_TRACE_STREAM)
        return -EINVAL;
    fill_header(&header, options);
    int result = segment_trace_lay_out(&header, options);
    if (result != 0)
        return result;
    void *pages = NULL;
    int fd = os_share_pages(options->path, (size_t)header.segment_bytes, options->on_demand, &pages);
    if (fd < 0)
        return fd;
    memset(segment, 0, sizeof *segment);
    segment->header = pages;
    segment->fd = fd;
    *segment->header = header;
    find_sections(segment);
    fill(segment, options->begun_ns);
    // A stack's frames lie all over it: with small pages the processor has to look for most of them.
    if (!options->on_demand)
        os_join_pages(segment->nodes, (size_t)segment->header->nodes.size_bytes);
    return 0;
}

static void mark_closed(struct qut_trace_header *header)
{
    segment_put64(&header->closed_ns, os_now_ns());
    __atomic_store_n(&header->state, QUT_TRACE_CLOSED, __ATOMIC_RELEASE);
}

void segment_give_up(struct segment *segment)
{
    uint32_t count = segment_get32(&segment->header->thread_count);
    for (uint32_t slot = 0; slot < count && slot < segment->thread_capacity; slot++) {
        struct qut_trace_thread *thread = segment_thread_at(segment, slot);
        if (segment_get32(&thread->state) != QUT_TRACE_THREAD_LIVE || segment_depth(thread) != 0)
            continue;
        segment_refuse_appends(thread);
        for (int level = 0; level < QUT_TRACE_LEVELS; level++)
            segment_close_chunk(segment, thread, &thread->writers[level]);
    }
    mark_closed(segment->header);
}

void segment_close(struct segment *segment)
{
    struct qut_trace_header *header = segment->header;
    uint32_t count = segment_get32(&header->thread_count);
    for (uint32_t slot = 0; slot < count && slot < segment->thread_capacity; slot++) {
        struct qut_trace_thread *thread = segment_thread_at(segment, slot);
        for (int level = 0; level < QUT_TRACE_LEVELS; level++)
            segment_close_chunk(segment, thread, &thread->writers[level]);
    }
    mark_closed(header);
    segment_unmap(segment);
}

void segment_unmap(struct segment *segment)
{
    if (segment->header)
        os_unshare_pages(segment->fd, segment->header, (size_t)segment->segment_bytes);
    segment->header = NULL;
    segment->fd = -1;
}
