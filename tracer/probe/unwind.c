// SPDX-License-Identifier: Apache-2.0
// Which calls an exception has left is known where it is caught: a script that asks for them marks the functions of
// C++'s libraries that throw, and that begin handlers. Programs that have such a library within themselves have it in
// the file whose functions are asked about, mostly.
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/inside.h"

static const char *const libraries[] = {"libstdc++.so*", "libc++abi.so*", "libc++.so*"};
static const struct mark {
    enum qut_probe_kind kind;
    const char *name;
} marks[] = {{QUT_PROBE_THROWS, "__cxa_*throw"},
             {QUT_PROBE_THROWS, "_ZSt17rethrow_exception*"},
             {QUT_PROBE_CATCHES, "__cxa_begin_catch"}};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, MARKS = sizeof marks / sizeof *marks };

static bool has_place(const struct probe_script *script, enum qut_probe_kind kind, const char *pattern)
{
    for (size_t i = 0; i < script->places.count; i++)
        if (script->places.items[i].kind == kind && strcmp(script->places.items[i].pattern, pattern) == 0)
            return true;
    return false;
}

// `module_bytes` 0: in any module.
static bool add_place(struct probe_compiler *c, const struct mark *mark, const char *module, size_t module_bytes,
                      uint32_t program)
{
    const size_t name_bytes = strlen(mark->name) + 1;
    char *pattern = malloc(module_bytes + 1 + name_bytes);
    if (!pattern)
        return probe_no_memory(c);
    memcpy(pattern, module, module_bytes);
    pattern[module_bytes] = '!';
    memcpy(pattern + module_bytes + (module_bytes != 0), mark->name, name_bytes);
    struct probe_place *place = has_place(c->script, mark->kind, pattern) ? NULL : BASE_ADD(&c->script->places);
    if (!place) {
        const bool is_there = has_place(c->script, mark->kind, pattern);
        free(pattern);
        return is_there || probe_no_memory(c);
    }
    *place = (struct probe_place){.kind = mark->kind, .pattern = pattern, .program = program};
    return true;
}

static bool add_program(struct probe_compiler *c, enum qut_probe_kind kind)
{
    if (c->programs.count == QUT_PROBE_PROGRAMS_MAX)
        return probe_fail(c, c->token.at, c->token.length, "more than %d probes, with two that \"unwind\" needs",
                          QUT_PROBE_PROGRAMS_MAX);
    struct qut_probe_program *program = BASE_ADD(&c->programs);
    if (!program)
        return probe_no_memory(c);
    enum { INSTRUCTIONS = 2 };
    c->kind = kind;
    c->first_instruction = (uint32_t)c->code.count;
    *program = (struct qut_probe_program){
        .first_instruction = c->first_instruction, .instruction_count = INSTRUCTIONS, .kind = kind};
    return probe_emit(c, QUT_PROBE_CLASS_ALU64 | QUT_PROBE_MOV, 0, 0, 0, 0) &&
           probe_emit(c, QUT_PROBE_OP_EXIT, 0, 0, 0, 0);
}

static bool add_places(struct probe_compiler *c, const char *module, size_t module_bytes, uint32_t first_program)
{
    for (size_t i = 0; i < MARKS; i++)
        if (!add_place(c, &marks[i], module, module_bytes, first_program + (marks[i].kind == QUT_PROBE_CATCHES)))
            return false;
    return true;
}

bool probe_mark_exceptions(struct probe_compiler *c)
{
    const size_t count = c->script->places.count;
    const uint32_t first = (uint32_t)c->programs.count;
    bool is_asked = false;
    for (size_t i = 0; i < count; i++)
        is_asked = is_asked || c->script->places.items[i].kind == QUT_PROBE_UNWIND;
    if (!is_asked)
        return true;
    if (!add_program(c, QUT_PROBE_THROWS) || !add_program(c, QUT_PROBE_CATCHES))
        return false;
    for (size_t i = 0; i < LIBRARIES; i++)
        if (!add_places(c, libraries[i], strlen(libraries[i]), first))
            return false;
    for (size_t i = 0; i < count; i++) {
        const struct probe_place *place = &c->script->places.items[i];
        const char *divider = place->kind == QUT_PROBE_UNWIND ? strchr(place->pattern, '!') : NULL;
        const size_t module_bytes = divider ? (size_t)(divider - place->pattern) : 0;
        if (place->kind == QUT_PROBE_UNWIND && !add_places(c, place->pattern, module_bytes, first))
            return false;
    }
    return true;
}
