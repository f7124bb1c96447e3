// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/name_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "base/vector.h"

// A function called by another one. 0 is the root.
struct branch {
    uint32_t parent, text; // rank of its text among all texts
    uint32_t rank;
};

struct maker {
    const struct trace *trace;
    const struct names *names;
    uint32_t *texts; // of each name's id
    BASE_VECTOR_AS(struct branch, branches);
    struct base_hash_index index; // by parent and text
    uint32_t *of_node;
};

struct text {
    const char *bytes;
    size_t size;
    uint32_t id;
};

static int compare_texts(const void *a, const void *b)
{
    const struct text *left = a, *right = b;
    size_t size = left->size < right->size ? left->size : right->size;
    int order = memcmp(left->bytes, right->bytes, size);
    return order ? order : (left->size > right->size) - (left->size < right->size);
}

// All texts in one piece of memory, then sorted: those that are the same get the same number.
static int rank_texts(struct maker *maker, void (*write)(const struct name *name, struct sink *sink))
{
    size_t count = names_id_count(maker->names);
    struct text *texts = calloc(count + 1, sizeof *texts);
    struct sink *sink = sink_in_memory();
    maker->texts = calloc(count + 1, sizeof *maker->texts);
    int status = -1;
    if (!texts || !sink || !maker->texts)
        goto end;
    size_t size, before = 0;
    for (uint32_t id = 0; id < count; id++) {
        write(names_by_id(maker->names, id), sink);
        sink_memory(sink, &size);
        texts[id] = (struct text){.size = size - before, .id = id};
        before = size;
    }
    if (sink_failed(sink))
        goto end;
    const uint8_t *bytes = sink_memory(sink, &size);
    for (size_t id = 0; id < count; id++) {
        texts[id].bytes = (const char *)bytes;
        bytes += texts[id].size;
    }
    qsort(texts, count, sizeof *texts, compare_texts);
    uint32_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        rank += i && compare_texts(&texts[i - 1], &texts[i]) != 0;
        maker->texts[texts[i].id] = rank;
    }
    status = 0;
end:
    if (sink)
        sink_close(sink, false, NULL);
    free(texts);
    return status;
}

static bool add_branch(struct maker *maker, struct branch branch)
{
    struct branch *added = base_vector_add(&maker->vector, sizeof *added);
    if (added)
        *added = branch;
    return added;
}

// 0: no memory.
static uint32_t branch_of(struct maker *maker, uint32_t parent, uint32_t text)
{
    uint64_t hash = base_hash_word(0, (uint64_t)parent << 32 | text);
    for (uint32_t step = 0, i; (i = base_hash_next(&maker->index, hash, &step)) != BASE_HASH_NONE;)
        if (maker->branches[i].parent == parent && maker->branches[i].text == text)
            return i;
    struct branch branch = {.parent = parent, .text = text};
    bool is_good = add_branch(maker, branch) && base_hash_add(&maker->index, hash, (uint32_t)maker->count - 1);
    return is_good ? (uint32_t)maker->count - 1 : 0;
}

static int make_branches(struct maker *maker)
{
    maker->of_node = calloc(maker->trace->node_count + 1, sizeof *maker->of_node);
    if (!maker->of_node || !add_branch(maker, (struct branch){0}))
        return -1;
    for (uint32_t node = 1; node < maker->trace->node_count; node++) {
        uint32_t branch = maker->of_node[maker->trace->nodes[node].parent];
        for (size_t i = names_count(maker->names, node); i-- > 0;) {
            branch = branch_of(maker, branch, maker->texts[names_at(maker->names, node, i)->id]);
            if (!branch)
                return -1;
        }
        maker->of_node[node] = branch;
    }
    return 0;
}

struct key {
    uint64_t parent_and_text;
    uint32_t branch;
};

static int compare_keys(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    return (left->parent_and_text > right->parent_and_text) - (left->parent_and_text < right->parent_and_text);
}

// A branch's rank is its parent's, and one, and the sizes of its siblings before it. Parents come before children both
// in the array and, sorted by parent, among the keys.
static int rank_branches(struct maker *maker)
{
    struct key *keys = calloc(maker->count, sizeof *keys);
    uint32_t *sizes = calloc(maker->count, sizeof *sizes);
    if (!keys || !sizes) {
        free(keys);
        free(sizes);
        return -1;
    }
    for (uint32_t i = (uint32_t)maker->count - 1; i > 0; i--) {
        const struct branch *branch = &maker->branches[i];
        sizes[i]++;
        sizes[branch->parent] += sizes[i];
        keys[i - 1] = (struct key){(uint64_t)branch->parent << 32 | branch->text, i};
    }
    qsort(keys, maker->count - 1, sizeof *keys, compare_keys);
    uint32_t next = 0, parent = UINT32_MAX;
    for (size_t i = 0; i + 1 < maker->count; i++) {
        struct branch *branch = &maker->branches[keys[i].branch];
        if (branch->parent != parent)
            next = maker->branches[branch->parent].rank + 1;
        parent = branch->parent;
        branch->rank = next;
        next += sizes[keys[i].branch];
    }
    free(keys);
    free(sizes);
    return 0;
}

int export_name_tree_make(struct name_tree *tree, const struct trace *trace, const struct names *names,
                          void (*write)(const struct name *name, struct sink *sink))
{
    struct maker maker = {.trace = trace, .names = names};
    int status = -1;
    if (rank_texts(&maker, write) == 0 && make_branches(&maker) == 0 && rank_branches(&maker) == 0)
        status = 0;
    for (size_t node = 0; node < trace->node_count && status == 0; node++)
        maker.of_node[node] = maker.branches[maker.of_node[node]].rank;
    tree->rank = status == 0 ? maker.of_node : NULL;
    if (status != 0)
        free(maker.of_node);
    free(maker.texts);
    base_vector_free(&maker.vector);
    base_hash_free(&maker.index);
    return status;
}

void export_name_tree_free(struct name_tree *tree)
{
    free(tree->rank);
    tree->rank = NULL;
}
