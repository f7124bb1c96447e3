// SPDX-License-Identifier: Apache-2.0
// The mappings of a core: its segments say what was mapped and how, the list of files says from where. gdb leaves out
// segments that are as in their files.
#include <stdlib.h>
#include <string.h>

#include "libqut/target/core.h"

struct making {
    struct target_maps maps;
    size_t capacity;
};

static int add(struct making *making, const struct target_map *map)
{
    if (making->maps.count == making->capacity) {
        size_t capacity = making->capacity ? 2 * making->capacity : 256;
        struct target_map *items = realloc(making->maps.items, capacity * sizeof *items);
        if (!items)
            return -1;
        making->maps.items = items;
        making->capacity = capacity;
    }
    making->maps.items[making->maps.count++] = *map;
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct target_core_file *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static struct target_map map_of(const struct target_core *core, uint64_t start, uint64_t end,
                                const struct target_core_load *load, const struct target_core_file *file)
{
    struct target_map map = {.start = start, .end = end, .path = "", .readable = true};
    if (load) {
        map.readable = load->readable;
        map.writable = load->writable;
        map.executable = load->executable;
    } else {
        map.executable = true; // it is not known: let the file's own headers decide
    }
    if (file) {
        map.path = file->path;
        map.offset = file->offset + (start - file->start);
    } else if (core->vdso >= start && core->vdso < end) {
        map.path = "[vdso]";
    }
    return map;
}

// Cuts both lists, which are sorted, where either begins or ends.
static int merge(struct target_core *core, struct making *making)
{
    size_t l = 0, f = 0;
    uint64_t at = 0;
    while (l < core->load_count || f < core->file_count) {
        const struct target_core_load *load = l < core->load_count ? &core->loads[l] : NULL;
        const struct target_core_file *file = f < core->file_count ? &core->files[f] : NULL;
        if (load && load->end <= at) {
            l++;
            continue;
        }
        if (file && file->end <= at) {
            f++;
            continue;
        }
        uint64_t start = UINT64_MAX;
        if (load)
            start = load->start;
        if (file && file->start < start)
            start = file->start;
        if (start < at)
            start = at;
        bool in_load = load && load->start <= start, in_file = file && file->start <= start;
        uint64_t end = UINT64_MAX;
        if (load)
            end = in_load ? load->end : load->start;
        if (file) {
            uint64_t edge = in_file ? file->end : file->start;
            end = edge < end ? edge : end;
        }
        const struct target_map map = map_of(core, start, end, in_load ? load : NULL, in_file ? file : NULL);
        if (add(making, &map) != 0)
            return -1;
        at = end;
    }
    return 0;
}

// The file that the core calls the program: where its program headers or its entry point lie.
static int find_program(const struct qut_target *target, struct target_core *core)
{
    uint64_t address = core->program_headers ? core->program_headers : target->program_entry;
    for (size_t i = 0; address && i < core->file_count; i++)
        if (address >= core->files[i].start && address < core->files[i].end) {
            core->program_map = strdup(core->files[i].path);
            return core->program_map ? 0 : -1;
        }
    return 0;
}

int target_core_take_maps(struct qut_target *target, struct qut_target_error *error)
{
    struct target_core *core = target->source;
    struct making making = {0};
    if (core->file_count)
        qsort(core->files, core->file_count, sizeof *core->files, by_start);
    int result = find_program(target, core) != 0 || merge(core, &making) != 0 ? -1 : 0;
    if (result == 0) {
        target_maps_settle(&making.maps);
        result = target_take_maps(target, &making.maps); // paths are in the notes, which stay
    }
    target_maps_free(&making.maps);
    return result == 0 ? 0 : target_fail(error, "%.150s: out of memory", core->path);
}
