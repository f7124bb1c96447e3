// SPDX-License-Identifier: Apache-2.0
// Where the machine's own types keep what, as its tables for debuggers (vmStructs) say. The tables' names are those of
// its sources, and change with them: a value that no release has is refused, one that some have may be missing.
#ifndef QUT_HOTSPOT_LAYOUT_H
#define QUT_HOTSPOT_LAYOUT_H

#include "libqut/hotspot/machine.h"

enum { HOTSPOT_MISSING = -1 };

struct hotspot_field {
    int64_t at;         // its offset, or a static one's address; HOTSPOT_MISSING
    uint8_t size_bytes; // where it is a number: by its type's name; else 0
};

struct hotspot_layout {
    // static
    struct hotspot_field heaps, heap; // an array of heaps; JDK 8: the only one
    struct hotspot_field interpreter, call_stub_return;
    struct hotspot_field threads; // the first; JDK 8
    // members
    struct hotspot_field array_length, array_data;
    struct hotspot_field heap_memory, heap_segment_map, heap_segment_shift;
    struct hotspot_field space_low, space_high, space_low_boundary, space_high_boundary;
    struct hotspot_field block_used;
    struct hotspot_field blob_code_begin, blob_code_offset, blob_frame_size, blob_frame_complete;
    struct hotspot_field queue_buffer, queue_limit, queue_end, codelet_size;
    // sizes
    struct hotspot_field block;
    // What names want; all may be missing.
    struct hotspot_field blob_name, blob_size, method, method_const, const_pool, const_name_index, pool, pool_holder,
        klass_name, klass_constants, symbol_length, symbol_body, method_bytes;
    // ... lines
    struct hotspot_field const_bytes, const_words, const_flags, code_size, pool_source, klass_source, access_flags,
        vm_major;
    // ... and what is inlined
    struct hotspot_field compile_id, places_offset, scopes_begin, scopes_offset, dependencies_offset, metadata_offset,
        immutable, immutable_size, mutable, mutable_size, relocation_size;
};

enum hotspot_fault hotspot_layout_read(const struct elf_art_memory *memory, uint64_t structs, uint64_t types,
                                       struct hotspot_layout *layout);

#endif
