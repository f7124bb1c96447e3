// SPDX-License-Identifier: Apache-2.0
// A walk that follows a trail comes to what it would have come to by itself. Stacks made by chance, with rules of all
// kinds of a frame's: a walk of each is recorded, words and registers are changed, and from every frame of the stack as
// it then is the trail must lead to the rest of the true walk, or nowhere.
#include "libqut/walk/trail.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/rule_eval.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/walk/frame_registers.h"

enum {
    FRAMES_MAX = 12,
    OUTPUTS_MAX = 2 * FRAMES_MAX,
    WORDS = 160,
    WORD = (int)sizeof(uintptr_t),
    PC = 0x401000,
    PC_STEP = 0x40,
    SLOTS = 4,
    NUMBER = 5
};

static struct runtime_trail trail;
static uintptr_t stack[WORDS];
static struct qut_rule rules[FRAMES_MAX];
static bool is_made[FRAMES_MAX]; // its rule rests on NUMBER
static unsigned frame_count;
static uint64_t seed = 1;

static unsigned chance(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static uint64_t bit(unsigned slot)
{
    return (uint64_t)1 << arch_native_arch.tracked[slot];
}

static uintptr_t pc_of(unsigned frame)
{
    return PC + (uintptr_t)frame * PC_STEP;
}

static struct runtime_walk walk_at_first(void)
{
    struct runtime_walk walk;
    memset(&walk, 0, sizeof walk);
    walk.regs.pc = pc_of(0);
    walk.regs.sp = (uintptr_t)stack;
    walk.regs.valid = (uint64_t)1 << arch_native_arch.sp_reg;
    for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++) {
        walk.regs.tracked[slot] = (uintptr_t)(stack + 4 + slot);
        walk.regs.valid |= bit(slot);
    }
    walk.pc_kind = ARCH_PC_RETURN;
    walk.end.guessed_frame = QUT_NO_GUESS;
    return walk;
}

// ---- the walk

static struct runtime_trail *noted; // by the walk under way; NULL: it is not recorded

static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    (void)context;
    if (address < (uintptr_t)stack || address >= (uintptr_t)(stack + WORDS) || address % WORD)
        return false;
    *value = *(uintptr_t *)(uintptr_t)address;
    if (noted)
        walk_trail_reads(noted, (uintptr_t)address, (uintptr_t)*value);
    return true;
}

static const struct qut_rule *rule_at(uintptr_t pc)
{
    unsigned frame = (unsigned)((pc - PC) / PC_STEP);
    return pc >= PC && pc % PC_STEP == 0 && frame < frame_count ? &rules[frame] : NULL;
}

