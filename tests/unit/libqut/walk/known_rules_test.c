// SPDX-License-Identifier: Apache-2.0
// A rule that was kept leads to where the slow way would, or nowhere: a rule of three registers on a stack of our own,
// beside what runtime_rule_eval makes of it. What runtimes' own frames do is judged where they run (tests/whole).
#include "libqut/walk/known_rules.h"

#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/rule_eval.h"
#include "libqut/walk/seen_steps.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/walk/frame_registers.h"

enum {
    PC = 0x401010,
    OUTER_PC = 0x402020,
    WORDS = 16,
    WORD = (int)sizeof(uintptr_t),
    SAVED_SLOT = ARCH_NATIVE_FP_SLOT + 1,
    LOST_SLOT = ARCH_NATIVE_FP_SLOT + 2
};

static struct runtime_known_rules rules;
static uintptr_t stack[WORDS];

static struct walk_direct all_of_it(void)
{
    return (struct walk_direct){(uintptr_t)stack, (uintptr_t)(stack + WORDS)};
}

static uint64_t bit(unsigned slot)
{
    return (uint64_t)1 << arch_native_arch.tracked[slot];
}

static struct runtime_walk walk_at(uintptr_t pc, enum arch_pc_kind kind)
{
    struct runtime_walk walk;
    memset(&walk, 0, sizeof walk);
    walk.regs.pc = pc;
    walk.regs.sp = (uintptr_t)stack;
    walk.regs.valid = (uint64_t)1 << arch_native_arch.sp_reg;
    for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++) {
        walk.regs.tracked[slot] = 0x2000 + slot;
        walk.regs.valid |= bit(slot);
    }
    walk.regs.tracked[ARCH_NATIVE_FP_SLOT] = (uintptr_t)(stack + 6);
    walk.pc_kind = (uint8_t)kind;
    walk.flags = kind == ARCH_PC_EXACT ? QUT_FRAME_INTERRUPTED : 0;
    walk.rule.dex_pc_reg = QUT_NO_REGISTER;
    walk.index = 3;
    walk.end.guessed_frame = QUT_NO_GUESS;
    return walk;
}

// cfa = base + 4 words; ra, fp and a register below it; another register is lost.
static struct qut_rule rule_by(unsigned base_reg)
{
    struct qut_rule rule;
    memset(&rule, 0, sizeof rule);
    rule.kind = QUT_RULE_FRAME;
    rule.dex_pc_reg = QUT_NO_REGISTER;
    rule.cfa.reg = (uint8_t)base_reg;
    rule.cfa.offset_bytes = 4 * WORD;
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -WORD};
    rule.tracked[ARCH_NATIVE_FP_SLOT] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -2 * WORD};
    rule.tracked[SAVED_SLOT] = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -3 * WORD};
    rule.tracked[LOST_SLOT].how = QUT_REG_UNDEFINED;
    return rule;
}

static struct walk_rule_source source_of(uintptr_t pc, enum arch_pc_kind kind, enum runtime_rule_proof proof)
{
    return (struct walk_rule_source){
        .is_known = true, .proof = (uint8_t)proof, .number = 5, .pc = (uintptr_t)arch_lookup_pc(pc, kind)};
}

static void begin(void)
{
    memset(&rules, 0, sizeof rules);
    walk_rules_begin(&rules, 7, 1);
    for (unsigned i = 0; i < WORDS; i++)
        stack[i] = OUTER_PC + i;
}

// As it is when it was classified.
static void keep(const struct qut_rule *rule, enum arch_pc_kind kind, enum runtime_rule_proof proof, unsigned flags)
{
    struct runtime_walk walk = walk_at(PC, kind);
    walk.rule = *rule;
    walk.flags |= (uint8_t)flags;
    struct walk_rule_source source = source_of(PC, kind, proof);
    walk_rules_keep(&rules, &walk, PC, &source);
}

static bool proof_holds = true;
static unsigned asked;

static bool holds(void *context, const struct runtime_known_rule *rule)
{
    (void)context;
    asked = rule->proof_number;
    return proof_holds;
}

static enum walk_rule_told follow(struct runtime_walk *walk, unsigned *flags)
{
    return walk_rules_follow(&rules, walk, all_of_it(), holds, NULL, flags);
}

static bool is_left(struct runtime_walk walk)
{
    unsigned flags;
    return follow(&walk, &flags) == WALK_RULE_LEFT;
}

static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    (void)context;
    *value = *(uintptr_t *)(uintptr_t)address;
    return true;
}

