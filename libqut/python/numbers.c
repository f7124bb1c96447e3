// SPDX-License-Identifier: Apache-2.0
// Functions that were met, each with a number. A function is known by its code object: by its version, which no two
// objects share, where there is one; else by all that it leads to, since a program that makes and drops code does so at
// one place again and again. Both are read while a frame holds the object, so none can be taken for another one.
//
// Numbers are given and never taken back: a table of fixed size, to which threads add without a lock.
#include <string.h>

#include "libqut/modules/met.h"
#include "libqut/modules/own_memory.h"
#include "libqut/python/inside.h"

enum { HASH_BITS = 12, STEPS_MAX = 64 };

// What tells it from a function whose code object is like its own: how long name, file and table are, where they begin
// in their objects, and all that is in them.
struct content {
    uint32_t name_bytes, name_offset, file_bytes, file_offset, table_bytes;
    uint64_t hash;
};

struct function {
    uint32_t older; // the next one with this hash; 0: none
    struct modules_met met;
    struct cpython_code code;
    struct content content; // where no version tells it
    char name[CPYTHON_NAME_BYTES], file[CPYTHON_NAME_BYTES];
};

static struct function *functions; // from number 1 on
static _Atomic uint32_t *heads;    // by hash
static _Atomic uint32_t next_number = 1;

static struct modules_met *met_of(uint32_t number)
{
    return &functions[number].met;
}

static struct modules_met_list met = {.item = met_of};

bool python_functions_prepare(void)
{
    if (!functions)
        functions = os_reserve(sizeof *functions * PYTHON_FUNCTIONS_MAX);
    if (!heads)
        heads = os_reserve(sizeof *heads << HASH_BITS);
    return functions && heads;
}

void python_functions_forget(void)
{
    if (functions)
        os_free_pages(functions, sizeof *functions * PYTHON_FUNCTIONS_MAX);
    if (heads)
        os_free_pages(heads, sizeof *heads << HASH_BITS);
    functions = NULL;
    heads = NULL;
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
    enum { KIND_SHIFT = 2, KIND_MASK = 7, ASCII = 64 };
    uint64_t length = word_of(head + layout->text_length);
    uint32_t state = head[layout->text_state], width = state >> KIND_SHIFT & KIND_MASK;
    if (length > UNITS_MAX || width > 4)
        return false;
    *bytes = (uint32_t)length * width;
    *offset = state & ASCII ? layout->text_ascii_data : layout->text_data;
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

// From one number on, up to another one or the chain's end.
static uint32_t find(uint32_t number, uint32_t end, struct wanted *wanted)
{
    for (unsigned steps = 0; number != end && number != 0 && steps < STEPS_MAX; steps++) {
        const struct function *function = &functions[number];
        if (is_same(&function->code, wanted->code) &&
            (wanted->code->version || has_content(wanted, &function->content)))
            return number;
        number = function->older;
    }
    return PYTHON_NONE;
}

static uint32_t new_number(void)
{
    uint32_t number = atomic_load_explicit(&next_number, memory_order_relaxed);
    do {
        if (number >= PYTHON_FUNCTIONS_MAX) {
            python_add_count(PYTHON_NO_ROOM);
            return PYTHON_NONE;
        }
    } while (!atomic_compare_exchange_weak_explicit(&next_number, &number, number + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return number;
}

static uint32_t meet(uint32_t number, uint32_t mark)
{
    if (number != PYTHON_NONE)
        modules_meet(&met, number, mark);
    return number;
}

static uint32_t add(_Atomic uint32_t *head, uint32_t first, struct wanted *wanted)
{
    uint32_t number = new_number(), tries = 0;
    if (number == PYTHON_NONE)
        return PYTHON_NONE;
    struct function *function = &functions[number];
    function->code = *wanted->code;
    function->content = wanted->content;
    memcpy(function->name, wanted->room->name, sizeof function->name);
    memcpy(function->file, wanted->room->file, sizeof function->file);
    function->older = first;
    // Release: who finds the number finds the function.
    while (!atomic_compare_exchange_strong_explicit(head, &first, number, memory_order_acq_rel, memory_order_acquire)) {
        uint32_t found = find(first, function->older, wanted); // another thread was quicker
        if (found != PYTHON_NONE || ++tries == STEPS_MAX)
            return found;
        function->older = first;
    }
    return number;
}

static _Atomic uint32_t *head_of(const struct cpython_code *code)
{
    return &heads[(code->address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS)];
}

uint32_t python_function_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                            uint32_t mark)
{
    _Atomic uint32_t *head = head_of(code);
    struct wanted wanted = {.known = known, .room = room, .code = code};
    uint32_t first = atomic_load_explicit(head, memory_order_acquire), found = find(first, 0, &wanted);
    if (found != PYTHON_NONE)
        return meet(found, mark);
    if (!code->version &&
        !(measure(known, room, code, &wanted.content) && hash_content(known, room, code, &wanted.content)))
        return PYTHON_NONE;
    wanted.is_read = true;
    return read_texts(known, room, code) ? meet(add(head, first, &wanted), mark) : PYTHON_NONE;
}

// The newest that has such a code object, whatever that holds now.
static uint32_t newest_like(const struct cpython_code *code)
{
    uint32_t number = atomic_load_explicit(head_of(code), memory_order_acquire);
    for (unsigned steps = 0; number != 0 && steps < STEPS_MAX && !is_same(&functions[number].code, code); steps++)
        number = functions[number].older;
    return number != 0 && is_same(&functions[number].code, code) ? number : PYTHON_NONE;
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
        size_t size = parts_of(&known->runtime.layout, &room->codes[i], &functions[room->numbers[i]].content, parts);
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
        bool is_it = is_read && hash_of(room->table + used, size) == functions[room->numbers[i]].content.hash;
        room->numbers[i] = is_it ? meet(room->numbers[i], mark) : PYTHON_NONE;
        used += size;
    }
}

// ---- our thread

void python_functions_after_fork(void)
{
    modules_forget_met(&met, functions ? atomic_load_explicit(&next_number, memory_order_relaxed) : 0);
}

struct telling {
    void (*tell)(void *context, uint64_t start, uint64_t bytes, const char *text);
    void *context;
};

static void tell_one(void *context, uint32_t number)
{
    const struct telling *telling = context;
    char text[CPYTHON_NAME_BYTES];
    cpython_function_text(functions[number].name, functions[number].file, text, sizeof text);
    telling->tell(telling->context, CPYTHON_NUMBER_BASE | (uint64_t)number << CPYTHON_LINE_BITS,
                  (uint64_t)1 << CPYTHON_LINE_BITS, text);
}

void python_tell(uint32_t mark, void (*tell)(void *context, uint64_t start, uint64_t bytes, const char *text),
                 void *context)
{
    static uint32_t last_mark;
    if (!functions || !heads)
        return;
    if (mark != last_mark)
        tell(context, CPYTHON_NUMBER_BASE, (uint64_t)1 << CPYTHON_LINE_BITS, "[unknown function]\n");
    last_mark = mark;
    struct telling telling = {tell, context};
    modules_tell_met(&met, PYTHON_FUNCTIONS_MAX, mark, tell_one, &telling);
}
