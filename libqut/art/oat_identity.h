// SPDX-License-Identifier: Apache-2.0
// What an OAT file without build-id is known by: a hash over parts of it that are the same in the file and wherever it
// is mapped, small enough to be read again and again. installd has apps compiled on the device, and dex2oat writes a
// build-id only where it is told to (the system's own OAT files have one).
#ifndef QUT_ART_OAT_IDENTITY_H
#define QUT_ART_OAT_IDENTITY_H

#include "formats/qut_content_hash.h"
#include "libqut/elf/image_memory.h"

enum { ART_OAT_IDENTITY_BYTES = QUT_CONTENT_HASH_BYTES };

// A loadable segment.
struct art_oat_segment {
    uint64_t vaddr, file_bytes;
    bool is_written; // writable when it is mapped
};

// An image in memory, or a file read by virtual address with load_bias 0.
struct art_oat_image {
    const struct elf_art_memory *memory;
    uint64_t load_bias, dynamic_address;
    const struct art_oat_segment *segments;
    unsigned segment_count;
};

// Hashes the distances between `oatdata`, `oatexec` and `oatlastword`, the first 64 KiB from oatdata on (the header
// with its checksum and options, and the first dex files' places and checksums), and 16 KiB spread over the code.
// False: it is no OAT file, its header is no longer there (AOSP zeroed those of its samples), or something cannot be
// read. *header_address is that of oatdata. Not for handlers: it takes 2 KiB of stack.
bool art_oat_identity(const struct art_oat_image *image, uint8_t identity[ART_OAT_IDENTITY_BYTES],
                      uint64_t *header_address);

#endif
