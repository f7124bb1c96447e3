// SPDX-License-Identifier: Apache-2.0
// Which regions are functions, what they are called, and the plan's bytes.
#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_check.h"
#include "qutc/input/image_store.h"
#include "tracer/calls/inside.h"
#include "tracer/symbols/demangle.h"

enum { FIRST_NAME = 1, ALIASES_MAX = 64 };

struct list {
    struct calls_work *work;
    BASE_VECTOR(struct qut_plan_function) functions;
    BASE_VECTOR(struct qut_plan_alias) aliases;
    BASE_VECTOR(char) names;
    size_t next_symbol;
    size_t next_resolver;
    uint32_t fragment_count;
    enum qut_plan_refusal module_refusal;
};

static int no_memory(const struct list *list)
{
    return base_fail(list->work->error, BASE_ERR_NO_MEMORY, "", 0, "names of functions");
}

static int add_text(struct list *list, const char *text, size_t length, uint32_t *offset)
{
    if (list->names.count + length + 1 > UINT32_MAX || !BASE_RESERVE(&list->names, length + 1))
        return no_memory(list);
    *offset = (uint32_t)list->names.count;
    memcpy(list->names.items + list->names.count, text, length);
    list->names.items[list->names.count + length] = 0;
    list->names.count += length + 1;
    return 0;
}

static int add_name(struct list *list, const char *text, size_t length, uint32_t *name, uint32_t *readable)
{
    length = length < CALLS_NAME_MAX ? length : CALLS_NAME_MAX;
    if (add_text(list, text, length, name) != 0)
        return -1;
    *readable = *name;
    if (length < 2 || text[0] != '_') // neither C++ nor Rust
        return 0;
    const char *raw = list->names.items + *name;
    char *demangled = symbols_demangle(raw);
    if (!demangled)
        return no_memory(list);
    int result = strcmp(demangled, raw) == 0 ? 0 : add_text(list, demangled, strlen(demangled), readable);
    free(demangled);
    return result;
}

static bool is_named(const struct list *list, const struct qut_plan_function *function, size_t first_alias,
                     const struct symbol *symbol)
{
    const char *names = list->names.items;
    if (strncmp(names + function->name, symbol->name, symbol->name_length) == 0 &&
        !names[function->name + symbol->name_length])
        return true;
    for (size_t i = first_alias; i < list->aliases.count; i++) {
        const char *name = names + list->aliases.items[i].name;
        if (strncmp(name, symbol->name, symbol->name_length) == 0 && !name[symbol->name_length])
            return true;
    }
    return false;
}

static void refuse_by_name(struct qut_plan_function *function, const char *name)
{
    enum qut_plan_refusal why = calls_refuse_name(name);
    if (why != QUT_PLAN_OK && function->refusal == QUT_PLAN_OK)
        function->refusal = (uint8_t)why;
}

static bool is_cold(const char *name)
{
    return strstr(name, ".cold") != NULL;
}

// All symbols at the function's entry. *cold: one of them says that it is a part of another function; *exported: one
// is global.
static int name_function(struct list *list, struct qut_plan_function *function, bool *cold, bool *named)
{
    const struct symbols *symbols = list->work->symbols;
    struct symbol symbol;
    size_t first_alias = list->aliases.count;
    while (list->next_symbol < symbols_count(symbols)) {
        symbols_at(symbols, list->next_symbol, &symbol);
        if (symbol.start_vaddr >= function->entry_vaddr)
            break;
        list->next_symbol++;
    }
    if (symbols_find(symbols, function->entry_vaddr, &symbol) && symbol.start_vaddr == function->entry_vaddr &&
        add_name(list, symbol.name, symbol.name_length, &function->name, &function->readable) != 0)
        return -1;
    *cold = is_cold(list->names.items + function->name);
    *named = function->name != 0;
    refuse_by_name(function, list->names.items + function->name);
    for (size_t i = list->next_symbol; i < symbols_count(symbols); i++) {
        symbols_at(symbols, i, &symbol);
        if (symbol.start_vaddr != function->entry_vaddr || list->aliases.count - first_alias == ALIASES_MAX)
            break;
        if (is_named(list, function, first_alias, &symbol))
            continue;
        struct qut_plan_alias alias = {.function = (uint32_t)list->functions.count};
        if (add_name(list, symbol.name, symbol.name_length, &alias.name, &alias.readable) != 0)
            return -1;
        struct qut_plan_alias *place = BASE_ADD(&list->aliases);
        if (!place)
            return no_memory(list);
        *place = alias;
        refuse_by_name(function, list->names.items + alias.name);
    }
    return 0;
}

static bool is_resolver(struct list *list, uint64_t vaddr)
{
    const struct calls_work *work = list->work;
    while (list->next_resolver < work->resolvers.count && work->resolvers.items[list->next_resolver] < vaddr)
        list->next_resolver++;
    return list->next_resolver < work->resolvers.count && work->resolvers.items[list->next_resolver] == vaddr;
}