// Whether a walk that follows is where the rule leads.
static void compare(const struct qut_rule *rule, enum arch_pc_kind kind, unsigned flags)
{
    struct runtime_walk walk = walk_at(PC, kind);
    const struct arch_frame_regs before = frame_registers(&walk);
    struct arch_frame_regs caller;
    unsigned told = 0;
    CHECK(runtime_rule_eval(&arch_native_arch, rule, &before, read_word, NULL, &caller, NULL) == RUNTIME_EVAL_OK,
          "the rule leads somewhere");
    CHECK(follow(&walk, &told) == WALK_RULE_LEFT, "kept");
    CHECK(walk.regs.pc == caller.pc && walk.regs.sp == caller.reg[arch_native_arch.sp_reg] &&
              walk.regs.valid == caller.valid,
          "pc %llx, sp %llx, registers %llx", (unsigned long long)walk.regs.pc, (unsigned long long)walk.regs.sp,
          (unsigned long long)walk.regs.valid);
    for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++)
        CHECK(!(caller.valid & bit(slot)) || walk.regs.tracked[slot] == caller.reg[arch_native_arch.tracked[slot]],
              "register %u", slot);
    CHECK(walk.index == 4 && walk.pc_kind == ARCH_PC_RETURN && walk.flags == 0 && !walk.classified, "at a caller");
    CHECK(told == (flags | (kind == ARCH_PC_EXACT ? QUT_FRAME_INTERRUPTED : 0u)), "the frame's flags: %x", told);
}

TEST(a_rule_leads_to_the_caller)
{
    for (unsigned i = 0; i < 4; i++) {
        const enum arch_pc_kind kind = i & 1 ? ARCH_PC_EXACT : ARCH_PC_RETURN;
        const struct qut_rule rule =
            rule_by(i & 2 ? arch_native_arch.tracked[ARCH_NATIVE_FP_SLOT] : arch_native_arch.sp_reg);
        begin();
        CHECK(!is_left(walk_at(PC, kind)), "nothing is known yet");
        keep(&rule, kind, RUNTIME_RULE_LISTED, QUT_FRAME_MANAGED);
        compare(&rule, kind, QUT_FRAME_MANAGED);
        CHECK(!is_left(walk_at(PC, kind == ARCH_PC_EXACT ? ARCH_PC_RETURN : ARCH_PC_EXACT)),
              "interrupted or not is not the same");
        CHECK(!is_left(walk_at(PC + 4, kind)), "another pc");
    }
}

TEST(where_it_cannot_be_followed_the_walk_stays)
{
    const struct qut_rule rule = rule_by(arch_native_arch.tracked[ARCH_NATIVE_FP_SLOT]);
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, 0);
    struct runtime_walk walk = walk_at(PC, ARCH_PC_RETURN);
    walk.regs.valid &= ~bit(ARCH_NATIVE_FP_SLOT);
    CHECK(!is_left(walk), "its base is not known");
    for (unsigned i = 0; i < 4; i++) {
        static const int words[] = {WORDS, WORDS - 3, -4, -100};
        walk = walk_at(PC, ARCH_PC_RETURN);
        walk.regs.tracked[ARCH_NATIVE_FP_SLOT] = (uintptr_t)stack + (uintptr_t)((intptr_t)words[i] * WORD);
        CHECK(!is_left(walk), "the frame ends outside: %d words from the stack's beginning", words[i]);
    }
    walk = walk_at(PC, ARCH_PC_RETURN);
    walk.regs.tracked[ARCH_NATIVE_FP_SLOT] = (uintptr_t)(stack + WORDS - 4);
    CHECK(is_left(walk), "at the stack's end");
    walk = walk_at(PC, ARCH_PC_RETURN);
    walk.regs.sp = (uintptr_t)(stack + 10);
    CHECK(!is_left(walk), "the caller's sp would be what it is");
    stack[9] = 0;
    CHECK(!is_left(walk_at(PC, ARCH_PC_RETURN)), "its return address is 0");
    struct walk_direct part = {(uintptr_t)(stack + 8), (uintptr_t)(stack + WORDS)};
    stack[9] = OUTER_PC;
    walk = walk_at(PC, ARCH_PC_RETURN);
    unsigned flags;
    CHECK(walk_rules_follow(&rules, &walk, part, holds, NULL, &flags) == WALK_RULE_NONE, "word 7 cannot be read");
}

TEST(other_rules_are_not_kept)
{
    const struct qut_rule plain = rule_by(arch_native_arch.sp_reg);
    enum { FORMS = 9 };
    for (unsigned i = 0; i <= FORMS; i++) {
        struct qut_rule rule = plain;
        switch (i) {
        case 0: rule.kind = QUT_RULE_REFUSED; break;
        case 1: rule.flags = QUT_RULE_SIGNAL; break;
        case 2: rule.cfa.how = QUT_CFA_DEREF; break;
        case 3: rule.cfa.offset_bytes = WORD + 1; break;
        case 4: rule.ra.how = QUT_REG_SAME; break;
        case 5: rule.ra.offset_bytes = -128 * WORD; break;
        case 6: rule.sp.how = QUT_REG_AT_CFA; break;
        case 7: rule.tracked[SAVED_SLOT].how = QUT_REG_AT_REG; break;
        case 8: rule.tracked[SAVED_SLOT].offset_bytes = WORD; break;
        default: break;
        }
        begin();
        keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, 0);
        CHECK(is_left(walk_at(PC, ARCH_PC_RETURN)) == (i == FORMS), "form %u", i);
    }
    begin();
    keep(&plain, ARCH_PC_EXACT, RUNTIME_RULE_LISTED, QUT_FRAME_GUESSED);
    CHECK(!is_left(walk_at(PC, ARCH_PC_EXACT)), "that it is a guess would have to be said");
    struct runtime_walk walk = walk_at(PC, ARCH_PC_RETURN);
    walk.rule = plain;
    struct walk_rule_source source = source_of(PC, ARCH_PC_RETURN, RUNTIME_RULE_LISTED);
    walk_rules_keep(&rules, &walk, PC - 4, &source);
    source.pc++;
    walk_rules_keep(&rules, &walk, PC, &source);
    source.pc--;
    source.is_known = false;
    walk_rules_keep(&rules, &walk, PC, &source);
    source.is_known = true;
    walk.end.reason = QUT_END_TABLE_PENDING;
    walk_rules_keep(&rules, &walk, PC, &source);
    CHECK(!is_left(walk_at(PC, ARCH_PC_RETURN)), "in a thunk, of other code, of what nobody knows, not confirmed");
}

