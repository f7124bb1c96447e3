// SPDX-License-Identifier: Apache-2.0
#include "bench/store/mutex_tree.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

struct node {
    struct node *next; // in its bucket
    const struct node *parent;
    uintptr_t pc;
};

struct record {
    uint64_t time_ns, cpu_ns;
    const struct node *node;
    uint32_t thread;
    uint32_t kind;
};

struct mutex_tree {
    pthread_mutex_t lock;
    struct node **buckets;
    size_t bucket_count, node_count; // as many buckets as nodes, or more
    size_t node_bytes;
    struct record *records;
    size_t record_capacity, record_next;
};

static size_t hash(const struct node *parent, uintptr_t pc, size_t bucket_count)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)parent * 0x9e3779b97f4a7c15u) ^ pc;
    mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93u;
    return (size_t)(mixed >> 32) & (bucket_count - 1);
}

struct mutex_tree *mutex_tree_new(size_t record_capacity)
{
    struct mutex_tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return NULL;
    tree->bucket_count = 1024;
    tree->buckets = calloc(tree->bucket_count, sizeof(struct node *));
    tree->records = malloc(record_capacity * sizeof *tree->records);
    tree->record_capacity = record_capacity;
    pthread_mutex_init(&tree->lock, NULL);
    if (!tree->buckets || !tree->records) {
        mutex_tree_free(tree);
        return NULL;
    }
    return tree;
}

void mutex_tree_free(struct mutex_tree *tree)
{
    for (size_t i = 0; tree->buckets && i < tree->bucket_count; i++) {
        struct node *next;
        for (struct node *node = tree->buckets[i]; node; node = next) {
            next = node->next;
            free(node);
        }
    }
    free(tree->buckets);
    free(tree->records);
    pthread_mutex_destroy(&tree->lock);
    free(tree);
}

static void grow(struct mutex_tree *tree)
{
    size_t count = tree->bucket_count * 2;
    struct node **buckets = calloc(count, sizeof(struct node *));
    if (!buckets)
        return; // chains become longer
    for (size_t i = 0; i < tree->bucket_count; i++) {
        struct node *next;
        for (struct node *node = tree->buckets[i]; node; node = next) {
            next = node->next;
            size_t bucket = hash(node->parent, node->pc, count);
            node->next = buckets[bucket];
            buckets[bucket] = node;
        }
    }
    free(tree->buckets);
    tree->buckets = buckets;
    tree->bucket_count = count;
}

static const struct node *child(struct mutex_tree *tree, const struct node *parent, uintptr_t pc)
{
    size_t bucket = hash(parent, pc, tree->bucket_count);
    for (const struct node *node = tree->buckets[bucket]; node; node = node->next)
        if (node->parent == parent && node->pc == pc)
            return node;
    struct node *node = malloc(sizeof *node);
    if (!node)
        return parent;
    *node = (struct node){tree->buckets[bucket], parent, pc};
    tree->buckets[bucket] = node;
    tree->node_bytes += malloc_usable_size(node) + sizeof(size_t);
    if (++tree->node_count > tree->bucket_count)
        grow(tree);
    return node;
}

void mutex_tree_append(struct mutex_tree *tree, const uintptr_t *pcs, size_t count, uint64_t time_ns, uint64_t cpu_ns,
                       uint32_t thread)
{
    pthread_mutex_lock(&tree->lock);
    const struct node *node = NULL;
    for (size_t i = count; i-- > 0;)
        node = child(tree, node, pcs[i]);
    tree->records[tree->record_next] = (struct record){time_ns, cpu_ns, node, thread, 0};
    if (++tree->record_next == tree->record_capacity)
        tree->record_next = 0;
    pthread_mutex_unlock(&tree->lock);
}

size_t mutex_tree_node_count(const struct mutex_tree *tree)
{
    return tree->node_count;
}

size_t mutex_tree_bytes(const struct mutex_tree *tree)
{
    return tree->node_bytes + tree->bucket_count * sizeof(struct node *);
}
