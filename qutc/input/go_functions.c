// SPDX-License-Identifier: Apache-2.0
//   1.16: magic, 0, 0, quantum, word | functions, files, names, units, files, pcs, entries      words
//   1.18: the same                   | functions, files, text, names, units, files, pcs, entries
//
// An entry is a pc and the offset of the function's details, counted from the entries; its end is the next one's pc.
// They are words; from 1.18 on 4 bytes each, and pcs are offsets in the text. Details are
//
//   pc | name, arguments, deferreturn, sp, file, line, number of tables, unit, from 1.20 on first line    4 bytes each
//      | kind, from 1.17 on flags                                                                         1 byte each
//
// `sp` is where, in what `pcs` leads to, pairs begin of a change of depth (zigzag, from -1 on) and how many instruction
// quanta it lasts, both LEB128; a change of 0 that is not the first ends them.
//
// From 1.26 on `text` is 0, and stands in a record of the runtime's that the linker makes (.go.module; its pointers are
// filled in, relocations or not):
//
//   ... | first pc of a function, last pc, text | ...      words, all of them addresses
//
// Where among its fields is told by the entries: the distances between these three are the first and the last one.
#include "qutc/input/go_functions.h"

#include "qutc/input/image_store.h"

enum {
    SP_WORDS = 3, // before `sp`, behind the pc
    WORDS = 8,
    WORDS_1_20 = 9, // before the bytes
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

// 0: it is not there.
static uint64_t text_in_module(struct base_bytes module, unsigned word_bytes, uint64_t first_pc, uint64_t last_pc)
{
    if (!module.size)
        return 0;
    struct base_cursor cursor = base_cursor(module);
    uint64_t first = base_read_uint(&cursor, word_bytes), last = base_read_uint(&cursor, word_bytes);
    while (!cursor.failed) {
        uint64_t text = base_read_uint(&cursor, word_bytes);
        if (!cursor.failed && text && first - text == first_pc && last - text == last_pc)
            return text;
        first = last;
        last = text;
    }
    return 0;
}

static uint64_t pc_of_entry(const struct input_go_functions *functions, uint64_t index)
{
    struct base_cursor entry = base_cursor(functions->entries);
    base_cursor_skip(&entry, index * 2 * functions->word_bytes);
    return base_read_uint(&entry, functions->word_bytes);
}

bool input_go_open(struct input_go_functions *functions, struct base_bytes table, struct base_bytes module)
{
    struct base_cursor cursor = base_cursor(table);
    uint32_t magic = base_read_u32(&cursor);
    uint16_t zero = base_read_u16(&cursor);
    uint8_t quantum_bytes = base_read_u8(&cursor); // the least size of an instruction
    unsigned word_bytes = base_read_u8(&cursor);
    bool is_old = magic == MAGIC_1_16;
    if (cursor.failed || zero || (word_bytes != 4 && word_bytes != 8) ||
        (!is_old && magic != MAGIC_1_18 && magic != MAGIC_1_20))
        return false;
    *functions = (struct input_go_functions){.word_bytes = is_old ? word_bytes : 4,
                                             .pc_bytes = is_old ? word_bytes : 4,
                                             .quantum_bytes = quantum_bytes,
                                             .flags_offset = (magic == MAGIC_1_20 ? WORDS_1_20 : WORDS) * 4 + 1};
    functions->count = base_read_uint(&cursor, word_bytes);
    base_read_uint(&cursor, word_bytes);
    functions->text_start = is_old ? 0 : base_read_uint(&cursor, word_bytes);
    uint64_t names = base_read_uint(&cursor, word_bytes), units = base_read_uint(&cursor, word_bytes);
    base_read_uint(&cursor, word_bytes);
    uint64_t deltas = base_read_uint(&cursor, word_bytes);
    uint64_t entries = base_read_uint(&cursor, word_bytes);
    if (cursor.failed || units < names)
        return false;
    functions->names = from(table, names);
    if (functions->names.size > units - names)
        functions->names.size = (size_t)(units - names);
    functions->entries = functions->details = from(table, entries);
    functions->deltas = from(table, deltas);
    // The last entry has a pc only.
    uint64_t most = functions->entries.size / (2 * functions->word_bytes);
    if (functions->count > most)
        functions->count = most;
    if (!is_old && !functions->text_start)
        functions->text_start =
            text_in_module(module, word_bytes, pc_of_entry(functions, 0), pc_of_entry(functions, functions->count));
    return functions->count && functions->names.size && (is_old || functions->text_start);
}

bool input_go_at(const struct input_go_functions *functions, uint64_t index, struct input_go_function *function)
{
    struct base_cursor entry = base_cursor(functions->entries), details = base_cursor(functions->details);
    base_cursor_skip(&entry, index * 2 * functions->word_bytes);
    uint64_t start = base_read_uint(&entry, functions->word_bytes);
    base_cursor_skip(&details, base_read_uint(&entry, functions->word_bytes));
    uint64_t end = base_read_uint(&entry, functions->word_bytes);
    base_cursor_skip(&details, functions->pc_bytes);
    struct base_cursor flags = details;
    uint32_t name_offset = base_read_u32(&details);
    base_cursor_skip(&details, 4 * (SP_WORDS - 1));
    uint32_t sp_offset = base_read_u32(&details);
    base_cursor_skip(&flags, functions->flags_offset);
    uint8_t flag_bits = base_read_u8(&flags);
    if (entry.failed || details.failed || end <= start || name_offset >= functions->names.size)
        return false;
    *function = (struct input_go_function){.start = start + functions->text_start,
                                           .end = end + functions->text_start,
                                           .name_offset = name_offset,
                                           .sp_offset = sp_offset,
                                           .flags = flags.failed ? 0 : flag_bits};
    return function->end > function->start && functions->names.data[name_offset];
}

// ---- sp

void input_go_sp_begin(struct input_go_sp *sp, const struct input_go_functions *functions,
                       const struct input_go_function *function)
{
    *sp = (struct input_go_sp){.cursor = base_cursor(functions->deltas),
                               .pc = function->start,
                               .end = function->end,
                               .depth_bytes = -1,
                               .quantum_bytes = functions->quantum_bytes};
    base_cursor_skip(&sp->cursor, function->sp_offset);
    sp->cursor.failed |= function->sp_offset == 0;
}

bool input_go_sp_next(struct input_go_sp *sp)
{
    uint64_t change = base_read_uleb(&sp->cursor);
    if (sp->cursor.failed || (change == 0 && sp->has_begun) || change > UINT32_MAX)
        return false;
    sp->has_begun = true;
    sp->depth_bytes += (int64_t)(change >> 1) ^ -(int64_t)(change & 1);
    uint64_t quanta = base_read_uleb(&sp->cursor), left = sp->end - sp->pc;
    if (sp->cursor.failed || !quanta || !sp->quantum_bytes || quanta > left / sp->quantum_bytes)
        return false;
    sp->start = sp->pc;
    sp->pc += quanta * sp->quantum_bytes;
    return true;
}

// ---- where it is

bool input_go_find(const struct input_image *image, struct input_go_functions *functions)
{
    const struct input_elf *elf = &image->store->elf;
    const struct input_elf_section *section = input_elf_find(elf, ".gopclntab");
    struct base_bytes bytes, module;
    if (!section) // of a position-independent executable
        section = input_elf_find(elf, ".data.rel.ro.gopclntab");
    if (!section || input_elf_section_bytes(elf, section, &bytes, NULL) != 0)
        return false;
    section = input_elf_find(elf, ".go.module");
    if (!section || input_elf_section_bytes(elf, section, &module, NULL) != 0)
        module = (struct base_bytes){0};
    return input_go_open(functions, bytes, module);
}
