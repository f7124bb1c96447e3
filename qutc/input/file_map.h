// SPDX-License-Identifier: Apache-2.0
// A regular file, or a window of one, in memory, read-only. Pages nobody asks for are never read, which is what makes
// opening a library of 100 MB cheap. Two ways:
//   mapped   if somebody truncates the file in place (rather than replacing it by rename) while it is open, reading the
//            lost pages raises SIGBUS;
//   read     private memory, filled where qutc_file_map_need asks for it, zero elsewhere: for who compiles inside a
//            process that must not die of it.
#ifndef QUTC_INPUT_FILE_MAP_H
#define QUTC_INPUT_FILE_MAP_H

#include <sys/stat.h>

#include "qutc/base/cursor.h"
#include "qutc/base/error.h"

enum qutc_file_way { QUTC_FILE_MAPPED, QUTC_FILE_READ };

struct qutc_file_map {
    struct qutc_bytes bytes;
    void *base; // page-aligned; NULL: nothing is mapped
    size_t base_bytes;
    uint64_t device;
    uint64_t inode;

    // Only where it is read:
    uint8_t *present; // one per 64 KiB of bytes: it was read
    int fd;
    uint64_t offset_bytes; // of bytes in the file
    bool lost;             // something could not be read
    struct stat opened;
};

// size_bytes 0: to the end of the file. Refuses whatever is not a regular file, without ever blocking on it.
int qutc_file_map_open(struct qutc_file_map *map, const char *path, uint64_t offset_bytes, uint64_t size_bytes,
                       enum qutc_file_way way, struct qutc_error *error);
// Has size bytes of `bytes` from `from` on read, as far as they lie inside. False where they cannot be, now or earlier.
bool qutc_file_map_need(struct qutc_file_map *map, uint64_t from, uint64_t size);
// Whether what was read is the file as it was when it was opened. Where it is mapped: true, nobody knows.
bool qutc_file_map_is_whole(const struct qutc_file_map *map);
// Tells all bytes, in order, in pieces whose sizes are multiples of 64 KiB but for the last, and keeps no memory for
// what nobody else asked for.
void qutc_file_map_each(struct qutc_file_map *map, void (*piece)(void *context, struct qutc_bytes bytes),
                        void *context);
void qutc_file_map_close(struct qutc_file_map *map);

#endif
