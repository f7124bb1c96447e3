// SPDX-License-Identifier: Apache-2.0
// Functions that were met, each with a number. A function is known by its code object: by its version, which no two
// objects share, where there is one; else by all that it leads to, since a program that makes and drops code does so at
// one place again and again. Both are read while a frame holds the object, so none can be taken for another one.
//
// Numbers are given and never taken back: a table of fixed size, to which threads add without a lock.
#include <string.h>

#include "libqut/python/inside.h"

enum { HASH_BITS = 12, STEPS_MAX = 64 };

enum state { EMPTY, READY, DOUBLE };

struct function {
    _Atomic uint32_t state; // enum state
    uint32_t older;         // the next one with this hash; 0: none
    uint32_t told;          // the mark with which it was told last
    struct cpython_code code;
    uint64_t table_hash;
    char name[CPYTHON_NAME_BYTES], file[CPYTHON_NAME_BYTES];
};

static struct function *functions; // from number 1 on
static _Atomic uint32_t *heads;    // by hash
static _Atomic uint32_t next_number = 1;
static _Atomic uint32_t has_new; // some are not told

bool python_functions_prepare(void)
{
    if (!functions)
        functions = os_reserve(sizeof *functions * PYTHON_FUNCTIONS_MAX);
    if (!heads)
        heads = os_reserve(sizeof *heads << HASH_BITS);
    return functions && heads;
}

static bool is_same(const struct cpython_code *a, const struct cpython_code *b)
{
    return a->address == b->address && a->name == b->name && a->file == b->file && a->lines == b->lines &&
           a->first_line == b->first_line && a->instruction_bytes == b->instruction_bytes && a->version == b->version;
}

// Of the table of lines, as far as there is room for it.
static uint64_t hash_table(const struct python_known *known, struct python_room *room, const struct cpython_code *code)
{
    size_t count = cpython_read_bytes(&known->runtime, &python_memory, code->lines, room->table, sizeof room->table);
    uint64_t hash = count + 1;
    for (size_t i = 0; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, room->table + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    for (size_t i = count & ~(size_t)7; i < count; i++)
        hash = (hash ^ room->table[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool read_texts(const struct python_known *known, struct python_room *room, const struct cpython_code *code)
{
    bool has_name =
        cpython_read_text_with(&known->runtime, &python_memory, code->name, room->name, sizeof room->name, room->table);
    cpython_read_text_with(&known->runtime, &python_memory, code->file, room->file, sizeof room->file, room->table);
    return has_name;
}
static_assert((size_t)PYTHON_TABLE_BYTES >= (size_t)CPYTHON_TEXT_ROOM_BYTES, "there is room for texts");

struct wanted {
    const struct cpython_code *code;
    const struct python_room *room; // what it leads to
    uint64_t table_hash;            // 0: its version tells it
};

static bool is_wanted(const struct function *function, const struct wanted *wanted)
{
    return is_same(&function->code, wanted->code) &&
           (wanted->code->version ||
            (function->table_hash == wanted->table_hash && strcmp(function->name, wanted->room->name) == 0 &&
             strcmp(function->file, wanted->room->file) == 0));
}

// From one number on, up to another one or the chain's end.
static uint32_t find(uint32_t number, uint32_t end, const struct wanted *wanted)
{
    for (unsigned steps = 0; number != end && number != 0 && steps < STEPS_MAX; steps++) {
        const struct function *function = &functions[number];
        if (is_wanted(function, wanted))
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

static void tell_later(void)
{
    if (atomic_exchange_explicit(&has_new, 1, memory_order_acq_rel) == 0)
        modules_registry_ring();
}

static uint32_t add(_Atomic uint32_t *head, uint32_t first, const struct wanted *wanted)
{
    uint32_t number = new_number(), tries = 0;
    if (number == PYTHON_NONE)
        return PYTHON_NONE;
    struct function *function = &functions[number];
    function->code = *wanted->code;
    function->table_hash = wanted->table_hash;
    memcpy(function->name, wanted->room->name, sizeof function->name);
    memcpy(function->file, wanted->room->file, sizeof function->file);
    function->older = first;
    // Release: who finds the number finds the function.
    while (!atomic_compare_exchange_strong_explicit(head, &first, number, memory_order_acq_rel, memory_order_acquire)) {
        uint32_t found = find(first, function->older, wanted); // another thread was quicker
        if (found != PYTHON_NONE || ++tries == STEPS_MAX) {
            atomic_store_explicit(&function->state, DOUBLE, memory_order_release);
            return found;
        }
        function->older = first;
    }
    atomic_store_explicit(&function->state, READY, memory_order_release);
    tell_later();
    return number;
}

uint32_t python_function_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code)
{
    uint64_t hash = (code->address >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    _Atomic uint32_t *head = &heads[hash >> (64 - HASH_BITS)];
    struct wanted wanted = {.code = code, .room = room};
    bool is_read = false;
    if (!code->version) {
        if (!read_texts(known, room, code))
            return PYTHON_NONE;
        wanted.table_hash = hash_table(known, room, code);
        is_read = true;
    }
    uint32_t first = atomic_load_explicit(head, memory_order_acquire), found = find(first, 0, &wanted);
    if (found != PYTHON_NONE || (!is_read && !read_texts(known, room, code)))
        return found;
    return add(head, first, &wanted);
}

// ---- our thread

static void tell_one(struct function *function, uint32_t number,
                     void (*tell)(void *context, uint64_t start, uint64_t bytes, const char *text), void *context)
{
    char text[CPYTHON_NAME_BYTES];
    cpython_function_text(function->name, function->file, text, sizeof text);
    tell(context, PYTHON_PC_BASE | (uint64_t)number << PYTHON_LINE_BITS, (uint64_t)1 << PYTHON_LINE_BITS, text);
}

void python_tell(uint32_t mark, void (*tell)(void *context, uint64_t start, uint64_t bytes, const char *text),
                 void *context)
{
    static uint32_t last_mark, first_untold;
    if (!functions || !heads)
        return;
    bool is_other = mark != last_mark;
    if (!is_other && atomic_load_explicit(&has_new, memory_order_acquire) == 0)
        return;
    atomic_store_explicit(&has_new, 0, memory_order_release);
    if (is_other) {
        first_untold = 1;
        tell(context, PYTHON_PC_BASE, (uint64_t)1 << PYTHON_LINE_BITS, "[unknown function]\n");
    }
    last_mark = mark;
    uint32_t end = atomic_load_explicit(&next_number, memory_order_relaxed);
    bool is_gap = false; // that one which is being made will fill
    for (uint32_t number = first_untold; number < end; number++) {
        struct function *function = &functions[number];
        uint32_t state = atomic_load_explicit(&function->state, memory_order_acquire);
        if (state == READY && function->told != mark) {
            tell_one(function, number, tell, context);
            function->told = mark;
        }
        is_gap = is_gap || state == EMPTY;
        if (!is_gap)
            first_untold = number + 1;
    }
}
