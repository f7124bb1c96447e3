// SPDX-License-Identifier: Apache-2.0
// The tables in which a thread's walks have looked last, beside what else the thread owns. A table is found by a search
// in the list of modules, its module, and what is known of the table: each a cache line that waits for the one before,
// and in a sample of a program that does other work none of them is in a cache. Here it is one line or two.
#ifndef QUT_RUNTIME_NEAR_TABLES_H
#define QUT_RUNTIME_NEAR_TABLES_H

#include "libqut/runtime/table.h"

enum { RUNTIME_NEAR_COUNT = 4 };

struct runtime_near_table {
    _Alignas(64) uintptr_t load_bias; // address = virtual address in the file + load_bias
    struct qut_table table;           // a copy
};
static_assert(sizeof(void *) != 8 || offsetof(struct runtime_near_table, table.run_starts) <= 64,
              "what each lookup reads is in one cache line");

// All of one list of modules.
struct runtime_near_tables {
    _Alignas(64) uintptr_t starts[RUNTIME_NEAR_COUNT]; // of the modules that they are of
    uintptr_t sizes[RUNTIME_NEAR_COUNT];               // 0: none
    struct runtime_near_table tables[RUNTIME_NEAR_COUNT];
    uint32_t hand; // the one that is replaced next
};

// NULL: it is not among them.
static inline const struct runtime_near_table *runtime_near_find(const struct runtime_near_tables *near, uintptr_t pc)
{
    for (unsigned i = 0; i < RUNTIME_NEAR_COUNT; i++)
        if (pc - near->starts[i] < near->sizes[i])
            return &near->tables[i];
    return NULL;
}

// A rule will be looked up there: what is read first comes while the walk begins. Which of them it is takes a miss to
// find out, so all are asked for.
static inline void runtime_near_expect(const struct runtime_near_tables *near, uintptr_t pc)
{
    for (unsigned i = 0; i < RUNTIME_NEAR_COUNT; i++)
        __builtin_prefetch(&near->tables[i]);
    const struct runtime_near_table *found = runtime_near_find(near, pc);
    if (!found)
        return;
    const struct qut_table *table = &found->table;
    const uint64_t units = (pc - found->load_bias - table->text_start) >> table->pc_shift;
    __builtin_prefetch(&table->groups[units / (QUT_BLOCK_UNITS * QUT_GROUP_BLOCKS)]);
}

static inline const struct runtime_near_table *runtime_near_keep(struct runtime_near_tables *near, uintptr_t start,
                                                                 uintptr_t end, uintptr_t load_bias,
                                                                 const struct qut_table *table)
{
    const unsigned hand = near->hand++ % RUNTIME_NEAR_COUNT;
    near->starts[hand] = start;
    near->sizes[hand] = end - start;
    near->tables[hand].load_bias = load_bias;
    near->tables[hand].table = *table;
    return &near->tables[hand];
}

static inline void runtime_near_forget(struct runtime_near_tables *near)
{
    for (unsigned i = 0; i < RUNTIME_NEAR_COUNT; i++)
        near->sizes[i] = 0;
}

#endif