// What the slow way does at a frame that is given out.
static bool leave(struct runtime_walk *walk)
{
    const uintptr_t pc = (uintptr_t)walk->regs.pc;
    const bool is_dex = walk->flags & QUT_FRAME_DEX;
    const struct qut_rule *rule = rule_at(pc);
    struct arch_frame_regs before = frame_registers(walk), caller;
    if (noted)
        walk_trail_at(noted, walk);
    walk->end.reason = rule || is_dex ? QUT_END_NOT : QUT_END_NO_ROW;
    walk->classified = true;
    if (rule && !is_dex) {
        walk->rule = *rule;
        walk->flags |= rule->dex_pc_reg != QUT_NO_REGISTER ? QUT_FRAME_INTERPRETER : 0;
        if (noted && is_made[(pc - PC) / PC_STEP])
            walk_trail_rests_on(noted, pc, RUNTIME_RULE_COUNTED, NUMBER);
    }
    if (noted)
        walk_trail_classified(noted, walk, is_dex ? (uintptr_t)arch_interpreted_method(walk->dex_pc) : pc);
    const uintptr_t lookup_pc = is_dex ? (uintptr_t)walk->dex_pc : pc;
    const unsigned flags = walk->flags;
    bool moved = is_dex;
    if (rule && !is_dex) {
        enum runtime_eval_result told =
            runtime_rule_eval(&arch_native_arch, rule, &before, read_word, NULL, &caller, NULL);
        moved = told == RUNTIME_EVAL_OK && caller.reg[arch_native_arch.sp_reg] > walk->regs.sp;
        walk->end.reason = told == RUNTIME_EVAL_END ? QUT_END_OUTERMOST : moved ? QUT_END_NOT : QUT_END_NO_PROGRESS;
    }
    if (is_dex) {
        walk->flags = 0;
        walk->classified = false;
    } else if (moved) {
        walk->dex_pc = 0;
        if (flags & QUT_FRAME_INTERPRETER && walk->regs.valid >> rule->dex_pc_reg & 1)
            walk->dex_pc = before.reg[rule->dex_pc_reg];
        walk->regs.pc = caller.pc;
        walk->regs.sp = caller.reg[arch_native_arch.sp_reg];
        walk->regs.valid = caller.valid;
        for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++)
            walk->regs.tracked[slot] = caller.reg[arch_native_arch.tracked[slot]];
        walk->flags = walk->dex_pc ? QUT_FRAME_DEX : 0;
        walk->classified = walk->dex_pc != 0;
    }
    walk->index += moved;
    if (noted && moved)
        walk_trail_left(noted, walk, lookup_pc, flags);
    else if (noted)
        walk_trail_ended(noted, walk, lookup_pc, flags);
    return moved;
}

static uintptr_t given_out(const struct runtime_walk *walk)
{
    return walk->flags & QUT_FRAME_DEX ? (uintptr_t)walk->dex_pc : (uintptr_t)walk->regs.pc;
}

// From where the walk is, that frame included. Returns how many.
static unsigned walk_on(struct runtime_walk *walk, uintptr_t *pcs)
{
    unsigned count = 0;
    do
        pcs[count++] = given_out(walk);
    while (leave(walk) && count < OUTPUTS_MAX);
    return count;
}

// ---- stacks

// A frame's rule, such that it leads to the next one from the state that the walk is in; and what it reads.
static void make_frame(unsigned frame, const struct runtime_walk *walk, bool is_last)
{
    const struct arch *arch = &arch_native_arch;
    struct qut_rule *rule = &rules[frame];
    memset(rule, 0, sizeof *rule);
    rule->kind = QUT_RULE_FRAME;
    rule->dex_pc_reg = QUT_NO_REGISTER;
    rule->cfa.reg = arch->sp_reg;
    is_made[frame] = chance(4) == 0;
    const unsigned words = 3 + SLOTS + chance(4);
    uintptr_t cfa = (uintptr_t)walk->regs.sp + words * (uintptr_t)WORD;
    rule->cfa.offset_bytes = (int32_t)words * WORD;
    unsigned base = chance(2 * SLOTS); // by a register that points into the stack
    if (base < arch->tracked_count && base < SLOTS && walk->regs.valid & bit(base) &&
        walk->regs.tracked[base] > walk->regs.sp && walk->regs.tracked[base] < walk->regs.sp + 8u * WORD) {
        rule->cfa.reg = arch->tracked[base];
        rule->cfa.offset_bytes = (2 + SLOTS) * WORD;
        cfa = (uintptr_t)walk->regs.tracked[base] + (2 + SLOTS) * (uintptr_t)WORD;
    }
    rule->ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -WORD};
    if (is_last)
        rule->ra.how = QUT_REG_UNDEFINED;
    uintptr_t *end = (uintptr_t *)cfa;
    if (!is_last)
        end[-1] = pc_of(frame + 1);
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        const unsigned how = slot < SLOTS ? chance(4) : 0;
        rule->tracked[slot].how = how == 3 ? QUT_REG_UNDEFINED : how == 2 ? QUT_REG_SAME : QUT_REG_AT_CFA;
        if (slot >= SLOTS)
            rule->tracked[slot].how = QUT_REG_SAME;
        rule->tracked[slot].offset_bytes = rule->tracked[slot].how == QUT_REG_AT_CFA ? -(int32_t)(slot + 2) * WORD : 0;
        if (rule->tracked[slot].how == QUT_REG_AT_CFA && !is_last)
            end[-(int)(slot + 2)] = (uintptr_t)(end + 1 + chance(6));
    }
    const unsigned interpreter = chance(4 * SLOTS);
    if (interpreter < SLOTS && interpreter < arch->tracked_count && rule->tracked[interpreter].how != QUT_REG_SAME)
        rule->dex_pc_reg = arch->tracked[interpreter];
}

