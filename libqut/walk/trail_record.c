// SPDX-License-Identifier: Apache-2.0
// How a trail is made: a walk by the slow way alone, of which every word that it reads is kept, and every answer that
// it gets. What depends on something else begins the trail anew, further out: it ends at the root in any case.
//
// A register counts at a frame only if the rest of the way asks for it before it is read anew. So when the walk has
// come to its end, that is found out from there inwards, and words that hold other registers are left out.
#include "libqut/modules/modules.h"
#include "libqut/runtime/walk_inline.h"
#include "libqut/walk/known_code.h"
#include "libqut/walk/trail.h"

enum { ALL_SLOTS = 0xff, ANY_SLOT = -1, LEFT_OUT = -2, WORD = (int)sizeof(uintptr_t) };

static void forget(struct runtime_trail *trail)
{
    trail->frame_count = trail->word_count = trail->proof_count = 0;
    trail->needs_registers = false;
}

void walk_trail_record(struct runtime_trail *trail)
{
    forget(trail);
    trail->step = (struct runtime_trail_step){0};
}

void walk_trail_at(struct runtime_trail *trail, const struct runtime_walk *walk)
{
    const struct arch *arch = &arch_native_arch;
    if (trail->step.is_spoiled || trail->frame_count == RUNTIME_TRAIL_FRAMES_MAX)
        forget(trail);
    const unsigned at = trail->frame_count;
    struct runtime_trail_state *state = &trail->states[at];
    trail->step = (struct runtime_trail_step){.pc = (uintptr_t)runtime_plain_pc(arch, walk->regs.pc)};
    const uintptr_t sp = (uintptr_t)walk->regs.sp;
    if (at == 0)
        trail->base = sp;
    const bool is_return = walk->pc_kind == ARCH_PC_RETURN && runtime_knows_sp(arch, walk);
    trail->step.is_spoiled = !is_return || sp < trail->base || sp - trail->base > UINT32_MAX;
    trail->sp_bytes[at] = (uint32_t)(sp - trail->base);
    state->pc = walk->classified ? 0 : (uintptr_t)walk->regs.pc;
    state->flags = walk->flags;
    state->known = 0;
    state->first_word = trail->word_count;
    state->first_proof = trail->proof_count;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        state->tracked[slot] = (uintptr_t)walk->regs.tracked[slot];
        state->known |= (uint8_t)((walk->regs.valid >> arch->tracked[slot] & 1) << slot);
    }
}

void walk_trail_reads(struct runtime_trail *trail, uintptr_t address, uintptr_t value)
{
    const uintptr_t bytes = address - trail->base;
    if (trail->word_count == RUNTIME_TRAIL_WORDS_MAX || bytes > UINT32_MAX ||
        bytes < trail->sp_bytes[trail->frame_count]) {
        walk_trail_spoil(trail);
        return;
    }
    trail->word_slots[trail->word_count] = ANY_SLOT;
    trail->word_bytes[trail->word_count] = (uint32_t)bytes;
    trail->words[trail->word_count++] = value;
}

void walk_trail_rests_on(struct runtime_trail *trail, uintptr_t pc, unsigned proof, uint32_t number)
{
    if (proof == RUNTIME_RULE_LISTED)
        return;
    if (trail->proof_count == RUNTIME_TRAIL_PROOFS_MAX || number == 0) {
        walk_trail_spoil(trail);
        return;
    }
    trail->proofs[trail->proof_count++] =
        (struct runtime_trail_proof){.pc = pc, .number = number, .proof = (uint8_t)proof};
}

// ---- a step

static bool is_plain_register(const struct qut_reg_rule *rule)
{
    return rule->how == QUT_REG_SAME || rule->how == QUT_REG_UNDEFINED || rule->how == QUT_REG_AT_CFA;
}

// cfa = base + k;  ra = *(cfa + r);  sp = cfa;  each register: as it was, *(cfa + s), or unknown
static bool is_plain(const struct qut_rule *rule)
{
    const struct arch *arch = &arch_native_arch;
    bool is = rule->kind == QUT_RULE_FRAME && !(rule->flags & QUT_RULE_SIGNAL) && rule->cfa.how == QUT_CFA_REG &&
              (rule->cfa.reg == arch->sp_reg || arch_slot(arch, rule->cfa.reg) >= 0) && rule->sp.how == QUT_REG_SAME &&
              rule->ra.how == QUT_REG_AT_CFA;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++)
        is = is && is_plain_register(&rule->tracked[slot]);
    return is;
}

