// SPDX-License-Identifier: Apache-2.0
// Which modules a process has, and which of their functions are wanted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <qut/target.h>

#include "libqut/target/mappings.h"
#include "tracer/traced/inside.h"

static void note_failure(struct traced_process *process, const char *path, const struct base_error *error)
{
    struct traced_result *result = &process->result;
    char text[160];
    if (!result->modules_failed++)
        snprintf(result->first_module_failure, sizeof result->first_module_failure, "%.80s: %s", path,
                 base_error_text(error, text, sizeof text));
}

// ---- what is mapped

static int read_maps(struct traced_process *process, struct target_maps *maps, struct base_error *error)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process->pid);
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0, room = 0;
    while (file) {
        if (room - size < 4096) {
            char *more = realloc(text, room = room ? 2 * room : 65536);
            if (!more)
                break;
            text = more;
        }
        const size_t got = fread(text + size, 1, room - size - 1, file);
        if (!got)
            break;
        size += got;
    }
    if (file)
        fclose(file);
    if (!size) { // it has ended
        free(text);
        return base_fail(error, BASE_ERR_IO, "", 0, "its mappings cannot be read");
    }
    text[size] = 0;
    return target_maps_parse(maps, text, size) == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
}

static bool is_code_of_file(const struct target_map *map)
{
    return map->executable && map->path[0] == '/';
}

static uint64_t hash_of(const struct target_maps *maps)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < maps->count; i++) {
        const struct target_map *map = &maps->items[i];
        const uint64_t words[] = {map->start, map->end, map->inode, map->device};
        for (size_t n = 0; is_code_of_file(map) && n < sizeof words / sizeof *words; n++)
            hash = (hash ^ words[n]) * 1099511628211u;
    }
    return hash;
}

// ---- one module

