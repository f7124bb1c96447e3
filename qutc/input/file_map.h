// SPDX-License-Identifier: Apache-2.0
// A regular file, or a window of one, in memory, read-only. Pages that are not asked for are never read, which is what
// makes opening a library of 100 MB cheap. Two ways:
//   mapped   if the file is truncated in place (rather than replaced by rename) while it is open, reading the
//            lost pages raises SIGBUS;
//   read     private memory, filled where input_file_map_need asks for it, zero elsewhere: for compiling inside a
//            process that must not die of it.
#ifndef QUTC_INPUT_FILE_MAP_H
#define QUTC_INPUT_FILE_MAP_H

#include <sys/stat.h>

#include "base/cursor_inline.h"
#include "base/error.h"

enum input_file_way { INPUT_FILE_MAPPED, INPUT_FILE_READ };

struct input_file_map {
    struct base_bytes bytes;
    void *base; // page-aligned; NULL: nothing is mapped
    size_t base_bytes;
    uint64_t device;
    uint64_t inode;
    bool is_claimed; // by a program that is the file system: its owner and mode are what that says
    struct stat opened;

    // Only where it is read:
    uint8_t *present; // one per 64 KiB of bytes: it was read
    int fd;
    uint64_t offset_bytes; // of bytes in the file
    bool lost;             // something could not be read
};

// size_bytes 0: to the end of the file. Refuses whatever is not a regular file, without ever blocking on it.
int input_file_map_open(struct input_file_map *map, const char *path, uint64_t offset_bytes, uint64_t size_bytes,
                        enum input_file_way way, struct base_error *error);
// Has size bytes of `bytes` from `from` on read, as far as they lie inside. False where they cannot be, now or earlier.
bool input_file_map_need(struct input_file_map *map, uint64_t from, uint64_t size);
// Whether what was read is the file as it was when it was opened. Where it is mapped: true, since it cannot be known.
bool input_file_map_is_whole(const struct input_file_map *map);
// Tells all bytes, in order, in pieces whose sizes are multiples of 64 KiB but for the last, and keeps no memory for
// what was not asked for elsewhere.
void input_file_map_each(struct input_file_map *map, void (*piece)(void *context, struct base_bytes bytes),
                         void *context);
void input_file_map_close(struct input_file_map *map);

#endif