// Without an FDE it is the place that a compiler left that says so. If something leads into its nops, the function
// begins there, behind some that are not its own.
static bool has_way_in(const struct list *list, const struct calls_region *region)
{
    return region->has_sled && !(region->is_guessed && calls_leads_into_nops(list->work, region));
}

static void refuse_by_code(struct list *list, const struct calls_region *region, struct qut_plan_function *function)
{
    if (list->module_refusal != QUT_PLAN_OK)
        function->refusal = (uint8_t)list->module_refusal;
    else if (region->is_signal)
        function->refusal = QUT_PLAN_SIGNAL_RETURN;
    else if (is_resolver(list, region->start))
        function->refusal = QUT_PLAN_RESOLVER;
    else if (region->reads_return && function->refusal == QUT_PLAN_OK)
        function->refusal = QUT_PLAN_READS_RETURN;
    else if (region->keeps_return && function->refusal == QUT_PLAN_OK)
        function->refusal = QUT_PLAN_KEEPS_RETURN;
    else if (region->loops_inside && function->refusal == QUT_PLAN_OK)
        function->refusal = QUT_PLAN_UNMOVABLE;
    else if (region->fde == UINT32_MAX && !has_way_in(list, region) && function->refusal == QUT_PLAN_OK)
        function->refusal = QUT_PLAN_NO_UNWIND;
}

static int add_function(struct list *list, const struct calls_region *region)
{
    if (region->fde != UINT32_MAX && !region->is_entry && !region->is_signal) {
        list->fragment_count++;
        return 0;
    }
    uint64_t size = region->end - region->start;
    struct qut_plan_function function = {.entry_vaddr = region->start,
                                         .size_bytes = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
                                         .flags = region->loops ? QUT_PLAN_LOOPS : 0};
    size_t names = list->names.count, aliases = list->aliases.count;
    bool cold, named;
    if (name_function(list, &function, &cold, &named) != 0)
        return -1;
    if (cold || (region->branched_to && !named)) {
        list->names.count = names;
        list->aliases.count = aliases;
        list->fragment_count++;
        return 0;
    }
    refuse_by_code(list, region, &function);
    if (function.refusal == QUT_PLAN_OK)
        calls_shape(list->work, region, &function);
    struct qut_plan_function *place = BASE_ADD(&list->functions);
    if (!place)
        return no_memory(list);
    *place = function;
    return 0;
}

static size_t aligned(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

static int write_plan(struct list *list, uint8_t **bytes, size_t *size_bytes)
{
    const struct input_image *image = list->work->image;
    size_t functions = list->functions.count * sizeof *list->functions.items;
    size_t aliases = aligned(list->aliases.count * sizeof *list->aliases.items);
    struct qut_plan_header header = {
        .magic = QUT_PLAN_MAGIC,
        .version = QUT_PLAN_VERSION,
        .function_count = (uint32_t)list->functions.count,
        .alias_count = (uint32_t)list->aliases.count,
        .names_bytes = (uint32_t)list->names.count,
        .fragment_count = list->fragment_count,
        .identity_size = image->identity_size,
        .identity_kind = (uint8_t)image->identity_kind,
        .architecture = (uint8_t)image->arch->id,
        .text_start = list->work->text_start,
        .text_end = list->work->text_end,
        .file_bytes = image->size_bytes,
    };
    memcpy(header.identity, image->identity, sizeof header.identity);
    *size_bytes = sizeof header + functions + aliases + aligned(list->names.count);
    *bytes = calloc(1, *size_bytes);
    if (!*bytes)
        return no_memory(list);
    uint8_t *at = *bytes + sizeof header;
    if (functions)
        memcpy(at, list->functions.items, functions);
    if (list->aliases.count)
        memcpy(at + functions, list->aliases.items, list->aliases.count * sizeof *list->aliases.items);
    memcpy(at + functions + aliases, list->names.items, list->names.count);
    header.checksum = qut_table_checksum(at, *size_bytes - sizeof header);
    memcpy(*bytes, &header, sizeof header);
    return 0;
}

static int fill(struct list *list)
{
    uint32_t empty;
    if (add_text(list, "", 0, &empty) != 0)
        return -1;
    for (size_t i = 0; i < list->work->regions.count; i++)
        if (add_function(list, &list->work->regions.items[i]) != 0)
            return -1;
    for (size_t i = 0; i < list->functions.count; i++)
        if (list->functions.items[i].kind == QUT_PLAN_KIND_END)
            calls_shape_late(list->work, &list->functions.items[i]);
    return 0;
}

int calls_list(struct calls_work *work, uint8_t **bytes, size_t *size_bytes)
{
    struct list list = {.work = work, .module_refusal = calls_refuse_module(work->module, work->image)};
    int result = fill(&list);
    if (result == 0)
        result = write_plan(&list, bytes, size_bytes);
    base_vector_free(&list.functions.vector);
    base_vector_free(&list.aliases.vector);
    base_vector_free(&list.names.vector);
    return result;
}