TEST(what_is_known_of_code_has_changed)
{
    const struct qut_rule rule = rule_by(arch_native_arch.sp_reg);
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, 0);
    walk_rules_begin(&rules, 7, 1);
    CHECK(is_left(walk_at(PC, ARCH_PC_RETURN)), "it has not");
    walk_rules_begin(&rules, 8, 1);
    CHECK(!is_left(walk_at(PC, ARCH_PC_RETURN)), "another list of modules");
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, 0);
    walk_rules_begin(&rules, 7, 2);
    CHECK(!is_left(walk_at(PC, ARCH_PC_RETURN)), "other code that no module has");
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, 0);
    rules.stamp = UINT32_MAX;
    walk_rules_begin(&rules, 9, 2);
    CHECK(rules.stamp == 1 && !is_left(walk_at(PC, ARCH_PC_RETURN)), "numbers begin anew, and rules do");
}

TEST(what_a_rule_rests_on_is_asked)
{
    const struct qut_rule rule = rule_by(arch_native_arch.sp_reg);
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_MADE, QUT_FRAME_JIT);
    asked = 0;
    struct runtime_walk walk = walk_at(PC, ARCH_PC_RETURN);
    CHECK(walk_rules_are_for(&rules, &walk), "the fast ways would get stuck there");
    CHECK(is_left(walk) && asked == 5, "asked of %u", asked);
    proof_holds = false;
    CHECK(!is_left(walk), "it does not hold now");
    proof_holds = true;
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_COUNTED, QUT_FRAME_GUESSED);
    CHECK(!is_left(walk), "a machine's, of a frame that a guess led to: its caller has to confirm it");
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_COUNTED, 0);
    CHECK(is_left(walk), "of one that no guess led to");
    walk.flags = QUT_FRAME_GUESSED;
    CHECK(!is_left(walk), "and it serves no other");
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, 0);
    walk.flags = 0;
    CHECK(!walk_rules_are_for(&rules, &walk), "they would not");
}

TEST(an_interpreter_leads_to_its_bytecode)
{
    struct qut_rule rule = rule_by(arch_native_arch.sp_reg);
    rule.dex_pc_reg = arch_native_arch.tracked[SAVED_SLOT];
    begin();
    keep(&rule, ARCH_PC_RETURN, RUNTIME_RULE_LISTED, QUT_FRAME_INTERPRETER);
    struct runtime_walk walk = walk_at(PC, ARCH_PC_RETURN);
    unsigned flags;
    CHECK(follow(&walk, &flags) == WALK_RULE_LEFT && flags == QUT_FRAME_INTERPRETER, "left");
    CHECK(walk.flags == QUT_FRAME_DEX && walk.classified && walk.dex_pc == 0x2000 + SAVED_SLOT, "at %llx",
          (unsigned long long)walk.dex_pc);
    CHECK(follow(&walk, &flags) == WALK_RULE_LEFT && flags == QUT_FRAME_DEX && walk.flags == 0 && walk.index == 5,
          "and from there to the caller");
    walk = walk_at(PC, ARCH_PC_RETURN);
    walk.regs.valid &= ~bit(SAVED_SLOT);
    CHECK(follow(&walk, &flags) == WALK_RULE_LACKS_DEX_PC, "the register is not known");
    walk = walk_at(PC, ARCH_PC_RETURN);
    walk.regs.tracked[SAVED_SLOT] = 0;
    CHECK(follow(&walk, &flags) == WALK_RULE_LEFT && walk.flags == 0, "it is 0: no bytecode");
}

int main(void)
{
    RUN(a_rule_leads_to_the_caller);
    RUN(where_it_cannot_be_followed_the_walk_stays);
    RUN(other_rules_are_not_kept);
    RUN(what_is_known_of_code_has_changed);
    RUN(what_a_rule_rests_on_is_asked);
    RUN(an_interpreter_leads_to_its_bytecode);
    return tap_finish();
}
