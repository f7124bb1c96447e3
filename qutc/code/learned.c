// SPDX-License-Identifier: Apache-2.0
// Of functions that nothing names it is known only once they are followed that they are some: what callers may rely on.
#include "qutc/code/inside.h"

static struct code_learned *find(const struct code_follower *f, uint32_t pc)
{
    uint64_t hash = base_hash_word(0, pc);
    for (uint32_t step = 0, i;
         f->learned.count && (i = base_hash_next(&f->learned_index, hash, &step)) != BASE_HASH_NONE;)
        if (f->learned.items[i].pc == pc)
            return &f->learned.items[i];
    return NULL;
}

const struct code_learned *code_learned_at(const struct code_follower *f, uint32_t pc)
{
    return find(f, pc);
}

bool code_learn(struct code_follower *f, const struct code_function *function)
{
    struct code_learned *place = find(f, function->pc);
    if (!place) {
        place = BASE_ADD(&f->learned);
        if (!place ||
            !base_hash_add(&f->learned_index, base_hash_word(0, function->pc), (uint32_t)f->learned.count - 1))
            return false;
        f->has_learned = true;
    }
    *place = (struct code_learned){.pc = function->pc,
                                   .never_returns = function->never_returns,
                                   .comes_back = function->comes_back,
                                   .loses = function->loses,
                                   .keeps = function->keeps};
    return true;
}

void code_learned_false(struct code_follower *f, uint32_t pc)
{
    struct code_learned *place = find(f, pc);
    if (place)
        place->keeps = 0;
}
