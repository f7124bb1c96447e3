// SPDX-License-Identifier: Apache-2.0
// Writes a .qtrace file, block by block (formats/qut_trace_file.h). A block is there whole or not at all: where it
// cannot be written (the disk is full), the file is cut back to where it was good.
#ifndef TRACER_COLLECT_FILE_WRITE_H
#define TRACER_COLLECT_FILE_WRITE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cursor_inline.h"
#include "base/error.h"
#include "formats/qut_trace_file.h"

struct base_zstd_room;

enum { TRACE_FILE_LEVEL_SHORT = 5 }; // of zstd, for what is short: 9 packs it no better, in twice the time

struct trace_file {
    int fd;
    uint64_t begin; // where it begins in its file, behind other traces
    uint64_t bytes; // written so far
    uint32_t block_count;
    uint64_t unpacked_bytes;
    uint64_t failed_writes;
    int level;                   // of zstd
    uint64_t plain_bytes;        // so many, unpacked, are not worth packing: all of it is written anew in the end
    struct base_zstd_room *work; // for many blocks; NULL: each has its own
    uint8_t *buffer;             // of one block as it is on disk
    size_t buffer_bytes;
};

// Takes the descriptor, which stays the caller's.
int collect_trace_file_begin(struct trace_file *file, int fd, const struct qut_trace_header *header, uint64_t now_ns,
                             struct base_error *error);
// The same, behind `begin` bytes of other traces; of these it is to take the place of the last `supersedes_bytes`.
int collect_trace_file_begin_at(struct trace_file *file, int fd, uint64_t begin, uint64_t supersedes_bytes,
                                const struct qut_trace_header *header, uint64_t now_ns, struct base_error *error);
// A part of calls, behind so many bytes.
int collect_trace_file_begin_calls(struct trace_file *file, int fd, uint64_t begin, uint32_t pid, uint64_t now_ns,
                                   struct base_error *error);
int collect_trace_file_block(struct trace_file *file, enum qut_trace_file_type type, const void *contents, size_t size,
                             uint32_t sample_count, struct base_error *error);
// Contents in pieces, each packed by itself.
int collect_trace_file_pieces(struct trace_file *file, enum qut_trace_file_type type, const struct base_bytes *pieces,
                              size_t count, uint32_t sample_count, struct base_error *error);
// Counts of what was written are filled in here.
int collect_trace_file_end(struct trace_file *file, struct qut_trace_file_trailer *trailer, struct base_error *error);
// Makes the room for packing, and has packed something like that once: the next time takes a fraction.
void collect_trace_file_prepare(struct trace_file *file, const void *contents, size_t size);
void collect_trace_file_free(struct trace_file *file);

#endif
