// SPDX-License-Identifier: Apache-2.0
// Functions that were met, each with a number. Their objects move, so a function is known by what it is: its script,
// where it begins there, and its name.
#include <string.h>

#include "libqut/javascript/inside.h"

struct function {
    struct functions_item item;
    int32_t script, start;
    char name[V8_NAME_BYTES], file[V8_FILE_BYTES];
};

static void texts_of(const void *item, const char **name, const char **file)
{
    const struct function *function = item;
    *name = *function->name ? function->name : "(anonymous)";
    *file = function->file;
}

struct functions_table javascript_functions = {
    .item_bytes = sizeof(struct function),
    .number_end = JAVASCRIPT_FUNCTIONS_MAX,
    .base = V8_NUMBER_BASE,
    .line_bits = V8_LINE_BITS,
    .texts = texts_of,
};

static bool is_it(const void *item, void *context)
{
    const struct function *known = item;
    const struct v8_function *const *function = context;
    return known->script == (*function)->script.id && known->start == (*function)->start &&
           strcmp(known->name, (*function)->name) == 0 && strcmp(known->file, (*function)->file) == 0;
}

static void fill(void *item, const void *context)
{
    struct function *made = item;
    const struct v8_function *const *function = context;
    made->script = (*function)->script.id;
    made->start = (*function)->start;
    memcpy(made->name, (*function)->name, sizeof made->name);
    memcpy(made->file, (*function)->file, sizeof made->file);
}

static uint64_t key_of(const struct v8_function *function)
{
    uint64_t key = (uint32_t)function->script.id ^ (uint64_t)(uint32_t)function->start << 32;
    for (const char *text = function->name; *text; text++)
        key = (key ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return key;
}

uint32_t javascript_number_of(const struct v8_function *function)
{
    struct functions_wanted search = {.key = key_of(function), .is_it = is_it, .context = &function};
    uint32_t found = functions_find(&javascript_functions, &search);
    return found ? found : functions_add(&javascript_functions, &search, fill);
}

// ---- our thread

void javascript_tell(uint32_t mark, functions_tell *tell, void *context)
{
    functions_tell_met(&javascript_functions, mark, tell, context);
}
