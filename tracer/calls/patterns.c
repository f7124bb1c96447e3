// SPDX-License-Identifier: Apache-2.0
#include "tracer/calls/patterns.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/symbols/demangle.h"

enum { NAME_MAX_BYTES = 16384 + 1 };

int calls_patterns_add(struct calls_patterns *patterns, const char *text, bool is_excluded, struct base_error *error)
{
    bool turned = text[0] == '!';
    const char *rest = text + turned;
    const char *mark = strchr(rest, '!');
    const char *glob = mark ? mark + 1 : rest;
    if (!*glob || mark == rest)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "'%.100s' names no functions: [MODULE!]FUNCTION", text);
    struct calls_pattern pattern = {.text = strdup(text), .is_excluded = is_excluded || turned};
    if (mark)
        pattern.module = strndup(rest, (size_t)(mark - rest));
    struct calls_pattern *place = pattern.text && (pattern.module || !mark) ? BASE_ADD(patterns) : NULL;
    if (!place) {
        free(pattern.text);
        free(pattern.module);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "patterns");
    }
    pattern.glob = pattern.text + (glob - text);
    *place = pattern;
    return 0;
}

void calls_patterns_free(struct calls_patterns *patterns)
{
    for (size_t i = 0; i < patterns->count; i++) {
        free(patterns->items[i].text);
        free(patterns->items[i].module);
    }
    base_vector_free(&patterns->vector);
}

static bool fits(const char *glob, const char *text)
{
    return fnmatch(glob, text, 0) == 0;
}

static bool fits_module(const struct calls_pattern *pattern, const char *module)
{
    if (!pattern->module || fits(pattern->module, module))
        return true;
    char stem[256];
    const char *end = strstr(module, ".so");
    if (!end || end == module || (size_t)(end - module) >= sizeof stem)
        return false;
    memcpy(stem, module, (size_t)(end - module));
    stem[end - module] = 0;
    return fits(pattern->module, stem);
}

bool calls_patterns_want_module(const struct calls_patterns *patterns, const char *module)
{
    for (size_t i = 0; i < patterns->count; i++)
        if (!patterns->items[i].is_excluded && fits_module(&patterns->items[i], module))
            return true;
    return false;
}

// Where the arguments begin: at the bracket that the last one closes. 0: there are none.
static size_t arguments_at(const char *name, size_t length)
{
    size_t end = length;
    unsigned depth = 0;
    while (end > 0 && name[end - 1] != ')')
        end--;
    for (size_t i = end; i > 0; i--) {
        depth += name[i - 1] == ')';
        depth -= name[i - 1] == '(';
        if (depth == 0)
            return end ? i - 1 : 0;
    }
    return 0;
}

// Behind what is returned: the last blank outside of brackets, and not behind "operator".
static const char *behind_type(const char *name)
{
    static const char operator_word[] = "operator";
    const char *start = name;
    int depth = 0;
    for (const char *at = name; *at; at++) {
        size_t before = (size_t)(at - name);
        bool names_operator = before >= sizeof operator_word - 1 &&
                              memcmp(at - (sizeof operator_word - 1), operator_word, sizeof operator_word - 1) == 0;
        if (names_operator)
            return start; // its name may have any of these
        depth += *at == '(' || *at == '<' || *at == '{';
        depth -= *at == ')' || *at == '>' || *at == '}';
        if (*at == ' ' && depth == 0)
            start = at + 1;
    }
    return start;
}

// False: there is nothing to leave out, or no room.
static bool cut_arguments(const char *readable, char *name, size_t size)
{
    const char *clone = strstr(readable, " [clone");
    size_t length = clone ? (size_t)(clone - readable) : strlen(readable);
    const size_t arguments = arguments_at(readable, length);
    length = arguments ? arguments : length;
    if ((!arguments && !clone) || length >= size)
        return false;
    memcpy(name, readable, length);
    name[length] = 0;
    return true;
}

char *calls_name_bare(const char *readable, char *name, size_t size)
{
    if (!cut_arguments(readable, name, size)) {
        const size_t length = strnlen(readable, size - 1);
        memcpy(name, readable, length);
        name[length] = 0;
        return name;
    }
    const char *bare = behind_type(name);
    memmove(name, bare, strlen(bare) + 1);
    return name;
}

bool calls_name_fits(const char *glob, const char *readable)
{
    char name[NAME_MAX_BYTES];
    if (fits(glob, readable))
        return true;
    if (!cut_arguments(readable, name, sizeof name))
        return false;
    if (fits(glob, name))
        return true;
    const char *bare = behind_type(name);
    return bare != name && fits(glob, bare);
}

int calls_patterns_fit_name(const struct calls_patterns *patterns, const char *module, const char *name)
{
    char *readable = symbols_demangle(name);
    bool is_fit = false;
    if (!readable)
        return -1;
    for (size_t i = 0; i < patterns->count && !is_fit; i++) {
        const struct calls_pattern *pattern = &patterns->items[i];
        is_fit = !pattern->is_excluded && fits_module(pattern, module) &&
                 (fits(pattern->glob, name) || calls_name_fits(pattern->glob, readable));
    }
    free(readable);
    return is_fit;
}

static bool fits_names(const struct calls_pattern *pattern, const struct calls_plan *plan, uint32_t name,
                       uint32_t readable)
{
    return fits(pattern->glob, plan->names + name) ||
           (readable != name && calls_name_fits(pattern->glob, plan->names + readable));
}

// With all of its names. *alias: the function's first one, or behind it.
static bool fits_function(const struct calls_pattern *pattern, const struct calls_plan *plan, uint32_t index,
                          uint32_t alias)
{
    const struct qut_plan_function *function = &plan->functions[index];
    if (fits_names(pattern, plan, function->name, function->readable))
        return true;
    for (; alias < plan->header->alias_count && plan->aliases[alias].function == index; alias++)
        if (fits_names(pattern, plan, plan->aliases[alias].name, plan->aliases[alias].readable))
            return true;
    return false;
}

int calls_patterns_select(struct calls_patterns *patterns, const char *module, const struct calls_plan *plan,
                          struct calls_selection *selection, struct base_error *error)
{
    uint32_t alias = 0;
    for (uint32_t i = 0; i < plan->header->function_count; i++) {
        bool is_meant = false, is_excluded = false, is_caller = false,
             is_refused = plan->functions[i].kind == QUT_PLAN_REFUSED;
        while (alias < plan->header->alias_count && plan->aliases[alias].function < i)
            alias++;
        for (size_t k = 0; k < patterns->count; k++) {
            struct calls_pattern *pattern = &patterns->items[k];
            if (!fits_module(pattern, module) || !fits_function(pattern, plan, i, alias))
                continue;
            pattern->functions++;
            pattern->refused += is_refused;
            is_meant |= !pattern->is_excluded;
            is_excluded |= pattern->is_excluded;
            is_caller |= pattern->is_caller;
        }
        if (!is_meant || is_excluded)
            continue;
        uint32_t *caller = is_caller && !is_refused ? BASE_ADD(&selection->callers) : NULL;
        if (caller)
            *caller = i;
        uint32_t *place = is_caller && !is_refused && !caller ? NULL
                          : is_refused                        ? BASE_ADD(&selection->refused)
                                                              : BASE_ADD(selection);
        if (!place)
            return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "functions");
        *place = i;
    }
    return 0;
}

void calls_selection_free(struct calls_selection *selection)
{
    base_vector_free(&selection->vector);
    base_vector_free(&selection->refused.vector);
    base_vector_free(&selection->callers.vector);
}
