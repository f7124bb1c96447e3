// SPDX-License-Identifier: Apache-2.0
// What the store is compared with: a tree of frames with a lock around it and an allocation for each node, and records
// of 32 bytes. Newer tracers store so. Not signal-safe.
#ifndef QUT_BENCH_STORE_MUTEX_TREE_H
#define QUT_BENCH_STORE_MUTEX_TREE_H

#include <stddef.h>
#include <stdint.h>

struct mutex_tree;

// NULL without memory. The records are kept in a ring.
struct mutex_tree *mutex_tree_new(size_t record_capacity);
void mutex_tree_free(struct mutex_tree *tree);

// pcs: innermost first, all of the stack.
void mutex_tree_append(struct mutex_tree *tree, const uintptr_t *pcs, size_t count, uint64_t time_ns, uint64_t cpu_ns,
                       uint32_t thread);

size_t mutex_tree_node_count(const struct mutex_tree *tree);
// Memory that malloc has given for nodes and their table.
size_t mutex_tree_bytes(const struct mutex_tree *tree);

#endif
