// SPDX-License-Identifier: Apache-2.0
// See known_rules.c. All of it is signal-safe, for the outermost walk of the thread whose rules they are.
#ifndef QUT_WALK_KNOWN_RULES_H
#define QUT_WALK_KNOWN_RULES_H

#include "libqut/runtime/known_rules.h"
#include "libqut/walk/seen_steps.h"

#pragma GCC visibility push(hidden)

// Before the rules of a walk: drops all if what is known of code has changed.
void walk_rules_begin(struct runtime_known_rules *rules, uint32_t modules_epoch, uint32_t made_generation);

// What the rule of a frame rests on, as it was found while the frame was classified.
struct walk_rule_source {
    bool is_known; // else the rule is none to be kept
    uint8_t proof; // enum runtime_rule_proof
    uint32_t number;
    uintptr_t pc; // that was looked up
};

// The frame the walk is at, which was at `pc` before, has been classified: its rule, if it is of the frequent shape.
void walk_rules_keep(struct runtime_known_rules *rules, const struct runtime_walk *walk, uintptr_t pc,
                     const struct walk_rule_source *source);

enum walk_rule_told {
    WALK_RULE_NONE,         // the walk is where it was
    WALK_RULE_LEFT,         // it is at the caller; *flags are what the frame is
    WALK_RULE_LACKS_DEX_PC, // the frame is an interpreter's, and the register of its bytecode is not known
};
// `holds`: whether what a rule rests on is what it was.
enum walk_rule_told walk_rules_follow(struct runtime_known_rules *rules, struct runtime_walk *walk,
                                      struct walk_direct direct,
                                      bool (*holds)(void *context, const struct runtime_known_rule *rule),
                                      void *context, unsigned *flags);

// Whether the walk is at a frame that the fast ways would get stuck in, and whose rule may be kept.
bool walk_rules_are_for(struct runtime_known_rules *rules, const struct runtime_walk *walk);

#pragma GCC visibility pop

#endif
