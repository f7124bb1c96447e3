// SPDX-License-Identifier: Apache-2.0
// A regular file, or a window of one, in memory. Private and read-only: pages nobody asks for are never read, which
// is what makes opening a library of 100 MB cheap. The price: if somebody truncates the file in place (rather than
// replacing it by rename) while it is open, reading the lost pages raises SIGBUS.
#ifndef QUTC_INPUT_FILE_MAP_H
#define QUTC_INPUT_FILE_MAP_H

#include "qutc/base/cursor.h"
#include "qutc/base/error.h"

struct qutc_file_map {
    struct qutc_bytes bytes;
    void *base; // page-aligned; NULL: nothing is mapped
    size_t base_bytes;
    uint64_t device;
    uint64_t inode;
};

// size_bytes 0: to the end of the file. Refuses whatever is not a regular file, without ever blocking on it.
int qutc_file_map_open(struct qutc_file_map *map, const char *path, uint64_t offset_bytes, uint64_t size_bytes,
                       struct qutc_error *error);
// Gives back the memory of pages that were read; they are read again when somebody asks.
void qutc_file_map_rest(const struct qutc_file_map *map);
void qutc_file_map_close(struct qutc_file_map *map);

#endif
