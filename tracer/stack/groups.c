// SPDX-License-Identifier: Apache-2.0
#include "tracer/stack/groups.h"

#include <stdlib.h>

#include "base/hash_index.h"

static uint64_t hash_of(const struct stack_thread *thread)
{
    uint64_t hash = thread->count ^ (uint64_t)thread->end.reason << 32;
    for (size_t i = 0; i < thread->count; i++)
        hash = base_hash_word(hash, thread->frames[i].lookup_pc);
    return hash;
}

static bool are_equal(const struct stack_thread *a, const struct stack_thread *b)
{
    if (a->count != b->count || a->end.reason != b->end.reason || a->end.refusal != b->end.refusal ||
        a->info.signal_number != b->info.signal_number || a->info.asleep_in != b->info.asleep_in)
        return false;
    for (size_t i = 0; i < a->count; i++)
        // Of a method that is interpreted only the second tells where in it.
        if (a->frames[i].pc != b->frames[i].pc || a->frames[i].lookup_pc != b->frames[i].lookup_pc ||
            a->frames[i].flags != b->frames[i].flags)
            return false;
    return true;
}

// The group that a thread belongs to, or groups->count.
static size_t find_group(const struct stack_groups *groups, const struct stack_take *take,
                         const struct base_hash_index *index, uint64_t hash, size_t thread)
{
    for (uint32_t step = 0, i; (i = base_hash_next(index, hash, &step)) != BASE_HASH_NONE;)
        if (are_equal(&take->threads[groups->first[i]], &take->threads[thread]))
            return i;
    return groups->count;
}

static void add(struct stack_groups *groups, size_t group, size_t thread)
{
    groups->next[thread] = SIZE_MAX;
    if (group == groups->count) {
        groups->first[group] = thread;
        groups->size[group] = 0;
        groups->count++;
    } else {
        groups->next[groups->last[group]] = thread;
    }
    groups->last[group] = thread;
    groups->size[group]++;
}

int stack_groups_make(struct stack_groups *groups, const struct stack_take *take, bool merge)
{
    size_t bytes = (take->count + 1) * sizeof(size_t);
    *groups = (struct stack_groups){
        .next = malloc(bytes), .first = malloc(bytes), .last = malloc(bytes), .size = malloc(bytes)};
    struct base_hash_index index = {0};
    bool has_all = groups->next && groups->first && groups->last && groups->size;
    for (size_t i = 0; has_all && i < take->count; i++) {
        uint64_t hash = hash_of(&take->threads[i]);
        size_t group = merge ? find_group(groups, take, &index, hash, i) : groups->count;
        has_all = group < groups->count || base_hash_add(&index, hash, (uint32_t)group);
        add(groups, group, i);
    }
    base_hash_free(&index);
    if (!has_all)
        stack_groups_free(groups);
    return has_all ? 0 : -1;
}

void stack_groups_free(struct stack_groups *groups)
{
    free(groups->next);
    free(groups->first);
    free(groups->last);
    free(groups->size);
    *groups = (struct stack_groups){0};
}
