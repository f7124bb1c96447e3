// SPDX-License-Identifier: Apache-2.0
// Strings: characters of one byte or two behind a head, or elsewhere; parts of others; two others one behind the other.
#include "libqut/v8/inside.h"

enum {
    NOT_STRING = 0xff80, // types of strings have none of these bits
    REPRESENTATION = 7,
    SEQUENTIAL = 0,
    CONS = 1,
    EXTERNAL = 2,
    SLICED = 3,
    THIN = 5,
    ONE_BYTE = 8,
    UNCACHED = 16, // what is outside of the heap has to be asked for its characters
    HEAD_BYTES = 32,
    NODES_MAX = 64, // strings that one is made of
    PENDING_MAX = 16,
    UNITS_EACH = 128,
    LENGTH_MAX = 1 << 30,
    EXTERNAL_DATA = 8, // behind the resource: where its characters are
};

struct head {
    uint32_t length;
    int32_t type;
    uint8_t bytes[HEAD_BYTES];
};

static bool read_head(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t *address,
                      struct head *head)
{
    uint64_t first[2]; // no string is shorter; it may end a page
    if (!v8_read_object(memory, address, first, sizeof first))
        return false;
    size_t got = memory->read(memory->context, *address, head->bytes, sizeof head->bytes);
    if (got < (size_t)layout->string_length + 4 || layout->string_length + 4 > HEAD_BYTES)
        return false;
    memset(head->bytes + got, 0, sizeof head->bytes - got);
    head->type = v8_type_of_map(layout, memory, v8_word(head->bytes, 0));
    head->length = v8_half(head->bytes, (size_t)layout->string_length);
    return head->type >= 0 && (head->type & NOT_STRING) == 0 && head->length <= LENGTH_MAX;
}

static uint64_t reference(const struct head *head, int32_t offset)
{
    return offset + 8 <= HEAD_BYTES ? v8_object(v8_word(head->bytes, (size_t)offset)) : 0;
}

// Where the characters of a string are that is no other's part. False: they are in others, or nowhere.
static bool characters_of(const struct v8_layout *layout, uint64_t address, const struct head *head,
                          struct v8_characters *characters)
{
    bool is_one = head->type & ONE_BYTE;
    *characters = (struct v8_characters){.count = head->length, .bytes_each = is_one ? 1 : 2};
    if ((head->type & REPRESENTATION) == SEQUENTIAL) {
        characters->address = address + (uint64_t)(is_one ? layout->one_byte_chars : layout->two_byte_chars);
        return true;
    }
    if ((head->type & REPRESENTATION) != EXTERNAL || (head->type & UNCACHED) ||
        layout->external_resource + EXTERNAL_DATA + 8 > HEAD_BYTES)
        return false;
    characters->address = v8_word(head->bytes, (size_t)layout->external_resource + EXTERNAL_DATA);
    return characters->address != 0;
}

bool v8_find_characters(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address,
                        struct v8_characters *characters)
{
    struct head head, second;
    for (unsigned step = 0; step < PENDING_MAX && read_head(layout, memory, &address, &head); step++) {
        if (characters_of(layout, address, &head, characters))
            return true;
        int representation = head.type & REPRESENTATION;
        if (representation == THIN) {
            address = reference(&head, layout->thin_actual);
        } else if (representation == CONS) {
            uint64_t rest = reference(&head, layout->cons_second);
            if (!read_head(layout, memory, &rest, &second) || second.length != 0)
                return false;
            address = reference(&head, layout->cons_first); // it was made flat
        } else
            return false;
    }
    return false;
}

// One character as UTF-8. False: it does not fit. Halves of a pair stand for themselves.
static bool put(char *text, size_t size, size_t *at, uint32_t character)
{
    size_t count = character < 0x80 ? 1 : character < 0x800 ? 2 : 3;
    if (*at + count >= size)
        return false;
    if (character >= 0xd800 && character < 0xe000)
        character = 0xfffd;
    if (count == 1) {
        text[(*at)++] = (char)(character < 0x20 ? ' ' : character);
        return true;
    }
    if (count == 3)
        text[(*at)++] = (char)(0xe0 | character >> 12);
    text[(*at)++] = (char)(count == 3 ? 0x80 | (character >> 6 & 63) : 0xc0 | character >> 6);
    text[(*at)++] = (char)(0x80 | (character & 63));
    return true;
}

struct writer {
    char *text;
    size_t size, at;
    bool is_full;
};

static bool put_characters(const struct elf_art_memory *memory, const struct v8_characters *from, uint32_t skip,
                           uint32_t count, struct writer *writer)
{
    uint8_t units[2 * UNITS_EACH];
    while (count && !writer->is_full) {
        uint32_t some = count < UNITS_EACH ? count : UNITS_EACH;
        if (!elf_art_read(memory, from->address + (uint64_t)skip * from->bytes_each, units,
                          (size_t)some * from->bytes_each))
            return false;
        for (uint32_t i = 0; i < some && !writer->is_full; i++) {
            uint32_t unit = from->bytes_each == 1 ? units[i] : (uint32_t)(units[2 * i] | units[2 * i + 1] << 8);
            writer->is_full = !put(writer->text, writer->size, &writer->at, unit);
        }
        skip += some;
        count -= some;
    }
    return true;
}

// A string, or a part of it, that is still to be written.
struct pending {
    uint64_t address;
    uint32_t skip, count;
};

bool v8_read_text(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t address, char *text,
                  size_t text_size)
{
    struct writer writer = {.text = text, .size = text_size};
    struct pending pending[PENDING_MAX] = {{address, 0, UINT32_MAX}};
    unsigned depth = 1;
    *text = 0;
    for (unsigned node = 0; depth && !writer.is_full; node++) {
        struct pending next = pending[--depth];
        struct v8_characters characters;
        struct head head;
        if (node == NODES_MAX || !read_head(layout, memory, &next.address, &head) || next.skip > head.length)
            return false;
        if (next.count > head.length - next.skip)
            next.count = head.length - next.skip;
        if (characters_of(layout, next.address, &head, &characters)) {
            if (!put_characters(memory, &characters, next.skip, next.count, &writer))
                return false;
            continue;
        }
        int representation = head.type & REPRESENTATION;
        if (representation == THIN) {
            pending[depth++] = (struct pending){reference(&head, layout->thin_actual), next.skip, next.count};
        } else if (representation == SLICED && layout->sliced_offset + 8 <= HEAD_BYTES) {
            int32_t offset = v8_smi(v8_word(head.bytes, (size_t)layout->sliced_offset));
            if (offset < 0 || (uint32_t)offset > LENGTH_MAX)
                return false;
            pending[depth++] =
                (struct pending){reference(&head, layout->sliced_parent), (uint32_t)offset + next.skip, next.count};
        } else if (representation == CONS && depth + 2 <= PENDING_MAX && next.skip == 0) {
            pending[depth++] = (struct pending){reference(&head, layout->cons_second), 0, UINT32_MAX};
            pending[depth++] = (struct pending){reference(&head, layout->cons_first), 0, UINT32_MAX};
        } else
            return false;
    }
    text[writer.at] = 0;
    return true;
}