static void make_stack(void)
{
    struct runtime_walk walk = walk_at_first();
    memset(stack, 0, sizeof stack);
    const unsigned count = 3 + chance(FRAMES_MAX - 2);
    for (frame_count = 1; frame_count <= count; frame_count++) {
        make_frame(frame_count - 1, &walk, frame_count == count);
        while (leave(&walk) && walk.flags & QUT_FRAME_DEX)
            ;
    }
    frame_count = count;
}

static bool counts_hold = true;

static bool holds(void *context, uintptr_t pc, unsigned proof, uint32_t number)
{
    (void)context;
    (void)pc;
    return proof == RUNTIME_RULE_COUNTED && number == NUMBER && counts_hold;
}

static const struct runtime_trail_state *find(const struct runtime_walk *walk, size_t room)
{
    const struct walk_direct all_of_it = {(uintptr_t)stack, (uintptr_t)(stack + WORDS)};
    return walk_trail_find(&trail, walk, all_of_it, room, holds, NULL);
}

static bool record(void)
{
    uintptr_t pcs[OUTPUTS_MAX];
    struct runtime_walk walk = walk_at_first();
    noted = &trail;
    walk_trail_record(&trail);
    walk_on(&walk, pcs);
    noted = NULL;
    return walk.end.reason == QUT_END_OUTERMOST;
}

// The walk from here on, as it is and by the trail. Whether that led on.
static bool compare(const struct runtime_walk *from)
{
    uintptr_t pcs[OUTPUTS_MAX], followed[OUTPUTS_MAX];
    struct runtime_walk walk = *from, other = *from;
    const struct runtime_trail_state *state = find(from, OUTPUTS_MAX);
    if (!state)
        return false;
    const unsigned count = walk_on(&walk, pcs);
    const size_t more = walk_trail_follow(&trail, state, &other, followed);
    CHECK(more + 1 == count && memcmp(followed, pcs + 1, more * sizeof *pcs) == 0, "%zu of %u frames", more + 1, count);
    CHECK(walk.end.reason == QUT_END_OUTERMOST && other.end.reason == QUT_END_OUTERMOST && walk.index == other.index,
          "ended by %u as frame %u of %u", walk.end.reason, other.index, walk.index);
    CHECK(more == 0 || !find(from, more - 1), "there is no room for all of them");
    return true;
}

static void spoil_something(struct runtime_walk *walk)
{
    for (unsigned i = chance(3); i > 0; i--) {
        uintptr_t *word = &stack[chance(WORDS)];
        *word = chance(2) ? *word + WORD : chance(2) ? 0 : stack[chance(WORDS)];
    }
    if (chance(2)) {
        const unsigned slot = chance(SLOTS) % arch_native_arch.tracked_count;
        walk->regs.tracked[slot] += WORD;
        if (chance(2))
            walk->regs.valid &= ~bit(slot);
    }
}

