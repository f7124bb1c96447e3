// SPDX-License-Identifier: Apache-2.0
// A thread's rules by key alone, for stacks whose next frame cannot be foretold: there a link that names the wrong one
// costs a mispredicted jump, and what is found in its place waits for three loads. Here the rule of a return address is
// a hash and a load away; that it stands at its first place is foretold, and nearly always so.
//
//   place = bits of key ^ bits of key further up;   rule = that of place, or of place + 1
//
// Belongs, as the links do, to the outermost walk of its thread, and to one list of modules.
#ifndef QUT_RUNTIME_HASHED_RULES_H
#define QUT_RUNTIME_HASHED_RULES_H

#include <string.h>

#include "libqut/runtime/link_cache.h"

// Much room for few keys: of 300, five do not stand at their first place. Memory is used where keys are.
enum { RUNTIME_HASHED_BITS = 13, RUNTIME_HASHED_COUNT = 1 << RUNTIME_HASHED_BITS };

struct runtime_hashed_rules {
    struct runtime_link rules[RUNTIME_HASHED_COUNT + 1]; // next_bytes is not used
    uint32_t epoch;                                      // of the module list that all were made from; 0: never used
};

static inline struct runtime_link *runtime_hashed_place(struct runtime_hashed_rules *hashed, uintptr_t key)
{
    // Without a multiplication, and in bytes at once where that is possible: a walk waits for each instruction of this.
    // Return addresses differ in their lowest bits; those at one place of different pages, in the others.
    enum { RULE_BYTES = sizeof(struct runtime_link), IS_POWER_OF_2 = (RULE_BYTES & (RULE_BYTES - 1)) == 0 };
    const uintptr_t mask = RUNTIME_HASHED_COUNT - 1;
    if (!IS_POWER_OF_2)
        return &hashed->rules[(key ^ key >> RUNTIME_HASHED_BITS) & mask];
    uintptr_t place_bytes =
        (key * RULE_BYTES ^ key >> (RUNTIME_HASHED_BITS - __builtin_ctz(RULE_BYTES))) & mask * RULE_BYTES;
    return (struct runtime_link *)((char *)hashed->rules + place_bytes);
}

// Room for a key that has none; the caller fills the rest.
static inline struct runtime_link *runtime_hashed_make(struct runtime_hashed_rules *hashed, uintptr_t key)
{
    struct runtime_link *rule = runtime_hashed_place(hashed, key);
    if (rule->key != 0)
        rule++;
    rule->key = key;
    return rule;
}

// Before a walk by them. Drops what was made from another list of modules.
static inline void runtime_hashed_use(struct runtime_hashed_rules *hashed, uint32_t epoch)
{
    if (hashed->epoch == epoch)
        return;
    if (hashed->epoch)
        memset(hashed->rules, 0, sizeof hashed->rules);
    hashed->epoch = epoch;
}

#endif
