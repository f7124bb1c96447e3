// SPDX-License-Identifier: Apache-2.0
// Which names are the same function.
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tracer/diff/inside.h"

// What gcc and clang put behind a name, with a number behind it or not.
static const char *const words[] = {".cold", ".isra", ".part", ".constprop", ".lto_priv", ".llvm", ".localalias"};

static bool ends_in(const char *name, size_t length, const char *end)
{
    const size_t size = strlen(end);
    return length > size && memcmp(name + length - size, end, size) == 0;
}

// The length without one such word; the same where there is none.
static size_t without_word(const char *name, size_t length)
{
    size_t end = length;
    while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    const bool has_number = end < length && end && name[end - 1] == '.';
    const size_t before = has_number ? end - 1 : length;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ends_in(name, before, words[i]))
            return before - strlen(words[i]);
    return length;
}

// " [clone .isra.0]", as demanglers have it.
static size_t without_clone(const char *name, size_t length)
{
    static const char open[] = " [clone .";
    if (!length || name[length - 1] != ']')
        return length;
    for (size_t at = length; at-- > 0;)
        if (length - at > sizeof open && memcmp(name + at, open, sizeof open - 1) == 0)
            return at ? at : length;
    return length;
}

size_t diff_name_length(const char *name)
{
    size_t length = strlen(name), last;
    do {
        last = length;
        length = without_clone(name, without_word(name, length));
    } while (length < last);
    return length;
}

static uint32_t number_of(struct diff *diff, const char *name, size_t length, const char *module, size_t module_length)
{
    const uint32_t text = base_interner_add_part(&diff->strings, name, length);
    const uint32_t file = base_interner_add_part(&diff->strings, module, module_length);
    const uint64_t hash = base_hash_word(0, (uint64_t)text << 32 | file);
    uint32_t found;
    if (diff->strings.has_failed)
        return BASE_HASH_NONE;
    for (uint32_t step = 0; (found = base_hash_next(&diff->function_index, hash, &step)) != BASE_HASH_NONE;)
        if (diff->functions.items[found].name == text && diff->functions.items[found].module == file)
            return found;
    found = (uint32_t)diff->functions.count;
    if (!BASE_RESERVE(&diff->samples, diff_all(diff)) || !BASE_RESERVE(&diff->calls, diff_all(diff)) ||
        !BASE_RESERVE(&diff->functions, 1) || !base_hash_add(&diff->function_index, hash, found))
        return BASE_HASH_NONE;
    memset(diff->samples.items + diff->samples.count, 0, diff_all(diff) * sizeof *diff->samples.items);
    memset(diff->calls.items + diff->calls.count, 0, diff_all(diff) * sizeof *diff->calls.items);
    diff->samples.count += diff_all(diff);
    diff->calls.count += diff_all(diff);
    diff->functions.items[diff->functions.count++] = (struct diff_function){.name = text, .module = file};
    return found;
}

uint32_t diff_function_of(struct diff *diff, const struct name *name)
{
    const char *so = strstr(name->module, ".so");
    const size_t module_length = so ? (size_t)(so - name->module) : 0; // no library: any program
    if (name->is_known)
        return number_of(diff, name->function, diff_name_length(name->function), name->module, module_length);
    char text[300];
    const char *where = *name->module ? "[no names: the program]" : "[no names: memory]";
    if (module_length) {
        snprintf(text, sizeof text, "[no names: %.*s]", (int)(module_length < 200 ? module_length : 200), name->module);
        where = text;
    }
    return number_of(diff, where, strlen(where), name->module, module_length);
}
