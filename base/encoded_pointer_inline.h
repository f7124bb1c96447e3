// SPDX-License-Identifier: Apache-2.0
// Pointers as exception tables write them: DW_EH_PE_*, the low four bits the form, the next three what it counts from.
#ifndef BASE_ENCODED_POINTER_INLINE_H
#define BASE_ENCODED_POINTER_INLINE_H

#include "base/cursor_inline.h"

enum {
    PE_ABSPTR = 0x00,
    PE_ULEB128 = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB128 = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_FORMAT_MASK = 0x0f,
    PE_PCREL = 0x10,
    PE_TEXTREL = 0x20,
    PE_DATAREL = 0x30,
    PE_FUNCREL = 0x40,
    PE_ALIGNED = 0x50,
    PE_BASE_MASK = 0x70,
    PE_INDIRECT = 0x80,
    PE_OMIT = 0xff,
};

struct base_pointer_bases {
    uint64_t start_vaddr; // of the cursor's start
    uint64_t text_vaddr;
    uint64_t data_vaddr;
    bool is_64; // else addresses wrap at 32 bits
};

// False where the encoding is not supported, or the number too long. An indirect pointer is known only to the running
// program: reading it gives the address it is at, and false.
static inline bool base_read_encoded(struct base_cursor *c, uint8_t encoding, unsigned address_bytes,
                                     const struct base_pointer_bases *bases, uint64_t *value)
{
    *value = 0;
    if (encoding == PE_OMIT)
        return true;
    if ((encoding & PE_BASE_MASK) == PE_ALIGNED)
        base_cursor_skip(c, (0 - (bases->start_vaddr + base_cursor_offset(c))) & (address_bytes - 1u));
    uint64_t here = bases->start_vaddr + base_cursor_offset(c);
    uint64_t v;
    switch (encoding & PE_FORMAT_MASK) {
    case PE_ABSPTR: v = base_read_uint(c, address_bytes); break;
    case PE_ULEB128: v = base_read_uleb(c); break;
    case PE_UDATA2: v = base_read_u16(c); break;
    case PE_UDATA4: v = base_read_u32(c); break;
    case PE_UDATA8:
    case PE_SDATA8: v = base_read_u64(c); break;
    case PE_SLEB128: v = (uint64_t)base_read_sleb(c); break;
    case PE_SDATA2: v = (uint64_t)(int64_t)(int16_t)base_read_u16(c); break;
    case PE_SDATA4: v = (uint64_t)(int64_t)(int32_t)base_read_u32(c); break;
    default: return false;
    }
    switch (encoding & PE_BASE_MASK) {
    case 0:
    case PE_ALIGNED: break;
    case PE_PCREL: v += here; break;
    case PE_TEXTREL: v += bases->text_vaddr; break;
    case PE_DATAREL: v += bases->data_vaddr; break;
    default: return false;
    }
    *value = bases->is_64 ? v : (uint32_t)v;
    return !(encoding & PE_INDIRECT) && !c->overlong;
}

#endif
