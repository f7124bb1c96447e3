// SPDX-License-Identifier: Apache-2.0
// A world for the generic walker to walk in: one module with a table made row by row, its code, one stack.
#ifndef TESTS_UNIT_LIBQUT_RUNTIME_WALK_WORLD_H
#define TESTS_UNIT_LIBQUT_RUNTIME_WALK_WORLD_H

#include "libqut/runtime/walk.h"
#include "tests/support/table_maker.h"

enum {
    WORLD_BIAS = 0x1000000, // address = virtual address + bias
    WORLD_TEXT = WORLD_BIAS + MAKER_TEXT,
    WORLD_TEXT_BYTES = 0x1000,
    WORLD_STACK = 0x20000000,
    WORLD_STACK_BYTES = 0x1000,
    WORLD_SHADOW_LOG2 = 46,
};

struct world {
    const struct arch *arch;
    struct maker maker;
    struct made_table made;
    enum runtime_code_state state; // of the module
    uint64_t entry;
    uint8_t frame_flags, frame_pointers;
    uint64_t signature_bits; // that strip takes away
    uint64_t vector_bytes;
    // Offsets: code of a virtual machine; what has rules of it; where no calls return.
    uint32_t machine_start, machine_end, machine_rules, machine_entries;
    struct qut_rule machine_rule;
    struct arch_interpreted interpreted; // frames by it
    uint8_t code[WORLD_TEXT_BYTES];
    uint8_t stack[WORLD_STACK_BYTES];
    uint8_t shadow[WORLD_STACK_BYTES]; // of the stack, 2^WORLD_SHADOW_LOG2 below it
    struct arch_frame_regs regs;       // where walks begin
};

void world_init(struct world *world, const struct arch *arch);
void world_free(struct world *world);

// From this offset of the text on the rule holds; offsets ascend. world_seal makes the table.
void world_rule(struct world *world, uint32_t offset, const struct qut_rule *rule);
void world_seal(struct world *world);

// cfa = sp + words, ra where calls put it (on the stack: the word below the cfa), the frame pointer unchanged.
struct qut_rule world_frame(const struct world *world, int cfa_words);
// The same with the return address saved at cfa + ra_words.
struct qut_rule world_frame_saved(const struct world *world, int cfa_words, int ra_words);

// Word `index` of the stack.
void world_put(struct world *world, unsigned index, uint64_t value);
void world_put_shadow(struct world *world, unsigned index, uint64_t value);
uint64_t world_stack_address(const struct world *world, unsigned index);

void world_set(struct world *world, unsigned reg, uint64_t value);

extern const struct runtime_walk_ops world_ops;

// Walks to the end; frames and how many, and walk->end.
size_t world_walk(struct world *world, enum arch_pc_kind kind, struct qut_frame *frames, size_t max,
                  struct qut_end *end);

#endif
