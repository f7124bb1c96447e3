// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/trace/inside.h"

const char *trace_image_string(const struct image *image, uint64_t id)
{
    uint64_t offset = id * 4;
    uint16_t length;
    if (id == 0 || id > UINT32_MAX || offset + sizeof length > image->string_bytes)
        return "";
    memcpy(&length, image->strings + offset, sizeof length);
    const char *text = (const char *)image->strings + offset + sizeof length;
    if (length >= image->string_bytes - offset - sizeof length || text[length] != 0)
        return "";
    return text;
}

static uint64_t end_of(uint64_t start, uint64_t size)
{
    uint64_t end;
    return __builtin_add_overflow(start, size, &end) ? UINT64_MAX : end;
}

static uint64_t start_of(const struct trace_module *module, bool by_code)
{
    return by_code ? module->code_base : module->start;
}

struct sort_context {
    const struct trace_module *modules;
    bool by_code;
};

static int compare(const void *a, const void *b, void *context)
{
    const struct sort_context *sort = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    uint64_t left_start = start_of(&sort->modules[left], sort->by_code);
    uint64_t right_start = start_of(&sort->modules[right], sort->by_code);
    if (left_start != right_start)
        return left_start < right_start ? -1 : 1;
    return left < right ? -1 : left > right;
}

static bool belongs(const struct trace_module *module, bool by_code, enum place_kind kind)
{
    if (by_code)
        return module->code_base && module->code_bytes;
    if (kind == PLACE_JIT)
        return module->flags & QUT_TRACE_MODULE_JIT;
    if (kind == PLACE_FILE)
        return module->flags & QUT_TRACE_MODULE_FILE;
    return module->code_bytes;
}

static bool make_list(struct trace_memory *memory, const struct trace *trace, bool by_code, enum place_kind kind,
                      struct place_list *list)
{
    list->modules = trace_memory_take(memory, trace->module_count, sizeof *list->modules);
    list->ends = trace_memory_take(memory, trace->module_count, sizeof *list->ends);
    if (!list->modules || !list->ends)
        return false;
    list->count = 0;
    for (size_t i = 0; i < trace->module_count; i++)
        if (belongs(&trace->modules[i], by_code, kind))
            list->modules[list->count++] = (uint32_t)i;
    struct sort_context sort = {trace->modules, by_code};
    qsort_r(list->modules, list->count, sizeof *list->modules, compare, &sort);
    uint64_t most = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct trace_module *module = &trace->modules[list->modules[i]];
        uint64_t end = end_of(start_of(module, by_code), module->code_bytes);
        most = end > most ? end : most;
        list->ends[i] = most;
    }
    return true;
}

// The last of those that have it, which begins nearest before it.
static uint32_t find(const struct places *places, const struct place_list *list, bool by_code, uint64_t address)
{
    enum { STEPS_MAX = 64 }; // code made at one place again and again overlaps itself
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (start_of(&places->modules[list->modules[middle]], by_code) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t steps = 0; low > 0 && list->ends[low - 1] > address && steps < STEPS_MAX; steps++) {
        uint32_t index = list->modules[--low];
        const struct trace_module *module = &places->modules[index];
        if (address - start_of(module, by_code) < module->code_bytes)
            return index;
    }
    return TRACE_NONE;
}

uint32_t trace_place_of_code(const struct places *places, uint64_t code)
{
    return find(places, &places->by_code, true, code);
}

uint32_t trace_place_of_address(const struct places *places, enum place_kind kind, uint64_t address)
{
    return find(places, &places->by_address[kind], false, address);
}

// "FUNCTION FILE LINE;" of each, string ids. Of one that is not sound nothing counts but the module's name.
static bool take_level(struct image *image, const char **at, struct trace_level *level)
{
    uint32_t ids[2], line;
    int bytes = 0;
    if (sscanf(*at, "%9" SCNu32 " %9" SCNu32 " %9" SCNu32 ";%n", &ids[0], &ids[1], &line, &bytes) != 3 || bytes == 0)
        return false;
    *at += bytes;
    const char *file = trace_image_string(image, ids[1]);
    *level = (struct trace_level){trace_image_string(image, ids[0]), *file ? file : NULL, *file ? line : 0};
    return *level->function != '\0';
}

static void take_levels(struct image *image, const char *text, struct trace_module *to)
{
    enum { LEVELS_MAX = 256 };
    size_t count = 0;
    for (const char *at = text; (at = strchr(at, ';')) != NULL; at++)
        count++;
    struct trace_level *levels =
        count && count <= LEVELS_MAX ? trace_memory_take(image->memory, count, sizeof *levels) : NULL;
    for (size_t i = 0; levels && i < count; i++)
        if (!take_level(image, &text, &levels[i]))
            return;
    to->levels = levels;
    to->level_count = levels ? (uint32_t)count : 0;
}

static void take_module(struct image *image, size_t index, struct trace_module *to)
{
    const struct qut_trace_module *from = &image->modules[index];
    *to = (struct trace_module){
        .code_base = from->code_base,
        .code_bytes = from->code_bytes,
        .start = from->start,
        .start_vaddr = from->start_vaddr,
        .load_ns = from->load_ns,
        .unload_ns = from->unload_ns ? from->unload_ns : UINT64_MAX,
        .path = trace_image_string(image, from->path),
        .flags = from->flags,
        .build_id_bytes = from->build_id_bytes,
    };
    memcpy(to->build_id, from->build_id, sizeof to->build_id);
    if (from->levels && (from->flags & QUT_TRACE_MODULE_JIT))
        take_levels(image, trace_image_string(image, from->levels), to);
    const uint64_t code_space = (uint64_t)1 << QUT_TRACE_CODE_BITS;
    bool is_sound = from->build_id_bytes <= QUT_TRACE_BUILD_ID_BYTES && from->code_base < code_space &&
                    (!from->code_base || from->code_bytes <= code_space - from->code_base);
    if (!is_sound) {
        trace_image_damage(image, "module %zu: %" PRIu64 " bytes of code at 0x%" PRIx64 ", %" PRIu32 " of build-id",
                           index, from->code_bytes, from->code_base, from->build_id_bytes);
        to->code_base = to->code_bytes = 0;
        to->build_id_bytes = 0;
        image->is_complete = false;
    }
    if (from->path && !*to->path) {
        trace_image_damage(image, "module %zu: its path is no string", index);
        image->is_complete = false;
    }
}

int trace_build_modules(struct image *image, struct trace *trace, struct places *places, struct base_error *error)
{
    trace->modules = trace_memory_take(image->memory, image->module_count, sizeof *trace->modules);
    if (!trace->modules)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for %zu modules", image->module_count);
    trace->module_count = image->module_count;
    for (size_t i = 0; i < image->module_count; i++)
        take_module(image, i, &trace->modules[i]);
    places->modules = trace->modules;
    bool made = make_list(image->memory, trace, true, PLACE_ANY, &places->by_code);
    for (enum place_kind kind = PLACE_ANY; kind <= PLACE_FILE && made; kind++)
        made = make_list(image->memory, trace, false, kind, &places->by_address[kind]);
    return made ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for %zu modules", image->module_count);
}