TEST(it_leads_to_where_the_walk_would_come)
{
    unsigned recorded = 0, led = 0, led_nowhere = 0, led_otherwise = 0;
    for (unsigned round = 0; round < 20000; round++) {
        make_stack();
        if (!record())
            continue;
        recorded++;
        struct runtime_walk walk = walk_at_first(), first = walk;
        uintptr_t before[WORDS];
        memcpy(before, stack, sizeof before);
        CHECK(compare(&walk), "nothing has changed");
        spoil_something(&walk);
        bool is_same =
            memcmp(before, stack, sizeof before) == 0 && memcmp(&walk.regs, &first.regs, sizeof first.regs) == 0;
        unsigned frames = 0;
        do {
            if (compare(&walk)) {
                led++;
                led_otherwise += !is_same;
            } else {
                led_nowhere++;
            }
        } while (leave(&walk) && ++frames < OUTPUTS_MAX);
    }
    CHECK(recorded > 10000 && led > 10000 && led_otherwise > 5000 && led_nowhere > 5000,
          "%u recorded, %u led on, %u of them where something had changed, %u nowhere", recorded, led, led_otherwise,
          led_nowhere);
}

TEST(what_rules_rest_on_is_asked)
{
    unsigned asked = 0;
    for (unsigned round = 0; round < 200; round++) {
        make_stack();
        if (!record())
            continue;
        struct runtime_walk walk = walk_at_first();
        bool has_any = false;
        for (unsigned i = 0; i < frame_count; i++)
            has_any |= is_made[i];
        counts_hold = false;
        CHECK((find(&walk, OUTPUTS_MAX) == NULL) == has_any, "one of its frames does, or none");
        counts_hold = true;
        asked += has_any;
    }
    CHECK(asked > 20, "%u times", asked);
}

TEST(what_is_known_of_code_has_changed)
{
    for (unsigned i = 0; i < 3; i++) {
        do
            make_stack();
        while (!record());
        walk_trail_begin(&trail, 7, 1);
        CHECK(record(), "again");
        walk_trail_begin(&trail, 7 + (i == 1), 1 + (i == 2));
        const struct runtime_walk walk = walk_at_first();
        CHECK((find(&walk, OUTPUTS_MAX) != NULL) == (i == 0), "it has %s", i ? "" : "not");
        walk_trail_begin(&trail, 0, 0);
    }
}

TEST(what_cannot_be_compared_begins_it_anew)
{
    do
        make_stack();
    while (!record() || frame_count < 5);
    struct runtime_walk walk = walk_at_first();
    noted = &trail;
    walk_trail_record(&trail);
    unsigned left = 0;
    while (leave(&walk))
        if (++left == 2)
            walk_trail_spoil(&trail);
    noted = NULL;
    walk = walk_at_first();
    CHECK(!find(&walk, OUTPUTS_MAX), "not from within");
    for (unsigned i = 0; i < 2; i++)
        leave(&walk);
    if (walk.classified)
        leave(&walk);
    CHECK(compare(&walk), "from behind it");
    walk.pc_kind = ARCH_PC_EXACT;
    CHECK(!find(&walk, OUTPUTS_MAX), "not where it was interrupted");
    walk.pc_kind = ARCH_PC_RETURN;
    walk.flags = QUT_FRAME_GUESSED;
    CHECK(!find(&walk, OUTPUTS_MAX), "not as a guess");
}

TEST(walks_are_recorded_where_it_is_of_use)
{
    memset(&trail, 0, sizeof trail);
    CHECK(!walk_trail_judge(&trail, 3, 0), "not for three frames");
    CHECK(walk_trail_judge(&trail, 12, 0), "for twelve");
    unsigned asked = 0, walks = 0;
    for (; walks < 5000; walks++)
        asked += walk_trail_judge(&trail, 12, 0);
    CHECK(asked > 10 && asked < 40, "seldom where it is of none: %u times in %u walks", asked, walks);
    CHECK(!walk_trail_judge(&trail, 2, 10), "of use");
    CHECK(!walk_trail_judge(&trail, 12, 0) && walk_trail_judge(&trail, 12, 0), "soon, where it was");
}

int main(void)
{
    RUN(it_leads_to_where_the_walk_would_come);
    RUN(what_rules_rest_on_is_asked);
    RUN(what_is_known_of_code_has_changed);
    RUN(what_cannot_be_compared_begins_it_anew);
    RUN(walks_are_recorded_where_it_is_of_use);
    return tap_finish();
}
