// SPDX-License-Identifier: Apache-2.0
#include "tracer/groups.h"

#include <stdint.h>
#include <stdlib.h>

static uint64_t hash_of(const struct stack_thread *thread)
{
    uint64_t hash = thread->count ^ (uint64_t)thread->end.reason << 32;
    for (size_t i = 0; i < thread->count; i++)
        hash = (hash ^ thread->frames[i].pc) * 0x9e3779b97f4a7c15U;
    return hash;
}

static bool are_equal(const struct stack_thread *a, const struct stack_thread *b)
{
    if (a->count != b->count || a->end.reason != b->end.reason || a->end.refusal != b->end.refusal ||
        a->info.signal_number != b->info.signal_number || a->info.asleep_in != b->info.asleep_in)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->frames[i].pc != b->frames[i].pc || a->frames[i].flags != b->frames[i].flags)
            return false;
    return true;
}

// The group that a thread belongs to, or groups->count.
static size_t find_group(const struct stack_groups *groups, const struct stack_take *take, const uint64_t *hashes,
                         size_t thread)
{
    for (size_t i = 0; i < groups->count; i++)
        if (hashes[groups->first[i]] == hashes[thread] &&
            are_equal(&take->threads[groups->first[i]], &take->threads[thread]))
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
    uint64_t *hashes = malloc((take->count + 1) * sizeof *hashes);
    bool has_all = groups->next && groups->first && groups->last && groups->size && hashes;
    for (size_t i = 0; has_all && i < take->count; i++) {
        hashes[i] = hash_of(&take->threads[i]);
        add(groups, merge ? find_group(groups, take, hashes, i) : groups->count, i);
    }
    free(hashes);
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
