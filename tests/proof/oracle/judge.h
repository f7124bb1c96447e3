// SPDX-License-Identifier: Apache-2.0
// Compares, before each instruction, what its rule says with the shadow stack.
#ifndef TESTS_PROOF_ORACLE_JUDGE_H
#define TESTS_PROOF_ORACLE_JUDGE_H

#include "tests/proof/oracle/modules.h"
#include "tests/proof/oracle/shadow.h"

enum verdict {
    VERDICT_EXACT = 0,
    VERDICT_TRAMPOLINE,    // a signal trampoline: the walk knows it by its bytes, and is asked at each of these
    VERDICT_BODY_RIGHT,    // a function-level rule, at an instruction where it holds
    VERDICT_BODY_DOUBTFUL, // ... where it does not: a walk marks what it finds there as a guess
    VERDICT_DOUBTFUL,      // not true, and the table says that the code contradicts it
    VERDICT_REFUSED,
    VERDICT_HOLE,      // no unwind information covers the instruction
    VERDICT_NO_TABLE,  // ... nor the module
    VERDICT_NO_MODULE, // ... and no file is mapped there
    VERDICT_NO_REGISTER,
    VERDICT_BAD_MEMORY,
    VERDICT_WRONG_CFA, // from here on: wrong
    VERDICT_WRONG_RA,
    VERDICT_WRONG_REGISTER,
    VERDICT_WRONG_END,    // the rule says that there is no caller, and there is one
    VERDICT_WRONG_CALLER, // the rule finds a caller, and there is none
    VERDICT_COUNT,
};

extern const char *const verdict_names[VERDICT_COUNT];

static inline bool verdict_is_wrong(enum verdict verdict)
{
    return verdict >= VERDICT_WRONG_CFA;
}

// An instruction, as it is mapped.
struct judged_pc {
    uint64_t pc, next_pc, vaddr;
    const struct oracle_file *file; // NULL: none
    enum instruction_kind kind;
    enum verdict without_rule; // where there is no frame rule
    bool body_only, spoiled;
    bool judged;        // once at least, against a caller
    uint64_t row_start; // with body_only and with spoiled rows
    struct qut_rule rule;
    uint64_t counts[VERDICT_COUNT];
    // The first wrong answer.
    enum verdict wrong;
    unsigned wrong_slot; // with WRONG_REGISTER
    uint64_t wanted, given;
};

struct judge {
    struct guest *guest;
    struct oracle_modules *modules;
    struct judged_pc **slots; // hash table by pc and file
    size_t count, capacity;
    uint64_t spoil_seed; // 0: nothing is spoiled; else 2 % of the rows are, and 20 % of function-level ones
};

// The record of an instruction; made, or brought up to date, when the emulator translates it.
struct judged_pc *judge_prepare(struct judge *judge, uint64_t pc, bool thumb, const uint8_t *bytes, size_t size);

void judge_instruction(struct judge *judge, struct judged_pc *at, const struct arch_frame_regs *regs,
                       const struct shadow_frame *truth);

#endif
