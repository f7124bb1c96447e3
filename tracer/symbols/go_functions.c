// SPDX-License-Identifier: Apache-2.0
//   1.16: magic, 0, 0, quantum, word | functions, files, names, units, files, pcs, entries      words
//   1.18: the same                   | functions, files, text, names, units, files, pcs, entries
//
// An entry is a pc and the offset of the function's details, counted from the entries; its end is the next one's pc.
// They are words; from 1.18 on 4 bytes each, and pcs are offsets in the text. Details begin with the pc and 4 bytes:
// the name's offset.
#include "tracer/symbols/go_functions.h"

enum {
    MAGIC_1_16 = 0xfffffffa,
    MAGIC_1_18 = 0xfffffff0,
    MAGIC_1_20 = 0xfffffff1,
};

static struct base_bytes from(struct base_bytes table, uint64_t offset)
{
    struct base_cursor cursor = base_cursor(table);
    base_cursor_skip(&cursor, offset);
    return cursor.failed ? (struct base_bytes){0} : base_read_bytes(&cursor, base_cursor_left(&cursor));
}

bool symbols_go_open(struct go_functions *functions, struct base_bytes table)
{
    struct base_cursor cursor = base_cursor(table);
    uint32_t magic = base_read_u32(&cursor);
    uint16_t zero = base_read_u16(&cursor);
    base_read_u8(&cursor); // the least size of an instruction
    unsigned word_bytes = base_read_u8(&cursor);
    bool is_old = magic == MAGIC_1_16;
    if (cursor.failed || zero || (word_bytes != 4 && word_bytes != 8) ||
        (!is_old && magic != MAGIC_1_18 && magic != MAGIC_1_20))
        return false;
    *functions = (struct go_functions){.word_bytes = is_old ? word_bytes : 4, .pc_bytes = is_old ? word_bytes : 4};
    functions->count = base_read_uint(&cursor, word_bytes);
    base_read_uint(&cursor, word_bytes);
    functions->text_start = is_old ? 0 : base_read_uint(&cursor, word_bytes);
    uint64_t names = base_read_uint(&cursor, word_bytes), units = base_read_uint(&cursor, word_bytes);
    base_read_uint(&cursor, word_bytes);
    base_read_uint(&cursor, word_bytes);
    uint64_t entries = base_read_uint(&cursor, word_bytes);
    // Where a linker fills in the beginning of the text when the program is loaded, it is not known here.
    if (cursor.failed || units < names || (!is_old && !functions->text_start))
        return false;
    functions->names = from(table, names);
    if (functions->names.size > units - names)
        functions->names.size = (size_t)(units - names);
    functions->entries = functions->details = from(table, entries);
    // The last entry has a pc only.
    uint64_t most = functions->entries.size / (2 * functions->word_bytes);
    if (functions->count > most)
        functions->count = most;
    return functions->count && functions->names.size;
}

bool symbols_go_at(const struct go_functions *functions, uint64_t index, struct go_function *function)
{
    struct base_cursor entry = base_cursor(functions->entries), details = base_cursor(functions->details);
    base_cursor_skip(&entry, index * 2 * functions->word_bytes);
    uint64_t start = base_read_uint(&entry, functions->word_bytes);
    base_cursor_skip(&details, base_read_uint(&entry, functions->word_bytes));
    uint64_t end = base_read_uint(&entry, functions->word_bytes);
    base_cursor_skip(&details, functions->pc_bytes);
    uint32_t name_offset = base_read_u32(&details);
    if (entry.failed || details.failed || end <= start || name_offset >= functions->names.size)
        return false;
    *function = (struct go_function){start + functions->text_start, end + functions->text_start, name_offset};
    return function->end > function->start && functions->names.data[name_offset];
}
