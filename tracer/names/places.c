// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/places.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/symbols/sort.h"

struct wanted_key {
    const struct names_places *places;
    struct names_key key;
};

struct wanted_file {
    const struct names_places *places;
    const struct trace_module *modules;
    const struct trace_module *module;
};

static bool equal_key(const void *context, uint32_t item)
{
    const struct wanted_key *wanted = context;
    const struct names_key *other = &wanted->places->keys[item];
    return other->pc == wanted->key.pc && other->file == wanted->key.file && other->way == wanted->key.way;
}

// A file may have been loaded more than once. FILE modules are mappings: each has its own part of one file.
static bool equal_file(const void *context, uint32_t item)
{
    const struct wanted_file *wanted = context;
    const struct trace_module *one = &wanted->modules[wanted->places->module_of_file[item]], *other = wanted->module;
    return one->build_id_bytes == other->build_id_bytes &&
           (one->flags & QUT_TRACE_MODULE_FILE) == (other->flags & QUT_TRACE_MODULE_FILE) &&
           memcmp(one->build_id, other->build_id, one->build_id_bytes) == 0 && strcmp(one->path, other->path) == 0;
}

static uint64_t hash_of_file(const struct trace_module *module)
{
    uint64_t hash = module->flags & QUT_TRACE_MODULE_FILE;
    for (const char *c = module->path; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (uint32_t i = 0; i < module->build_id_bytes; i++)
        hash = (hash ^ module->build_id[i]) * 0x100000001b3u;
    return names_mix(hash);
}

static bool find_file(struct names_places *places, const struct trace *trace, uint32_t module)
{
    if (places->file_of_module[module] != NAMES_NO_FILE)
        return true;
    const struct wanted_file wanted = {places, trace->modules, &trace->modules[module]};
    uint64_t hash = hash_of_file(&trace->modules[module]);
    uint32_t found = names_index_find(&places->files, hash, equal_file, &wanted);
    if (found == NAMES_INDEX_NONE) {
        if (places->file_count == places->file_capacity) {
            size_t capacity = places->file_capacity ? 2 * places->file_capacity : 64;
            uint32_t *modules = realloc(places->module_of_file, capacity * sizeof *modules);
            if (!modules)
                return false;
            places->module_of_file = modules;
            places->file_capacity = capacity;
        }
        found = (uint32_t)places->file_count;
        if (!names_index_add(&places->files, hash, found))
            return false;
        places->module_of_file[places->file_count++] = module;
    }
    places->file_of_module[module] = found;
    return true;
}

// Of the root nobody asks.
static bool key_of(struct names_places *places, const struct trace *trace, const struct trace_node *node,
                   struct names_key *key)
{
    *key = (struct names_key){.pc = node->pc, .file = NAMES_NO_FILE, .way = NAMES_BY_ADDRESS};
    const struct trace_module *module = node->module == TRACE_NONE ? NULL : &trace->modules[node->module];
    if (node->label) {
        key->way = NAMES_BY_LABEL;
        key->pc = (uintptr_t)node->label;
        return true;
    }
    if (!module)
        return true;
    if (module->flags & QUT_TRACE_MODULE_JIT) {
        key->way = NAMES_BY_LABEL;
        key->pc = (uintptr_t)module->path;
        return true;
    }
    key->way = node->class_ == QUT_TRACE_CLASS_DEX      ? NAMES_BY_METHOD
               : node->class_ == QUT_TRACE_CLASS_SIGNAL ? NAMES_BY_SYMBOL_SIGNAL
                                                        : NAMES_BY_SYMBOL;
    if (!find_file(places, trace, node->module))
        return false;
    key->file = places->file_of_module[node->module];
    return true;
}

static uint32_t place_of(struct names_places *places, const struct names_key *key)
{
    const struct wanted_key wanted = {places, *key};
    uint64_t hash = names_mix(key->pc ^ (uint64_t)key->file << 40 ^ (uint64_t)key->way << 60);
    uint32_t found = names_index_find(&places->index, hash, equal_key, &wanted);
    if (found != NAMES_INDEX_NONE)
        return found;
    if (places->count == places->capacity) {
        size_t capacity = places->capacity ? 2 * places->capacity : 1024;
        struct names_key *keys = realloc(places->keys, capacity * sizeof *keys);
        if (!keys)
            return NAMES_INDEX_NONE;
        places->keys = keys;
        places->capacity = capacity;
    }
    found = (uint32_t)places->count;
    if (!names_index_add(&places->index, hash, found))
        return NAMES_INDEX_NONE;
    places->keys[places->count] = *key;
    places->keys[places->count++].place = found;
    return found;
}

static bool find_all(struct names_places *places, const struct trace *trace, struct names *names)
{
    for (size_t i = 1; i < trace->node_count; i++) {
        struct names_key key;
        if (!key_of(places, trace, &trace->nodes[i], &key))
            return false;
        uint32_t place = place_of(places, &key);
        if (place == NAMES_INDEX_NONE)
            return false;
        names->place_of[i] = place;
        places->keys[place].node_count++;
    }
    return true;
}

// By file, then by pc, so that each file is opened once and read in one direction.
static bool sort(struct names_places *places)
{
    if (qut_sort_by_first_u64(places->keys, places->count, sizeof *places->keys) != 0)
        return false;
    struct names_key *sorted = malloc((places->count + 1) * sizeof *sorted);
    size_t *starts = calloc(places->file_count + 2, sizeof *starts);
    bool done = sorted && starts;
    if (done) {
        for (size_t i = 0; i < places->count; i++) {
            uint32_t file = places->keys[i].file;
            starts[(file == NAMES_NO_FILE ? places->file_count : file) + 1]++;
        }
        for (size_t i = 1; i <= places->file_count; i++)
            starts[i] += starts[i - 1];
        for (size_t i = 0; i < places->count; i++) {
            uint32_t file = places->keys[i].file;
            sorted[starts[file == NAMES_NO_FILE ? places->file_count : file]++] = places->keys[i];
        }
        free(places->keys);
        places->keys = sorted;
    } else {
        free(sorted);
    }
    free(starts);
    return done;
}

bool names_places_find(struct names_places *places, const struct trace *trace, struct names *names)
{
    places->file_of_module = malloc((trace->module_count + 1) * sizeof *places->file_of_module);
    names->place_of = calloc(trace->node_count + 1, sizeof *names->place_of);
    if (!places->file_of_module || !names->place_of)
        return false;
    names->node_count = trace->node_count;
    memset(places->file_of_module, 0xff, trace->module_count * sizeof *places->file_of_module);
    if (!find_all(places, trace, names) || !sort(places))
        return false;
    names_index_free(&places->index); // places have moved
    names->place_count = places->count;
    names->places = calloc(places->count + 1, sizeof *names->places);
    return names->places != NULL;
}

void names_places_free(struct names_places *places)
{
    names_index_free(&places->index);
    names_index_free(&places->files);
    free(places->keys);
    free(places->file_of_module);
    free(places->module_of_file);
}
