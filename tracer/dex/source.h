// SPDX-License-Identifier: Apache-2.0
// Bytes that hold dex files, and their methods: a file of whatever kind Android maps dex files from, or a copy of
// memory.
#ifndef TRACER_DEX_SOURCE_H
#define TRACER_DEX_SOURCE_H

#include "qutc/input/file_map.h"
#include "tracer/dex/method_index.h"

#define DEX_SOURCE_BYTES_MAX ((uint64_t)512 << 20)

struct dex_source {
    struct input_file_map map; // of the file; of memory: nothing
    uint8_t *memory;           // owned; NULL: a file
    struct base_bytes bytes;   // all of it; of an archive one entry
    uint64_t offset_bytes;     // of bytes in the file
    char *entry;               // "classes2.dex"; NULL: not in an archive
    struct dex_index *index;
};

// The dex files of a .dex, .vdex or OAT file; of a zip archive (APK, jar) those of the stored entry that an offset lies
// in. A compressed entry is nowhere mapped: its unpacked bytes are in memory. Returns 0, or -1 with *error filled and
// nothing to close.
int dex_source_open(struct dex_source *source, const char *path, uint64_t offset, struct base_error *error);

// The dex file that is a stored entry of an archive, by its name.
int dex_source_open_entry(struct dex_source *source, const char *path, const char *entry, struct base_error *error);

// The same of a copy of memory, from malloc, which is taken over, also on failure.
int dex_source_open_memory(struct dex_source *source, uint8_t *memory, size_t size, struct base_error *error);

void dex_source_close(struct dex_source *source);

#endif