static uint8_t slot_bit(unsigned reg)
{
    int slot = arch_slot(&arch_native_arch, reg);
    return slot >= 0 ? (uint8_t)(1u << slot) : 0;
}

static bool ends_here(const struct qut_rule *rule)
{
    return rule->kind == QUT_RULE_FRAME && rule->ra.how == QUT_REG_UNDEFINED && rule->cfa.how == QUT_CFA_REG;
}

void walk_trail_classified(struct runtime_trail *trail, const struct runtime_walk *walk, uintptr_t pc)
{
    const struct arch *arch = &arch_native_arch;
    const struct qut_rule *rule = &walk->rule;
    struct runtime_trail_step *step = &trail->step;
    step->leave_word = trail->word_count;
    step->used = ALL_SLOTS;
    step->passed = 0;
    // It stood in a thunk, or in code that nobody describes, which may be other code next time.
    if ((uintptr_t)runtime_walk_pc(arch, walk) != pc ||
        (walk->end.reason == QUT_END_NO_MODULE && !walk_is_known_call(pc)))
        walk_trail_spoil(trail);
    if (walk->flags & QUT_FRAME_DEX) {
        step->used = 0;
        step->passed = ALL_SLOTS;
    } else if (walk->end.reason != QUT_END_NOT) {
        // By a guess, which goes by fp and gives nothing else.
        if (!(walk->flags & QUT_FRAME_MANAGED))
            step->used = 1;
    } else if (!walk->trampoline && walk->interpreted.method_cfa_bytes == 0 && ends_here(rule)) {
        step->used = 0;
    } else if (!walk->trampoline && walk->interpreted.method_cfa_bytes == 0 && is_plain(rule)) {
        step->is_plain = true;
        step->used = slot_bit(rule->cfa.reg);
        if (runtime_keeps_dex_pc(arch, walk)) {
            step->used |= slot_bit(rule->dex_pc_reg);
            trail->needs_registers = true;
        }
        for (unsigned slot = 0; slot < arch->tracked_count; slot++)
            step->passed |= (uint8_t)((rule->tracked[slot].how == QUT_REG_SAME) << slot);
    }
}

// Which registers the words are that were read by the rule.
static void name_words(struct runtime_trail *trail, const struct runtime_walk *walk)
{
    const uintptr_t cfa_bytes = (uintptr_t)walk->regs.sp - trail->base;
    for (unsigned i = trail->step.leave_word; i < trail->word_count; i++) {
        const uint32_t ra_bytes = (uint32_t)(cfa_bytes + (uintptr_t)(intptr_t)walk->rule.ra.offset_bytes);
        for (unsigned slot = 0; slot < arch_native_arch.tracked_count; slot++) {
            const struct qut_reg_rule *rule = &walk->rule.tracked[slot];
            const uint32_t bytes = (uint32_t)(cfa_bytes + (uintptr_t)(intptr_t)rule->offset_bytes);
            if (rule->how == QUT_REG_AT_CFA && bytes == trail->word_bytes[i] && bytes != ra_bytes)
                trail->word_slots[i] = (int8_t)slot;
        }
        if (trail->word_bytes[i] == ra_bytes && arch_native_strip(trail->words[i]) != walk->regs.pc)
            walk_trail_spoil(trail); // that was not where it leads
    }
}

// Compiled code of a virtual machine is asked for by each walk, if a link can say its frame (modules_machine_link).
static void ask_machine(struct runtime_trail *trail, const struct runtime_walk *walk)
{
    const struct qut_rule *rule = &walk->rule;
    const struct qut_reg_rule *fp = &rule->tracked[ARCH_NATIVE_FP_SLOT];
    const uintptr_t pc = trail->step.pc;
    bool is_plain = trail->step.is_plain && trail->step.machine_count == 1;
    if (is_plain && modules_machine_holds_by_fp(pc)) // as long as the machine is the one that is known
        return;
    bool is_link = is_plain && rule->cfa.reg == arch_native_arch.sp_reg && rule->cfa.offset_bytes > 0 &&
                   rule->ra.offset_bytes == -WORD && fp->how == QUT_REG_AT_CFA && fp->offset_bytes == -2 * WORD;
    if (is_link && modules_machine_holds(pc, (uintptr_t)rule->cfa.offset_bytes))
        walk_trail_rests_on(trail, pc, RUNTIME_RULE_OF_MACHINE, (uint32_t)rule->cfa.offset_bytes);
    else
        walk_trail_spoil(trail);
}

