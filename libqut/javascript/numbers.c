// SPDX-License-Identifier: Apache-2.0
// Functions that were met, each with a number. Their objects move, so a function is known by what it is: its script,
// where it begins there, and its name. Numbers are given and never taken back: a table of fixed size, to which threads
// add without a lock.
#include <string.h>

#include "libqut/cpython/cpython.h"
#include "libqut/javascript/inside.h"
#include "libqut/modules/met.h"

enum { HASH_BITS = 12, STEPS_MAX = 64 };

struct function {
    uint32_t older; // the next one with this hash; 0: none
    struct modules_met met;
    int32_t script, start;
    char name[V8_NAME_BYTES], file[V8_FILE_BYTES];
};

static struct function *functions; // from number 1 on
static _Atomic uint32_t *heads;    // by hash
static _Atomic uint32_t next_number = 1;

static struct modules_met *met_of(uint32_t number)
{
    return &functions[number].met;
}

static struct modules_met_list met = {.item = met_of};

bool javascript_numbers_prepare(void)
{
    if (!functions)
        functions = os_reserve(sizeof *functions * JAVASCRIPT_FUNCTIONS_MAX);
    if (!heads)
        heads = os_reserve(sizeof *heads << HASH_BITS);
    return functions && heads;
}

void javascript_numbers_forget(void)
{
    if (functions)
        os_free_pages(functions, sizeof *functions * JAVASCRIPT_FUNCTIONS_MAX);
    if (heads)
        os_free_pages(heads, sizeof *heads << HASH_BITS);
    functions = NULL;
    heads = NULL;
}

static bool is_same(const struct function *known, const struct v8_function *function)
{
    return known->script == function->script.id && known->start == function->start &&
           strcmp(known->name, function->name) == 0 && strcmp(known->file, function->file) == 0;
}

static uint32_t find(uint32_t number, uint32_t end, const struct v8_function *function)
{
    for (unsigned steps = 0; number != end && number != 0 && steps < STEPS_MAX; steps++) {
        if (is_same(&functions[number], function))
            return number;
        number = functions[number].older;
    }
    return 0;
}

static _Atomic uint32_t *head_of(const struct v8_function *function)
{
    uint64_t hash = (uint32_t)function->script.id ^ (uint64_t)(uint32_t)function->start << 32;
    for (const char *text = function->name; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return &heads[hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - HASH_BITS)];
}

static uint32_t new_number(void)
{
    uint32_t number = atomic_load_explicit(&next_number, memory_order_relaxed);
    do {
        if (number >= JAVASCRIPT_FUNCTIONS_MAX)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&next_number, &number, number + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    return number;
}

uint32_t javascript_number_of(const struct v8_function *function)
{
    _Atomic uint32_t *head = head_of(function);
    uint32_t first = atomic_load_explicit(head, memory_order_acquire), found = find(first, 0, function), tries = 0;
    uint32_t number = found ? 0 : new_number();
    if (!number)
        return found;
    struct function *made = &functions[number];
    made->script = function->script.id;
    made->start = function->start;
    memcpy(made->name, function->name, sizeof made->name);
    memcpy(made->file, function->file, sizeof made->file);
    made->older = first;
    // Release: who finds the number finds the function.
    while (!atomic_compare_exchange_strong_explicit(head, &first, number, memory_order_acq_rel, memory_order_acquire)) {
        found = find(first, made->older, function); // another thread was quicker
        if (found || ++tries == STEPS_MAX)
            return found;
        made->older = first;
    }
    return number;
}

void javascript_meet(uint32_t number, uint32_t mark)
{
    modules_meet(&met, number, mark);
}

void javascript_numbers_after_fork(void)
{
    modules_forget_met(&met, functions ? atomic_load_explicit(&next_number, memory_order_relaxed) : 0);
}

// ---- our thread

struct telling {
    void (*tell)(void *context, uint64_t start, uint64_t bytes, const char *text);
    void *context;
};

static void tell_one(void *context, uint32_t number)
{
    const struct telling *telling = context;
    const struct function *function = &functions[number];
    char text[V8_NAME_BYTES];
    cpython_function_text(*function->name ? function->name : "(anonymous)", function->file, text, sizeof text);
    telling->tell(telling->context, V8_NUMBER_BASE | (uint64_t)number << V8_LINE_BITS, (uint64_t)1 << V8_LINE_BITS,
                  text);
}

void javascript_tell(uint32_t mark, void (*tell)(void *context, uint64_t start, uint64_t bytes, const char *text),
                     void *context)
{
    struct telling telling = {tell, context};
    if (functions && heads)
        modules_tell_met(&met, JAVASCRIPT_FUNCTIONS_MAX, mark, tell_one, &telling);
}
