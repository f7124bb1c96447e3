// SPDX-License-Identifier: Apache-2.0
// A segment as another process sees it, which trusts nothing in it: sections found and bounded once, from a copy of the
// header. Its owner may write to it meanwhile; nothing here ever does, but for trace_segment_release.
#ifndef TRACER_TRACE_SEGMENT_VIEW_H
#define TRACER_TRACE_SEGMENT_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "formats/qut_trace_file.h"
#include "tracer/trace/mapping_guard.h"

struct trace_segment_view {
    uint8_t *bytes;
    size_t size;                    // that are there
    struct qut_trace_header header; // as it was when the view was made
    // How many of each can be read: the header's capacities, less where the file ends early.
    uint32_t thread_count, module_capacity, raw_count, node_count, chunk_count;
    size_t string_bytes;
    bool is_cut; // it ends early
    // Of a mapping: what unmaps it, and what knows whether the file was cut short since.
    size_t mapped_bytes;
    struct guard *guard;
    int fd; // of the mapping, the caller's; -1: there is none
};

// Of a segment and of a .qtrace file: what can be done with a version that is not read.
const char *trace_version_refusal(bool is_older);
// Versions, and counts that are within the format's bounds.
int trace_segment_check_numbers(const struct qut_trace_header *header, struct base_error *error);

// Of bytes that stay where they are. -1, *error filled: nothing can be read of it.
int trace_segment_view(struct trace_segment_view *view, uint8_t *bytes, size_t size, struct base_error *error);
// Of a file in memory, which may be cut short at any time: what is gone reads as zeros. Writable where the collector
// must give chunks back.
int trace_segment_map(struct trace_segment_view *view, int fd, bool writable, struct base_error *error);
void trace_segment_unmap(struct trace_segment_view *view);
// Of a table of `count` words: from *first on, the next that may be other than zero, up to *end; false: there is none.
// What was never written is left out: reading it would make the kernel find memory for it.
bool trace_segment_next_words(const struct trace_segment_view *view, const qut_trace_u64 *words, size_t count,
                              size_t *first, size_t *end);
// Whether something was gone when it was read.
static inline bool trace_segment_was_cut(const struct trace_segment_view *view)
{
    return trace_guard_was_hit(view->guard);
}

static inline const struct qut_trace_header *trace_segment_header(const struct trace_segment_view *view)
{
    return (const struct qut_trace_header *)(const void *)view->bytes;
}
static inline const struct qut_trace_counters *trace_segment_counters(const struct trace_segment_view *view)
{
    return (const void *)(view->bytes + view->header.counters.offset_bytes);
}
// Those that hold.
static inline const struct qut_trace_retired *trace_segment_retired(const struct qut_trace_counters *counters)
{
    return &counters->retired[__atomic_load_n(&counters->retired_version, __ATOMIC_ACQUIRE) & 1];
}
static inline const struct qut_trace_thread *trace_segment_thread(const struct trace_segment_view *view, uint32_t slot)
{
    return (const void *)(view->bytes + view->header.threads.offset_bytes +
                          (size_t)slot * view->header.thread_stride_bytes);
}
static inline const struct qut_trace_module *trace_segment_modules(const struct trace_segment_view *view)
{
    return (const void *)(view->bytes + view->header.modules.offset_bytes);
}
static inline const qut_trace_u64 *trace_segment_raw(const struct trace_segment_view *view)
{
    return (const void *)(view->bytes + view->header.raw.offset_bytes);
}
static inline const qut_trace_u64 *trace_segment_nodes(const struct trace_segment_view *view)
{
    return (const void *)(view->bytes + view->header.nodes.offset_bytes);
}
static inline qut_trace_u64 *trace_segment_directory(const struct trace_segment_view *view)
{
    return (void *)(view->bytes + view->header.directory.offset_bytes);
}
static inline const uint8_t *trace_segment_chunk(const struct trace_segment_view *view, uint32_t index)
{
    return view->bytes + view->header.chunks.offset_bytes + (size_t)index * QUT_TRACE_CHUNK_BYTES;
}

// Directory words.
static inline unsigned trace_chunk_word_state(uint64_t word)
{
    return word & ((1u << QUT_TRACE_CHUNK_STATE_BITS) - 1);
}
static inline unsigned trace_chunk_word_level(uint64_t word)
{
    return (word >> QUT_TRACE_CHUNK_LEVEL_SHIFT) & 3;
}
static inline uint32_t trace_chunk_word_slot(uint64_t word)
{
    return (word >> QUT_TRACE_CHUNK_SLOT_SHIFT) & 0xffff;
}
static inline uint64_t trace_chunk_word_seq(uint64_t word)
{
    return word >> QUT_TRACE_CHUNK_SEQ_SHIFT;
}

enum { CHUNK_RECORD_BYTES = QUT_TRACE_CHUNK_BYTES - sizeof(struct qut_trace_chunk) };

// Samples that are no longer there, by all slots and those that were given away. Of a segment that is written to: no
// more than there were when it was called, or no fewer.
uint64_t trace_segment_overwritten(const struct trace_segment_view *view, bool at_most);

// A thread's slot, each writer as it was at one moment. False: the slot is not in use, or what stands in it was added
// to `retired` already.
bool trace_segment_copy_thread(const struct trace_segment_view *view, uint32_t slot,
                               struct qut_trace_file_thread *thread);

enum segment_copied {
    SEGMENT_COPIED,
    SEGMENT_COPY_NONE, // there is no such chunk: it was never there, or it was sealed or taken meanwhile
    SEGMENT_COPY_BAD,  // what says where it is makes no sense
};
// The open chunk of a writer: its header and the records that the commit has. `to` has room for a whole one.
enum segment_copied trace_segment_copy_open(const struct trace_segment_view *view,
                                            const struct qut_trace_file_thread *thread, unsigned level, uint8_t *to);
// A sealed chunk; *word as the directory has it. `used_bytes` is at most what fits.
enum segment_copied trace_segment_copy_sealed(const struct trace_segment_view *view, uint32_t index, uint64_t *word,
                                              uint8_t *to, uint32_t *used_bytes);

// Gives a sealed chunk back to the segment's writers, if it still is what `word` says: the only thing that is ever
// written. The view is of a writable mapping.
void trace_segment_release(const struct trace_segment_view *view, uint32_t index, uint64_t word);

#endif
