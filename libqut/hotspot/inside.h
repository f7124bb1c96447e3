// SPDX-License-Identifier: Apache-2.0
// What the readers of the machine's memory share. None of it is for handlers.
#ifndef QUT_HOTSPOT_INSIDE_H
#define QUT_HOTSPOT_INSIDE_H

#include "libqut/hotspot/layout.h"
#include "libqut/hotspot/source.h"

enum { HOTSPOT_FIELD_OFFSET_MAX = 1 << 12 };

// ---- method_layout.c

// Names, lines and what is inlined: extras. Where a field of one is missing, there is none of it.
void hotspot_method_layouts(const struct elf_art_memory *memory, const struct hotspot_layout *layout,
                            struct hotspot_machine *machine);

// ---- code_name.c

bool hotspot_read_pointer(const struct elf_art_memory *memory, uint64_t at, uint64_t *pointer);
// A longer one is cut.
bool hotspot_read_symbol(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t symbol,
                         char *text, size_t size);
// "java.lang.String.hashCode". What is no method is told by its class, which has to have the same constants.
bool hotspot_name_method(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t method,
                         char text[HOTSPOT_NAME_BYTES]);
// Whether the blob at an address is a method's, and what it is called.
bool hotspot_blob_name(const struct hotspot_name_layout *layout, const struct elf_art_memory *memory, uint64_t blob,
                       char text[HOTSPOT_NAME_BYTES], bool *is_method);

// ---- number_stream.c

// Bytes of the machine's from an address to an end, and the numbers that it compresses into them (UNSIGNED5).
enum { HOTSPOT_STREAM_BYTES = 64 }; // read at once
struct hotspot_stream {
    const struct elf_art_memory *memory;
    uint64_t at, end;
    bool has_digits_from_one;
    bool is_bad; // it was read beyond its end, or memory could not be read: what was given last is 0
    uint64_t first;
    size_t count;
    uint8_t bytes[HOTSPOT_STREAM_BYTES];
};
void hotspot_stream_begin(struct hotspot_stream *stream, const struct elf_art_memory *memory, uint64_t at, uint64_t end,
                          bool has_digits_from_one);
uint8_t hotspot_stream_byte(struct hotspot_stream *stream);
uint32_t hotspot_stream_number(struct hotspot_stream *stream);
int32_t hotspot_stream_signed(struct hotspot_stream *stream);

#endif
