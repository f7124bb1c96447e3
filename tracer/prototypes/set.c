// SPDX-License-Identifier: Apache-2.0
#include "tracer/prototypes/set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"

struct set_file {
    char *path;
    bool is_tried;
    struct prototypes *prototypes; // NULL: it could not be opened, and
    struct base_error why;
};

struct set_function {
    char *name;
    uint64_t entry_vaddr;
    uint32_t file, pattern;
};

struct prototypes_set {
    struct probe_resolver resolver; // the first: that is what the compiler has
    prototypes_find_fn find;
    void *context;
    char *debug_root; // NULL: none
    struct {
        BASE_VECTOR(struct set_file);
    } files;
    struct {
        BASE_VECTOR(struct set_function); // of one pattern after the other
    } functions;
    struct {
        BASE_VECTOR(char *); // that were asked for
    } patterns;
};

// ---- files and functions

static bool find_file(struct prototypes_set *set, const char *path, uint32_t *file)
{
    for (*file = (uint32_t)set->files.count; *file > 0;)
        if (strcmp(set->files.items[--*file].path, path) == 0)
            return true;
    char *copy = strdup(path);
    struct set_file *added = copy ? BASE_ADD(&set->files) : NULL;
    if (!added) {
        free(copy);
        return false;
    }
    *added = (struct set_file){.path = copy};
    *file = (uint32_t)set->files.count - 1;
    return true;
}

int prototypes_set_add(struct prototypes_set *set, const char *path, uint64_t entry_vaddr, const char *name)
{
    uint32_t file;
    char *copy = find_file(set, path, &file) ? strdup(name) : NULL;
    struct set_function *function = copy ? BASE_ADD(&set->functions) : NULL;
    if (!function) {
        free(copy);
        return -1;
    }
    *function = (struct set_function){copy, entry_vaddr, file, (uint32_t)set->patterns.count - 1};
    return 0;
}

// Its number; UINT32_MAX: no memory.
static uint32_t number_of(struct prototypes_set *set, const char *pattern)
{
    for (size_t i = 0; i < set->patterns.count; i++)
        if (strcmp(set->patterns.items[i], pattern) == 0)
            return (uint32_t)i;
    char *copy = strdup(pattern), **added = copy ? BASE_ADD(&set->patterns) : NULL;
    if (!added) {
        free(copy);
        return UINT32_MAX;
    }
    *added = copy;
    return set->find(set->context, pattern, set) == 0 ? (uint32_t)set->patterns.count - 1 : UINT32_MAX;
}

static struct prototypes *open_file(struct prototypes_set *set, uint32_t number)
{
    struct set_file *file = &set->files.items[number];
    if (!file->is_tried) {
        file->is_tried = true;
        file->prototypes = prototypes_open(file->path, set->debug_root, &file->why);
    }
    return file->prototypes;
}

// ---- the same in all of them

static int no_memory(struct probe_unresolved *why)
{
    why->is_no_memory = true;
    return -1;
}

static int resolve_one(struct prototypes_set *set, const struct set_function *function, const struct probe_path *path,
                       struct probe_recipe *recipe, struct probe_unresolved *why)
{
    struct prototypes *prototypes = open_file(set, function->file);
    if (prototypes)
        return prototypes_resolve(prototypes, function->entry_vaddr, function->name, path, recipe, why);
    const struct set_file *file = &set->files.items[function->file];
    if (file->why.reason == BASE_ERR_NO_MEMORY)
        return no_memory(why);
    const char *last = strrchr(file->path, '/');
    snprintf(why->text, sizeof why->text, "%.48s: %.100s", last ? last + 1 : file->path, file->why.detail);
    return -1;
}

// Recipes are made of zeros, so that what is not used is the same.
static bool is_same(const struct probe_recipe *a, const struct probe_recipe *b)
{
    if (a->field != b->field || a->load_count != b->load_count || a->last_bytes != b->last_bytes ||
        a->shift_bits != b->shift_bits || a->bits != b->bits || a->is_signed != b->is_signed || a->added != b->added ||
        a->array_bytes != b->array_bytes)
        return false;
    return memcmp(a->offsets, b->offsets, a->load_count * sizeof *a->offsets) == 0;
}

static bool is_of(struct prototypes_set *set, const struct set_function *function, const char *const *patterns,
                  size_t pattern_count)
{
    for (size_t i = 0; i < pattern_count; i++)
        if (strcmp(set->patterns.items[function->pattern], patterns[i]) == 0)
            return true;
    return false;
}

static int differ(const struct set_function *first, const struct set_function *other, struct probe_unresolved *why)
{
    snprintf(why->text, sizeof why->text, "it is not the same in %.48s and %.48s: name fewer functions", first->name,
             other->name);
    return -1;
}

static int resolve(struct probe_resolver *resolver, const char *const *patterns, size_t pattern_count,
                   const struct probe_path *path, struct probe_recipe *recipe, struct probe_unresolved *why)
{
    struct prototypes_set *set = (struct prototypes_set *)(void *)resolver;
    const struct set_function *first = NULL;
    for (size_t i = 0; i < pattern_count; i++)
        if (number_of(set, patterns[i]) == UINT32_MAX)
            return no_memory(why);
    for (size_t i = 0; i < set->functions.count; i++) {
        const struct set_function *function = &set->functions.items[i];
        struct probe_recipe other;
        if (!is_of(set, function, patterns, pattern_count))
            continue;
        if (resolve_one(set, function, path, first ? &other : recipe, why) != 0) {
            char text[sizeof why->text];
            memcpy(text, why->text, sizeof text);
            if (first) // the one before has it
                snprintf(why->text, sizeof why->text, "in %.48s: %.96s", function->name, text);
            return -1;
        }
        if (first && !is_same(recipe, &other)) {
            why->step = path->count - 1;
            return differ(first, function, why);
        }
        first = first ? first : function;
    }
    if (first)
        return 0;
    why->step = 0;
    snprintf(why->text, sizeof why->text, "no function is meant whose arguments are known");
    return -1;
}

// ---- the set

struct prototypes_set *prototypes_set_new(prototypes_find_fn find, void *context, const char *debug_root)
{
    struct prototypes_set *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->resolver.resolve = resolve;
    set->find = find;
    set->context = context;
    set->debug_root = debug_root ? strdup(debug_root) : NULL;
    if (!debug_root || set->debug_root)
        return set;
    free(set);
    return NULL;
}

void prototypes_set_free(struct prototypes_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->files.count; i++) {
        prototypes_close(set->files.items[i].prototypes);
        free(set->files.items[i].path);
    }
    for (size_t i = 0; i < set->functions.count; i++)
        free(set->functions.items[i].name);
    for (size_t i = 0; i < set->patterns.count; i++)
        free(set->patterns.items[i]);
    base_vector_free(&set->files.vector);
    base_vector_free(&set->functions.vector);
    base_vector_free(&set->patterns.vector);
    free(set->debug_root);
    free(set);
}

struct probe_resolver *prototypes_set_resolver(struct prototypes_set *set)
{
    return &set->resolver;
}
