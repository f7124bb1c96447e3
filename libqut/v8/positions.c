// SPDX-License-Identifier: Apache-2.0
// Bytecode -> where it stands in the script -> line. The table has, for each place, the distance to the bytecode before
// it and that in the source, as numbers of 7 bits to a byte, lowest first, whose lowest bit is the sign.
#include "libqut/v8/inside.h"

enum {
    TABLE_BYTES_MAX = 1 << 18,
    PIECE_BYTES = 512,
    ARRAY_DATA = 16,
    ARRAY_WORDS = 6, // of bytecodes, before the first of them
};

struct stream {
    const struct elf_art_memory *memory;
    uint64_t address;
    size_t left, at, got;
    uint8_t bytes[PIECE_BYTES];
};

static bool next_byte(struct stream *stream, uint8_t *byte)
{
    if (stream->at == stream->got) {
        size_t some = stream->left < PIECE_BYTES ? stream->left : PIECE_BYTES;
        if (some == 0 || !elf_art_read(stream->memory, stream->address, stream->bytes, some))
            return false;
        stream->address += some;
        stream->left -= some;
        stream->got = some;
        stream->at = 0;
    }
    *byte = stream->bytes[stream->at++];
    return true;
}

static bool next_number(struct stream *stream, int64_t *number)
{
    uint64_t bits = 0;
    uint8_t byte = 0x80;
    for (unsigned shift = 0; byte & 0x80; shift += 7) {
        if (shift > 63 || !next_byte(stream, &byte))
            return false;
        bits |= (uint64_t)(byte & 0x7f) << shift;
    }
    *number = (int64_t)(bits >> 1 ^ (~(bits & 1) + 1));
    return true;
}

// A place in the source: whether it is outside (1 bit), its position + 1 (30 bits), what it was inlined into + 1.
static int32_t position_of(int64_t place)
{
    enum { POSITION_MASK = 0x3fffffff, INLINED_SHIFT = 31 };
    if (place < 0 || place & 1 || place >> INLINED_SHIFT)
        return -1;
    return (int32_t)(place >> 1 & POSITION_MASK) - 1;
}

int32_t v8_position_at(const struct v8_layout *layout, const struct elf_art_memory *memory, uint64_t bytecodes,
                       uint32_t offset)
{
    uint64_t head[2], array[ARRAY_WORDS];
    size_t at_word = (size_t)layout->bytecodes_positions / 8;
    if (at_word == 0 || at_word >= ARRAY_WORDS || !v8_read_object(memory, &bytecodes, array, sizeof array) ||
        v8_type_of_map(layout, memory, array[0]) != layout->bytecodes_type)
        return -1;
    uint64_t table = v8_object(array[at_word]);
    if (!v8_read_object(memory, &table, head, sizeof head))
        return -1;
    int32_t type = v8_type_of_map(layout, memory, head[0]);
    if (type < 0 || (type != layout->byte_array_type && type != layout->trusted_byte_array_type) ||
        !v8_is_smi(head[1]) || v8_smi(head[1]) <= 0 || v8_smi(head[1]) > TABLE_BYTES_MAX)
        return -1;
    struct stream stream = {.memory = memory, .address = table + ARRAY_DATA, .left = (size_t)v8_smi(head[1])};
    int64_t at = -1, place = 0, code, source; // before the first bytecode
    int32_t found = -1;
    // A place that is no statement has its distance as -distance - 1.
    while ((stream.left || stream.at < stream.got) && next_number(&stream, &code) && next_number(&stream, &source)) {
        at += code < 0 ? -(code + 1) : code;
        if (at > (int64_t)offset)
            break;
        place += source;
        found = position_of(place);
    }
    return found;
}

void v8_count_lines(struct v8_line_count *lines, const uint8_t *characters, size_t count, unsigned bytes_each,
                    void (*at)(void *context, uint32_t position), void *context)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t character =
            bytes_each == 1 ? characters[i] : (uint32_t)(characters[2 * i] | characters[2 * i + 1] << 8);
        // A line feed behind a carriage return belongs to it; lines end at two more characters.
        bool ends = lines->after_return && character != '\n';
        if (ends) {
            lines->line++;
            at(context, lines->position);
        }
        lines->after_return = character == '\r';
        lines->position++;
        if (character == '\n' || character == 0x2028 || character == 0x2029) {
            lines->line++;
            at(context, lines->position);
        }
    }
}
