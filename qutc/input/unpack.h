// SPDX-License-Identifier: Apache-2.0
// Decompression with one bound over all that an image unpacks, since a few kilobytes can claim to hold gigabytes.
#ifndef QUTC_INPUT_UNPACK_H
#define QUTC_INPUT_UNPACK_H

#include "qutc/input/elf_file.h"

struct input_unpack_block;

struct input_unpacker {
    uint64_t left_bytes; // of the bound
    uint64_t used_bytes;
    uint64_t time_ns;
    uint64_t xz_time_ns;
    struct input_unpack_block *blocks; // everything that was unpacked
};

// A section's contents: unpacked if it is SHF_COMPRESSED (zlib, zstd) or .zdebug_*, else in place. Memory belongs to
// the unpacker.
int input_unpack_section(struct input_unpacker *unpacker, const struct input_elf *elf,
                         const struct input_elf_section *section, struct base_bytes *bytes, struct base_error *error);

// One or several xz streams, of any number of blocks.
int input_unpack_xz(struct input_unpacker *unpacker, struct base_bytes packed, const char *section,
                    struct base_bytes *bytes, struct base_error *error);

void input_unpack_free(struct input_unpacker *unpacker);

#endif
