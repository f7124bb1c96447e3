// SPDX-License-Identifier: Apache-2.0
// Functions that were met, each with a number. A function is known by its code object: by its version, which no two
// objects share, where there is one; else by all that it leads to, since a program that makes and drops code does so at
// one place again and again. Both are read while a frame holds the object, so none can be taken for another one.
#include <string.h>

#include "libqut/modules/own_memory.h"
#include "libqut/python/inside.h"

// What tells it from a function whose code object is like its own: how long name, file and table are, where they begin
// in their objects, and all that is in them.
struct content {
    uint32_t name_bytes, name_offset, file_bytes, file_offset, table_bytes;
    uint64_t hash;
};

struct function {
    struct functions_item item;
    struct cpython_code code;
    struct content content; // where no version tells it
    char name[CPYTHON_NAME_BYTES], file[CPYTHON_NAME_BYTES];
};

static void texts_of(const void *item, const char **name, const char **file)
{
    const struct function *function = item;
    *name = function->name;
    *file = function->file;
}

struct functions_table python_functions = {
    .item_bytes = sizeof(struct function),
    .number_end = PYTHON_FUNCTIONS_MAX,
    .base = CPYTHON_NUMBER_BASE,
    .line_bits = CPYTHON_LINE_BITS,
    .texts = texts_of,
};

static const struct function *function_at(uint32_t number)
{
    return functions_item(&python_functions, number);
}

static bool is_same(const struct cpython_code *a, const struct cpython_code *b)
{
    return a->address == b->address && a->name == b->name && a->file == b->file && a->lines == b->lines &&
           a->first_line == b->first_line && a->instruction_bytes == b->instruction_bytes && a->version == b->version;
}

// ---- what a code object leads to

// How much of it is read with one system call, in parts: of each object its length, and what it holds.
enum { HEAD_BYTES = 40, UNITS_MAX = CPYTHON_NAME_BYTES, CONTENT_TABLE_MAX = PYTHON_TABLE_BYTES - 4096 - 64 };
static_assert(2 * 4 * UNITS_MAX <= 4096, "two texts have room beside a table");

