// SPDX-License-Identifier: Apache-2.0
// The blocks of a .qtrace file that are sound, found in order. Where a block's header is spoiled, the next one is
// looked for.
#ifndef TRACER_TRACE_FILE_BLOCKS_H
#define TRACER_TRACE_FILE_BLOCKS_H

#include "base/cursor_inline.h"
#include "tracer/trace/raw_trace.h"

struct file_block {
    uint64_t offset; // of its header in the file
    uint32_t index;
    enum qut_trace_file_type type;
    uint8_t codec;
    struct base_bytes packed;
    uint32_t unpacked_bytes;
};

struct file_blocks {
    struct trace_vector blocks; // struct file_block
    uint64_t end;               // behind the last one
};

// Whether a block's header that can be believed stands at `at`, which is at most `size`; and where the next one does:
// `size` if there is none.
bool trace_file_blocks_header_at(const uint8_t *bytes, size_t size, size_t at, struct qut_trace_file_block *header);
size_t trace_file_blocks_next_header(const uint8_t *bytes, size_t size, size_t at);

// Counts and names damage in the image. -1: it is no such file, or there is no memory.
int trace_file_blocks_find(struct image *image, const uint8_t *bytes, size_t size, struct file_blocks *found,
                           struct base_error *error);

// Where blocks are unpacked. A file may have tens of thousands of parts, of a few small blocks each: they share it.
// What is zeros between two parts costs a part no more than it uses of that.
struct file_words {
    uint64_t *words;
    size_t capacity;
};
struct file_room {
    uint8_t *scratch; // QUT_TRACE_FILE_BLOCK_BYTES_MAX; NULL, as the next, as long as nothing was packed
    struct base_unzstd_room *unzstd;
    uint32_t *of_slot;            // QUT_TRACE_THREADS_MAX zeros
    struct file_words raw, nodes; // zeros
};
bool trace_file_room_make(struct file_room *room); // false: no memory
void trace_file_room_free(struct file_room *room);
bool trace_file_words_reserve(struct file_words *words, size_t capacity);
// The first `count` of them, into that memory; they are zeros again. NULL: no memory.
uint64_t *trace_file_words_take(struct file_words *words, size_t count, struct trace_memory *memory);

// The contents, in room->scratch or where they are. False: they do not unpack.
bool trace_file_block_contents(const struct file_block *block, struct file_room *room, struct base_bytes *contents,
                               struct base_error *error);

#endif
