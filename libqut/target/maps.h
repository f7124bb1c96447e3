// SPDX-License-Identifier: Apache-2.0
// The mappings of an address space, from text as in /proc/PID/maps.
#ifndef QUT_TARGET_MAPS_H
#define QUT_TARGET_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qut_image;

struct qut_map {
    uint64_t start, end; // end is exclusive
    uint64_t offset;     // in the file, of start
    uint64_t device, inode;
    bool readable, writable, executable;
    bool deleted;
    const char *path;        // without " (deleted)"; "" where there is none
    struct qut_image *image; // NULL: not found out, or it belongs to none
};

struct qut_maps {
    char *text; // owns the paths
    struct qut_map *items;
    size_t count; // ascending, not overlapping
    size_t skipped_lines;
};

// Takes over text (from malloc, changed), also on failure. Columns behind the permissions may be missing. Lines that
// make no sense, and mappings that overlap an earlier one, are skipped and counted. 0, or -1: no memory.
int qut_maps_parse(struct qut_maps *maps, char *text, size_t size);

// Sorts and drops overlaps: for maps that were put together otherwise.
void qut_maps_settle(struct qut_maps *maps);

// The mapping at an address, or NULL.
struct qut_map *qut_maps_find(const struct qut_maps *maps, uint64_t address);

void qut_maps_free(struct qut_maps *maps);

#endif