static uint64_t word_of(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static bool measure_text(const struct cpython_layout *layout, const uint8_t *head, uint32_t *bytes, uint32_t *offset)
{
    enum { KIND_SHIFT = 2, KIND_MASK = 7, COMPACT = 32, ASCII = 64 };
    uint64_t length = word_of(head + layout->text_length);
    uint32_t state = head[layout->text_state], width = state >> KIND_SHIFT & KIND_MASK;
    if (length > UNITS_MAX || width > 4)
        return false;
    bool is_ascii = (state & (COMPACT | ASCII)) == (COMPACT | ASCII) && width == 1;
    *bytes = (uint32_t)length * width;
    *offset = is_ascii ? layout->text_ascii_data : layout->text_data;
    return true;
}

// False: it is too long to be compared, or cannot be read.
static bool measure(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                    struct content *content)
{
    const struct cpython_layout *layout = &known->runtime.layout;
    const struct os_part heads_of[] = {
        {(uintptr_t)code->name, HEAD_BYTES}, {(uintptr_t)code->file, HEAD_BYTES}, {(uintptr_t)code->lines, HEAD_BYTES}};
    uint8_t *heads_read = room->table;
    if (os_read_parts(heads_of, 3, heads_read) != 3 * HEAD_BYTES)
        return false;
    uint64_t table_bytes = word_of(heads_read + 2 * HEAD_BYTES + layout->object_size);
    content->table_bytes = (uint32_t)table_bytes;
    return table_bytes <= CONTENT_TABLE_MAX &&
           measure_text(layout, heads_read, &content->name_bytes, &content->name_offset) &&
           measure_text(layout, heads_read + HEAD_BYTES, &content->file_bytes, &content->file_offset);
}

// Of what has these measures. Returns how many bytes they are.
static size_t parts_of(const struct cpython_layout *layout, const struct cpython_code *code,
                       const struct content *content, struct os_part parts[PYTHON_PARTS])
{
    const uintptr_t name = (uintptr_t)code->name, file = (uintptr_t)code->file, lines = (uintptr_t)code->lines;
    size_t size = 0;
    parts[0] = (struct os_part){name + layout->text_length, 8};
    parts[1] = (struct os_part){name + content->name_offset, content->name_bytes};
    parts[2] = (struct os_part){file + layout->text_length, 8};
    parts[3] = (struct os_part){file + content->file_offset, content->file_bytes};
    parts[4] = (struct os_part){lines + layout->object_size, 8};
    parts[5] = (struct os_part){lines + layout->bytes_data, content->table_bytes};
    for (unsigned i = 0; i < PYTHON_PARTS; i++)
        size += parts[i].size;
    return size;
}

static uint64_t hash_of(const uint8_t *bytes, size_t size)
{
    uint64_t hash = size;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < 8 ? size - i : 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool hash_content(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                         struct content *content)
{
    struct os_part parts[PYTHON_PARTS];
    size_t size = parts_of(&known->runtime.layout, code, content, parts);
    if (os_read_parts(parts, PYTHON_PARTS, room->table) != size)
        return false;
    content->hash = hash_of(room->table, size);
    return true;
}

static bool has_same_measures(const struct content *a, const struct content *b)
{
    return a->name_bytes == b->name_bytes && a->file_bytes == b->file_bytes && a->table_bytes == b->table_bytes &&
           a->name_offset == b->name_offset && a->file_offset == b->file_offset;
}

// Of what was read to be compared. False: it is not as plain as that.
static bool take_text(const uint8_t *bytes, uint32_t size, char *text, size_t room_bytes)
{
    if (size == 0 || size >= room_bytes)
        return false;
    for (uint32_t i = 0; i < size; i++)
        if (bytes[i] == 0 || bytes[i] >= 0x80)
            return false;
    memcpy(text, bytes, size);
    text[size] = 0;
    return true;
}

static bool take_texts(const struct cpython_layout *layout, struct python_room *room, const struct content *content)
{
    const uint8_t *name = room->table + sizeof(uint64_t), *file = name + content->name_bytes + sizeof(uint64_t);
    return content->name_offset == layout->text_ascii_data && content->file_offset == layout->text_ascii_data &&
           take_text(name, content->name_bytes, room->name, sizeof room->name) &&
           take_text(file, content->file_bytes, room->file, sizeof room->file);
}

static bool read_texts(const struct python_known *known, struct python_room *room, const struct cpython_code *code)
{
    bool has_name = cpython_read_text_with(&known->runtime, &modules_own_memory, code->name, room->name,
                                           sizeof room->name, room->table);
    cpython_read_text_with(&known->runtime, &modules_own_memory, code->file, room->file, sizeof room->file,
                           room->table);
    return has_name;
}
static_assert((size_t)PYTHON_TABLE_BYTES >= (size_t)CPYTHON_TEXT_ROOM_BYTES, "there is room for texts");

// ---- the table

struct wanted {
    const struct python_known *known;
    struct python_room *room;
    const struct cpython_code *code;
    struct content content; // as far as it was read: with the measures of those that it was compared with
    bool is_read;
};

static bool has_content(struct wanted *wanted, const struct content *content)
{
    if (!wanted->is_read || !has_same_measures(&wanted->content, content)) {
        wanted->content = *content;
        wanted->is_read = hash_content(wanted->known, wanted->room, wanted->code, &wanted->content);
    }
    return wanted->is_read && wanted->content.hash == content->hash;
}

static bool is_it(const void *item, void *context)
{
    const struct function *function = item;
    struct wanted *wanted = context;
    return is_same(&function->code, wanted->code) && (wanted->code->version || has_content(wanted, &function->content));
}

static void fill(void *item, const void *context)
{
    struct function *function = item;
    const struct wanted *wanted = context;
    function->code = *wanted->code;
    function->content = wanted->content;
    memcpy(function->name, wanted->room->name, sizeof function->name);
    memcpy(function->file, wanted->room->file, sizeof function->file);
}

static uint32_t meet(uint32_t number, uint32_t mark)
{
    if (number != PYTHON_NONE)
        functions_meet(&python_functions, number, mark);
    return number;
}

static uint64_t key_of(const struct cpython_code *code)
{
    return code->address >> 4;
}

uint32_t python_function_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                            uint32_t mark)
{
    struct wanted wanted = {.known = known, .room = room, .code = code};
    struct functions_wanted search = {.key = key_of(code), .is_it = is_it, .context = &wanted};
    uint32_t found = functions_find(&python_functions, &search);
    if (found != PYTHON_NONE)
        return meet(found, mark);
    if (!code->version &&
        !(measure(known, room, code, &wanted.content) && hash_content(known, room, code, &wanted.content)))
        return PYTHON_NONE;
    wanted.is_read = true;
    const bool has_name =
        (!code->version && take_texts(&known->runtime.layout, room, &wanted.content)) || read_texts(known, room, code);
    return has_name ? meet(functions_add(&python_functions, &search, fill), mark) : PYTHON_NONE;
}

static bool is_like(const void *item, void *context)
{
    const struct function *function = item;
    const struct cpython_code *const *code = context;
    return is_same(&function->code, *code);
}

// The newest that has such a code object, whatever that holds now.
static uint32_t newest_like(const struct cpython_code *code)
{
    struct functions_wanted search = {.key = key_of(code), .is_it = is_like, .context = &code};
    return functions_find(&python_functions, &search);
}

void python_find_unversioned(const struct python_known *known, struct python_room *room, uint32_t mark)
{
    size_t used = 0;
    unsigned part_count = 0;
    for (unsigned i = 0; i < room->code_count; i++) {
        room->numbers[i] = room->is_code[i] ? newest_like(&room->codes[i]) : PYTHON_NONE;
        if (room->numbers[i] == PYTHON_NONE)
            continue;
        struct os_part *parts = &room->content_parts[part_count];
        size_t size = parts_of(&known->runtime.layout, &room->codes[i], &function_at(room->numbers[i])->content, parts);
        if (size > sizeof room->table - used) {
            room->numbers[i] = PYTHON_NONE;
            continue;
        }
        used += size;
        part_count += PYTHON_PARTS;
    }
    bool is_read = part_count > 0 && os_read_parts(room->content_parts, part_count, room->table) == used;
    used = 0;
    for (unsigned i = 0, part = 0; i < room->code_count; i++) {
        if (room->numbers[i] == PYTHON_NONE)
            continue;
        size_t size = 0;
        for (unsigned end = part + PYTHON_PARTS; part < end; part++)
            size += room->content_parts[part].size;
        bool is_it = is_read && hash_of(room->table + used, size) == function_at(room->numbers[i])->content.hash;
        room->numbers[i] = is_it ? meet(room->numbers[i], mark) : PYTHON_NONE;
        used += size;
    }
}

// ---- our thread

void python_tell(uint32_t mark, functions_tell *tell, void *context)
{
    static uint32_t last_mark;
    if (!python_functions.items)
        return;
    if (mark != last_mark)
        tell(context, CPYTHON_NUMBER_BASE, (uint64_t)1 << CPYTHON_LINE_BITS, "[unknown function]\n");
    last_mark = mark;
    functions_tell_met(&python_functions, mark, tell, context);
}
