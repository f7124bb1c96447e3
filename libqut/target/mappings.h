// SPDX-License-Identifier: Apache-2.0
// The mappings of an address space, from text as in /proc/PID/maps.
#ifndef QUT_TARGET_MAPPINGS_H
#define QUT_TARGET_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct target_image;

// Bits of begins_no_image below this one are files, by their numbers (struct target_kind).
enum { TARGET_MAP_IN_MEMORY = 7 };

struct target_map {
    uint64_t start, end; // end is exclusive
    uint64_t offset;     // in the file, of start
    uint64_t device, inode;
    bool readable, writable, executable;
    bool deleted;
    uint8_t begins_no_image;    // bits: what no ELF head was found in at its start, of the files tried and of memory
    const char *path;           // without " (deleted)"; "" where there is none
    struct target_image *image; // NULL: not found out, or it belongs to none
};

struct target_maps {
    char *text; // owns the paths
    struct target_map *items;
    size_t count; // ascending, not overlapping
    size_t skipped_lines;
};

// Takes over text (from malloc, changed), also on failure. Columns behind the permissions may be missing. Lines that
// make no sense, and mappings that overlap an earlier one, are skipped and counted. 0, or -1: no memory.
int target_maps_parse(struct target_maps *maps, char *text, size_t size);

// Sorts and drops overlaps: for maps that were put together otherwise.
void target_maps_settle(struct target_maps *maps);

// The mapping at an address, or NULL.
struct target_map *target_maps_find(const struct target_maps *maps, uint64_t address);

void target_maps_free(struct target_maps *maps);

#endif