static uint32_t find(const struct traced_process *process, const struct qut_module_info *info)
{
    for (uint32_t i = 0; i < process->modules.count; i++) {
        const struct traced_module *module = &process->modules.items[i];
        if (module->start == info->start && module->bias == info->load_bias && strcmp(module->path, info->path) == 0)
            return i;
    }
    return UINT32_MAX;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_wanted(const struct traced_process *process, const char *name)
{
    return calls_patterns_want_module(&process->patterns, name) || traced_callers_want(process, name) ||
           traced_places_want(process, name);
}

// The module's name by which some pattern means it; NULL: none does.
static const char *name_wanted(const struct traced_process *process, const char *path)
{
    const char *name = name_of(path), *other = name_of(process->started_as);
    if (is_wanted(process, name))
        return name;
    return strcmp(path, process->program_path) == 0 && *other && is_wanted(process, other) ? other : NULL;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// Their events are not read before.
static void mark_callers(struct traced_process *process, uint32_t module, const struct calls_selection *selection)
{
    for (size_t i = 1; selection->callers.count && i < process->functions.count; i++) {
        struct traced_function *function = &process->functions.items[i];
        if (function->module == module && bsearch(&function->index, selection->callers.items, selection->callers.count,
                                                  sizeof function->index, by_number))
            function->is_caller = true;
    }
}

static int install(struct traced_process *process, uint32_t index, const char *name, struct base_error *why)
{
    struct traced_module *module = &process->modules.items[index];
    struct calls_selection selection = {.count = 0};
    int status = calls_patterns_select(&process->patterns, name, module->plan, &selection, why);
    for (size_t i = 0; status == 0 && i < selection.refused.count; i++)
        process->result.refusals[module->plan->functions[selection.refused.items[i]].refusal]++;
    if (status == 0)
        status = traced_probe_narrow(process, index, &selection, why);
    process->result.modules += selection.count != 0;
    if (status == 0 && selection.count)
        status = traced_install(process, index, selection.items, selection.count, why);
    mark_callers(process, index, &selection);
    traced_leasts_mark(process, index, name);
    calls_selection_free(&selection);
    return status;
}

static int make_plan(const struct traced_process *process, const char *path, const char *name, struct calls_plan **plan,
                     struct base_error *why)
{
    struct calls_plan_cache cache = {.directory = process->begin.cache_directory};
    return cache.directory ? calls_plan_get(path, name, &cache, plan, why) : calls_plan_make(path, name, plan, why);
}

// One that none of the patterns can name is not even read, and the agent itself never is.
static int take(struct traced_process *process, const struct qut_module_info *info, struct base_error *error)
{
    struct traced_module *module = BASE_ADD(&process->modules);
    const uint32_t index = (uint32_t)process->modules.count - 1;
    if (!module)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    *module = (struct traced_module){
        .path = strdup(info->path), .start = info->start, .bias = info->load_bias, .is_there = true};
    if (!module->path)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    const char *name = module->name = name_wanted(process, module->path);
    struct base_error why = {0};
    if (!name || strcmp(name, AGENT_FILE) == 0 || !info->is_elf || !info->file_path[0])
        return 0;
    if (make_plan(process, info->file_path, name, &module->plan, &why) != 0) {
        note_failure(process, info->path, &why);
        return 0;
    }
    // A part of a file's code that is mapped once more, as V8 does with its builtins, is no module.
    if (info->start > info->load_bias + module->plan->header->text_start)
        return 0;
    const struct collect_calls_module written = {
        .path = info->path, .bias = info->load_bias, .build_id = info->build_id, .build_id_bytes = info->build_id_size};
    if (info->build_id_size <= sizeof module->build_id) {
        memcpy(module->build_id, info->build_id, info->build_id_size);
        module->build_id_bytes = info->build_id_size;
    }
    if (collect_calls_module(process->writer, &written, &module->number, error) != 0)
        return -1;
    if (traced_callers_add(process, index, info->file_path, &why) != 0 || install(process, index, name, &why) != 0 ||
        traced_places_install(process, index, info->file_path, &why) != 0)
        note_failure(process, info->path, &why);
    return 0;
}

// One that was unloaded and has come back to the same place between two looks has its own bytes again.
static bool was_reloaded(const struct traced_process *process, const struct traced_module *module)
{
    uint8_t now[sizeof module->first_bytes];
    if (!module->first_address)
        return false;
    const struct iovec here = {now, sizeof now}, there = {(void *)(uintptr_t)module->first_address, sizeof now};
    return process_vm_readv(process->pid, &here, 1, &there, 1, 0) == (ssize_t)sizeof now &&
           memcmp(now, module->first_bytes, sizeof now) != 0;
}

static void forget_reloaded(struct traced_process *process)
{
    for (uint32_t i = 0; i < process->modules.count; i++) {
        struct traced_module *module = &process->modules.items[i];
        if (!was_reloaded(process, module))
            continue;
        traced_forget(process, i);
        module->start = UINT64_MAX;
        process->maps_hash = 0;
    }
}

int traced_modules_look(struct traced_process *process, struct base_error *error)
{
    struct target_maps maps;
    if (read_maps(process, &maps, error) != 0)
        return -1;
    const uint64_t hash = hash_of(&maps);
    forget_reloaded(process);
    if (hash == process->maps_hash) {
        target_maps_free(&maps);
        return 0;
    }
    const struct qut_target_options options = {.size = sizeof options};
    struct qut_target_error why;
    struct qut_target *target = qut_target_process(process->pid, &options, &why);
    int status = target ? 0 : base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
    for (uint32_t i = 0; i < process->modules.count; i++)
        process->modules.items[i].is_there = false;
    for (size_t i = 0; target && status == 0 && i < maps.count; i++) {
        struct qut_module_info info;
        if (!is_code_of_file(&maps.items[i]) || !qut_target_module(target, maps.items[i].start, &info))
            continue;
        const uint32_t known = find(process, &info);
        if (known != UINT32_MAX)
            process->modules.items[known].is_there = true;
        else
            status = take(process, &info, error);
    }
    if (target)
        qut_target_close(target);
    // What has gone may come back at the same place, and is another one then.
    for (uint32_t i = 0; i < process->modules.count; i++) {
        if (process->modules.items[i].is_there || process->modules.items[i].start == UINT64_MAX)
            continue;
        traced_forget(process, i);
        process->modules.items[i].start = UINT64_MAX;
    }
    target_maps_free(&maps);
    process->maps_hash = hash;
    return status;
}

void traced_modules_free(struct traced_process *process)
{
    for (uint32_t i = 0; i < process->modules.count; i++) {
        free(process->modules.items[i].path);
        calls_plan_free(process->modules.items[i].plan);
    }
    base_vector_free(&process->modules.vector);
}
