// SPDX-License-Identifier: Apache-2.0
// Decompression with one bound over all that an image unpacks, since a few kilobytes can claim to hold gigabytes.
#ifndef QUTC_INPUT_UNPACK_H
#define QUTC_INPUT_UNPACK_H

#include "qutc/input/elf_file.h"

struct qutc_unpack_block;

struct qutc_unpacker {
    uint64_t left_bytes; // of the bound
    uint64_t used_bytes;
    uint64_t time_ns;
    uint64_t xz_time_ns;
    struct qutc_unpack_block *blocks; // everything that was unpacked
};

// A section's contents: unpacked if it is SHF_COMPRESSED (zlib, zstd) or .zdebug_*, else in place. Memory belongs to
// the unpacker.
int qutc_unpack_section(struct qutc_unpacker *unpacker, const struct qutc_elf *elf,
                        const struct qutc_elf_section *section, struct qutc_bytes *bytes, struct qutc_error *error);

// One or several xz streams, of any number of blocks.
int qutc_unpack_xz(struct qutc_unpacker *unpacker, struct qutc_bytes packed, const char *section,
                   struct qutc_bytes *bytes, struct qutc_error *error);

void qutc_unpack_free(struct qutc_unpacker *unpacker);

#endif
