// SPDX-License-Identifier: Apache-2.0
// Functions that were met, each with a number. A function is known by its code object: by its version, which no two
// objects share, where there is one; else by all that it leads to, since a program that makes and drops code does so at
// one place again and again. Both are read while a frame holds the object, so none can be taken for another one.
//
// Numbers are given and never taken back: a table of fixed size, to which threads add without a lock.
#include <string.h>

#include "libqut/python/inside.h"

enum { HASH_BITS = 12, STEPS_MAX = 64 };

struct function {
    uint32_t older; // the next one with this hash; 0: none
    // Of the trace that it was met in last; of the one that it was told for last.
    _Atomic uint32_t met;
    uint32_t told;
    // In the list of those that are to be told, from met_now on.
    _Atomic uint32_t is_listed;
    uint32_t next;
    struct cpython_code code;
    uint64_t table_hash;
    char name[CPYTHON_NAME_BYTES], file[CPYTHON_NAME_BYTES];
};

static struct function *functions; // from number 1 on
static _Atomic uint32_t *heads;    // by hash
static _Atomic uint32_t next_number = 1;
static _Atomic uint32_t met_now; // 0: none

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

// Our thread takes all of the list at once, so a number is in it once, at one place.
static void tell_later(struct function *function, uint32_t number)
{
    if (atomic_exchange_explicit(&function->is_listed, 1, memory_order_acq_rel))
        return;
    function->next = atomic_load_explicit(&met_now, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&met_now, &function->next, number, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
    }
    if (function->next == 0)
        modules_registry_ring();
}

static uint32_t meet(uint32_t number, uint32_t mark)
{
    struct function *function = &functions[number];
    if (number != PYTHON_NONE && atomic_load_explicit(&function->met, memory_order_relaxed) != mark) {
        atomic_store_explicit(&function->met, mark, memory_order_release);
        tell_later(function, number);
    }
    return number;
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
        if (found != PYTHON_NONE || ++tries == STEPS_MAX)
            return found;
        function->older = first;
    }
    return number;
}

uint32_t python_function_of(const struct python_known *known, struct python_room *room, const struct cpython_code *code,
                            uint32_t mark)
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
    if (found == PYTHON_NONE && (is_read || read_texts(known, room, code)))
        found = add(head, first, &wanted);
    return meet(found, mark);
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
    static uint32_t last_mark;
    if (!functions || !heads)
        return;
    if (mark != last_mark)
        tell(context, PYTHON_PC_BASE, (uint64_t)1 << PYTHON_LINE_BITS, "[unknown function]\n");
    last_mark = mark;
    uint32_t number = atomic_exchange_explicit(&met_now, 0, memory_order_acq_rel);
    for (uint32_t steps = 0; number != 0 && steps < PYTHON_FUNCTIONS_MAX; steps++) {
        struct function *function = &functions[number];
        uint32_t next = function->next;
        atomic_store_explicit(&function->is_listed, 0, memory_order_seq_cst);
        if (atomic_load_explicit(&function->met, memory_order_seq_cst) == mark && function->told != mark) {
            tell_one(function, number, tell, context);
            function->told = mark;
        }
        number = next;
    }
}
