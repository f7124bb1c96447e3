// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/code_places.h"

#include <stdlib.h>
#include <string.h>

#include "tracer/symbols/sort.h"

// A file may have been loaded more than once. FILE modules are mappings: each has its own part of one file.
static bool is_same_file(const struct trace_module *one, const struct trace_module *other)
{
    return one->build_id_bytes == other->build_id_bytes &&
           (one->flags & QUT_TRACE_MODULE_FILE) == (other->flags & QUT_TRACE_MODULE_FILE) &&
           memcmp(one->build_id, other->build_id, one->build_id_bytes) == 0 && strcmp(one->path, other->path) == 0;
}

static uint64_t hash_of_file(const struct trace_module *module)
{
    uint64_t hash = base_hash_bytes(module->flags & QUT_TRACE_MODULE_FILE, module->path, strlen(module->path));
    return base_hash_bytes(hash, module->build_id, module->build_id_bytes);
}

static bool find_file(struct names_places *places, const struct trace *trace, uint32_t module)
{
    if (places->file_of_module[module] != NAMES_NO_FILE)
        return true;
    uint64_t hash = hash_of_file(&trace->modules[module]);
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&places->files, hash, &step)) != BASE_HASH_NONE;)
        if (is_same_file(&trace->modules[places->module_of_file.items[found]], &trace->modules[module]))
            break;
    if (found == BASE_HASH_NONE) {
        found = (uint32_t)places->module_of_file.count;
        if (!BASE_RESERVE(&places->module_of_file, 1) || !base_hash_add(&places->files, hash, found))
            return false;
        *BASE_ADD(&places->module_of_file) = module;
    }
    places->file_of_module[module] = found;
    return true;
}

// The root is not asked for.
static bool key_of(struct names_places *places, const struct trace *trace, const struct trace_node *node,
                   bool with_lines, struct names_key *key)
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
        bool has_lines = module->flags & QUT_TRACE_MODULE_LINES;
        key->way = module->level_count ? NAMES_BY_LEVELS : has_lines ? NAMES_BY_SOURCE : NAMES_BY_LABEL;
        key->line = has_lines && with_lines && node->pc > module->start ? (uint32_t)(node->pc - module->start) : 0;
        key->pc = module->level_count ? (uintptr_t)module : (uintptr_t)module->path;
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
    uint64_t hash = base_hash_word(base_hash_word(0, key->pc), (uint64_t)key->file << 32 | key->way);
    hash = base_hash_word(hash, key->line);
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&places->index, hash, &step)) != BASE_HASH_NONE;) {
        const struct names_key *other = &places->items[found];
        if (other->pc == key->pc && other->file == key->file && other->way == key->way && other->line == key->line)
            return found;
    }
    found = (uint32_t)places->count;
    if (!BASE_RESERVE(places, 1) || !base_hash_add(&places->index, hash, found))
        return BASE_HASH_NONE;
    struct names_key *added = BASE_ADD(places);
    *added = *key;
    added->place = found;
    return found;
}

static bool find_all(struct names_places *places, const struct trace *trace, struct names *names)
{
    for (size_t i = 1; i < trace->node_count; i++) {
        struct names_key key;
        if (!key_of(places, trace, &trace->nodes[i], names->options.lines, &key))
            return false;
        uint32_t place = place_of(places, &key);
        if (place == BASE_HASH_NONE)
            return false;
        names->place_of[i] = place;
        places->items[place].node_count++;
    }
    return true;
}

// What stands for a text or a module of ours has its address: where memory lies, which is another place each time.
static bool is_ours(const struct names_key *key)
{
    return key->way == NAMES_BY_LABEL || key->way == NAMES_BY_SOURCE || key->way == NAMES_BY_LEVELS;
}

// Those first, in the order of the nodes, so that the same trace has the same names in the same order each time.
static bool sort_by_pc(struct names_places *places)
{
    size_t count = 0;
    struct names_key *ours = malloc((places->count + 1) * sizeof *ours);
    if (!ours)
        return false;
    for (size_t i = 0; i < places->count; i++)
        if (is_ours(&places->items[i]))
            ours[count++] = places->items[i];
        else
            places->items[i - count] = places->items[i];
    const size_t rest = places->count - count;
    bool done = symbols_sort_by_first_u64(places->items, rest, sizeof *places->items) == 0;
    // A trace without a sample has no places at all, and no memory for them.
    if (count) {
        memmove(places->items + count, places->items, rest * sizeof *places->items);
        memcpy(places->items, ours, count * sizeof *ours);
    }
    free(ours);
    return done;
}

// By file, then by pc, so that each file is opened once and read in one direction.
static bool sort(struct names_places *places)
{
    if (!sort_by_pc(places))
        return false;
    struct names_key *sorted = malloc((places->count + 1) * sizeof *sorted);
    size_t *starts = calloc(places->module_of_file.count + 2, sizeof *starts);
    bool done = sorted && starts;
    if (done) {
        for (size_t i = 0; i < places->count; i++) {
            uint32_t file = places->items[i].file;
            starts[(file == NAMES_NO_FILE ? places->module_of_file.count : file) + 1]++;
        }
        for (size_t i = 1; i <= places->module_of_file.count; i++)
            starts[i] += starts[i - 1];
        for (size_t i = 0; i < places->count; i++) {
            uint32_t file = places->items[i].file;
            sorted[starts[file == NAMES_NO_FILE ? places->module_of_file.count : file]++] = places->items[i];
        }
        free(places->items);
        places->items = sorted;
        places->capacity = places->count + 1;
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
    base_hash_free(&places->index); // places have moved
    names->place_count = places->count;
    names->places = calloc(places->count + 1, sizeof *names->places);
    return names->places != NULL;
}

void names_places_free(struct names_places *places)
{
    base_hash_free(&places->index);
    base_hash_free(&places->files);
    base_vector_free(&places->vector);
    free(places->file_of_module);
    base_vector_free(&places->module_of_file.vector);
}
