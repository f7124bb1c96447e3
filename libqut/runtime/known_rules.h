// SPDX-License-Identifier: Apache-2.0
// Rules that a thread's walks have come to by the slow way, with all registers: for frames that links do not leave, and
// for walks that go by more registers than pc, sp and fp. Such a frame is left by a few loads instead of a look into
// tables.
//
//   cfa = base + k;  ra = *(cfa + r);  each register: as it was, *(cfa + s), or unknown
//
// Belongs, as the links do, to the outermost walk of its thread.
#ifndef QUT_RUNTIME_KNOWN_RULES_H
#define QUT_RUNTIME_KNOWN_RULES_H

#include <stdint.h>

#include "formats/qut_rule.h"

enum {
    RUNTIME_KNOWN_RULE_BITS = 10,
    RUNTIME_KNOWN_RULE_COUNT = 1 << RUNTIME_KNOWN_RULE_BITS,
    RUNTIME_KNOWN_RULE_NO_SLOT = 0xff,
};

// What has to be asked, once a walk, before a rule counts.
enum runtime_rule_proof {
    RUNTIME_RULE_LISTED,     // nothing: the list of modules is up to date
    RUNTIME_RULE_UNLISTED,   // the module that no loader lists
    RUNTIME_RULE_MADE,       // the list of code that was made at run time
    RUNTIME_RULE_COUNTED,    // how many pieces of code the machine has made
    RUNTIME_RULE_OF_MACHINE, // what a virtual machine says of the frame; of trails only (trail.h)
};

// Offsets in words, from the cfa. On machines of 64 bits two in a line of a cache.
struct runtime_known_rule {
    uintptr_t pc;          // 0: none
    uint32_t stamp;        // of what is known of code: another one than that of all rules, and it counts for nothing
    uint32_t proof_number; // of the module, of the list, or that number
    uint16_t cfa_words;    // from the base
    uint8_t pc_kind;       // enum arch_pc_kind
    uint8_t proof;         // enum runtime_rule_proof
    uint8_t base_slot;     // NO_SLOT: sp
    uint8_t dex_slot;      // of the register that holds the bytecode's address; NO_SLOT: none
    uint8_t frame_flags;   // qut_frame_flags that the code has
    int8_t ra_words, lowest_words;
    int8_t tracked_words[QUT_TRACKED_MAX]; // 0: as it was; 1: unknown
};

struct runtime_known_rules {
    uint32_t stamp;                          // never 0
    uint32_t modules_epoch, made_generation; // what it stands for
    struct runtime_known_rule rules[RUNTIME_KNOWN_RULE_COUNT];
};

static inline struct runtime_known_rule *runtime_known_rule_place(struct runtime_known_rules *rules, uint64_t pc)
{
    return &rules->rules[(pc * 0x9e3779b97f4a7c15u) >> (64 - RUNTIME_KNOWN_RULE_BITS)];
}

#endif