static void give_out(struct runtime_trail *trail, uintptr_t lookup_pc, unsigned flags)
{
    const unsigned at = trail->frame_count++;
    trail->pcs[at] = lookup_pc;
    trail->flags[at] = (uint8_t)flags;
    trail->used[at] = trail->step.used;
    trail->passed[at] = trail->step.passed;
}

void walk_trail_left(struct runtime_trail *trail, const struct runtime_walk *walk, uintptr_t lookup_pc, unsigned flags)
{
    struct runtime_trail_step *step = &trail->step;
    const bool is_guess = walk->flags & QUT_FRAME_GUESSED;
    if (step->is_plain)
        name_words(trail, walk);
    else if (step->used == 1 && (!is_guess || walk->regs.valid != WALK_FAST_REGISTERS))
        step->used = ALL_SLOTS;
    if (step->machine_count)
        ask_machine(trail, walk);
    if (walk->pc_kind != ARCH_PC_RETURN || flags & QUT_FRAME_SIGNAL)
        walk_trail_spoil(trail);
    give_out(trail, lookup_pc, flags);
}

// ---- the end

// From the root inwards: which registers count, and how far it is to the next guess.
static void find_needed(struct runtime_trail *trail)
{
    unsigned needed = 0, to_guess = RUNTIME_TRAIL_NO_GUESS, word_end = trail->word_count;
    for (unsigned i = trail->frame_count; i-- > 0;) {
        struct runtime_trail_state *state = &trail->states[i];
        for (unsigned w = state->first_word; w < word_end; w++)
            if (trail->word_slots[w] >= 0 && !(needed >> trail->word_slots[w] & 1))
                trail->word_slots[w] = LEFT_OUT;
        word_end = state->first_word;
        needed = trail->used[i] | (needed & trail->passed[i]);
        state->needed = (uint8_t)needed;
        if (trail->flags[i] & QUT_FRAME_GUESSED)
            to_guess = 0;
        else if (to_guess != RUNTIME_TRAIL_NO_GUESS)
            to_guess++;
        state->frames_to_guess = (uint8_t)to_guess;
    }
}

static void leave_words_out(struct runtime_trail *trail)
{
    unsigned count = 0, from = 0;
    trail->high_bytes = 0;
    for (unsigned i = 0; i < trail->frame_count; i++) {
        const unsigned end = i + 1 < trail->frame_count ? trail->states[i + 1].first_word : trail->word_count;
        trail->states[i].first_word = (uint16_t)count;
        for (; from < end; from++) {
            if (trail->word_slots[from] == LEFT_OUT)
                continue;
            if (trail->word_bytes[from] > trail->high_bytes)
                trail->high_bytes = trail->word_bytes[from];
            trail->word_bytes[count] = trail->word_bytes[from];
            trail->words[count++] = trail->words[from];
        }
    }
    trail->word_count = (uint16_t)count;
}

static bool is_same_proof(const struct runtime_trail_proof *a, const struct runtime_trail_proof *b)
{
    bool is_of_all = a->proof == RUNTIME_RULE_UNLISTED || a->proof == RUNTIME_RULE_COUNTED;
    return a->proof == b->proof && a->number == b->number && (is_of_all || a->pc == b->pc);
}

static bool is_asked_further_out(const struct runtime_trail *trail, unsigned at)
{
    for (unsigned i = at + 1; i < trail->proof_count; i++)
        if (is_same_proof(&trail->proofs[at], &trail->proofs[i]))
            return true;
    return false;
}

// Each once, as far out as can be: what is asked for a frame is all that stands there and behind.
static void leave_proofs_out(struct runtime_trail *trail)
{
    unsigned count = 0, from = 0;
    for (unsigned i = 0; i < trail->frame_count; i++) {
        const unsigned end = i + 1 < trail->frame_count ? trail->states[i + 1].first_proof : trail->proof_count;
        trail->states[i].first_proof = (uint16_t)count;
        for (; from < end; from++)
            if (!is_asked_further_out(trail, from))
                trail->proofs[count++] = trail->proofs[from];
    }
    trail->proof_count = (uint16_t)count;
}

void walk_trail_ended(struct runtime_trail *trail, const struct runtime_walk *walk, uintptr_t lookup_pc, unsigned flags)
{
    if (walk->end.reason != QUT_END_OUTERMOST || trail->step.is_spoiled || trail->step.machine_count) {
        forget(trail);
        return;
    }
    give_out(trail, lookup_pc, flags);
    trail->end_pc = (uintptr_t)walk->end.pc;
    find_needed(trail);
    leave_words_out(trail);
    leave_proofs_out(trail);
}
