// SPDX-License-Identifier: Apache-2.0
// Where a descriptor and its entries keep what. Bytes of the process looked at: its words, its alignment of 64 bits.
//
//                 descriptor                    entry
//                 64 bits  32 bits  i386        64 bits  32 bits  i386
//   version         0        0        0   next     0        0        0
//   action          4        4        4   previous 8        4        4
//   relevant        8        8        8   address 16        8        8
//   first          16       12       12   size    24       16       12
//   magic          24       16       16   time    32       24       20
//   flags          32       24       24   seqlock 40       32       28
//   sizes       36,40    28,32    28,32
//   seqlock        44       36       36
//   timestamp      48       40       40
#ifndef QUT_ART_JIT_LAYOUT_H
#define QUT_ART_JIT_LAYOUT_H

#include <string.h>

#include "libqut/art/jit_list.h"

enum {
    ART_JIT_DESCRIPTOR_BYTES_MAX = 56,
    ART_JIT_ENTRY_BYTES_MAX = 44, // as far as is ever read
};

static inline uint32_t art_jit_u32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint64_t art_jit_u64(const uint8_t *bytes)
{
    return art_jit_u32(bytes) | (uint64_t)art_jit_u32(bytes + 4) << 32;
}

// Allocators of Android tag pointers where the architecture does not look at the top byte.
static inline uint64_t art_jit_pointer(const struct arch *arch, const uint8_t *bytes)
{
    uint64_t pointer = arch->word_bytes == 8 ? art_jit_u64(bytes) : art_jit_u32(bytes);
    return arch_pointer(arch, pointer);
}

// Behind three pointers.
static inline size_t art_jit_size_offset(const struct arch *arch)
{
    size_t alignment = arch->int64_alignment_bytes;
    return (3u * arch->word_bytes + alignment - 1) / alignment * alignment;
}

// Where the GDB part of a descriptor ends.
static inline size_t art_jit_magic_offset(const struct arch *arch)
{
    return 8 + 2u * arch->word_bytes;
}

// How many bytes of an entry hold what is read of it.
static inline size_t art_jit_entry_bytes(const struct arch *arch, enum art_jit_layout layout)
{
    size_t end = art_jit_size_offset(arch) + 8;
    return layout == ART_JIT_ANDROID2 ? end + 12 : layout == ART_JIT_ANDROID1 ? end + 8 : end;
}

static inline void art_jit_parse_entry(const struct arch *arch, enum art_jit_layout layout, uint64_t address,
                                       const uint8_t *bytes, struct art_jit_entry *entry)
{
    size_t word_bytes = arch->word_bytes, size_offset = art_jit_size_offset(arch);
    *entry = (struct art_jit_entry){
        .address = address,
        .next = art_jit_pointer(arch, bytes),
        .previous = art_jit_pointer(arch, bytes + word_bytes),
        .symfile_address = art_jit_pointer(arch, bytes + 2 * word_bytes),
        .symfile_bytes = art_jit_u64(bytes + size_offset),
        .timestamp = layout == ART_JIT_GDB ? 0 : art_jit_u64(bytes + size_offset + 8),
        .seqlock = layout == ART_JIT_ANDROID2 ? art_jit_u32(bytes + size_offset + 16) : 0,
    };
}

#endif
