// SPDX-License-Identifier: Apache-2.0
// What a frame's rule depends on is its pc, whether it was interrupted, and what is known of code. Finding it takes
// some 500 cycles, and ten times as many where the table is far away; Android's runtime has such frames by the dozen.
#include "libqut/walk/known_rules.h"

#include "libqut/os/os.h"
#include "libqut/runtime/walk_inline.h"

enum { WORD = (int)sizeof(uintptr_t), LOWEST_WORDS = -127, UNKNOWN = 1 };

void walk_rules_begin(struct runtime_known_rules *rules, uint32_t modules_epoch, uint32_t made_generation)
{
    if (rules->stamp != 0 && rules->modules_epoch == modules_epoch && rules->made_generation == made_generation)
        return;
    rules->modules_epoch = modules_epoch;
    rules->made_generation = made_generation;
    if (++rules->stamp != 0)
        return;
    for (unsigned i = 0; i < RUNTIME_KNOWN_RULE_COUNT; i++)
        rules->rules[i].pc = 0;
    rules->stamp = 1;
}

// ---- keeping

static bool pack_place(const struct qut_reg_rule *rule, struct runtime_known_rule *to, int8_t *words)
{
    if (rule->offset_bytes % WORD || rule->offset_bytes >= 0 || rule->offset_bytes / WORD < LOWEST_WORDS)
        return false;
    *words = (int8_t)(rule->offset_bytes / WORD);
    if (*words < to->lowest_words)
        to->lowest_words = *words;
    return true;
}

static bool pack_register(const struct qut_reg_rule *rule, struct runtime_known_rule *to, int8_t *words)
{
    *words = rule->how == QUT_REG_SAME ? 0 : UNKNOWN;
    return rule->how == QUT_REG_SAME || rule->how == QUT_REG_UNDEFINED ||
           (rule->how == QUT_REG_AT_CFA && pack_place(rule, to, words));
}

static bool pack(const struct qut_rule *rule, struct runtime_known_rule *to)
{
    const struct arch *arch = &arch_native_arch;
    const struct qut_cfa *cfa = &rule->cfa;
    const int slot = arch_slot(arch, cfa->reg);
    const bool is_by_sp = cfa->reg == arch->sp_reg;
    if (rule->kind != QUT_RULE_FRAME || rule->flags & QUT_RULE_SIGNAL || cfa->how != QUT_CFA_REG ||
        (!is_by_sp && slot < 0) || cfa->offset_bytes <= 0 || cfa->offset_bytes % WORD ||
        cfa->offset_bytes / WORD > UINT16_MAX || rule->sp.how != QUT_REG_SAME || rule->ra.how != QUT_REG_AT_CFA)
        return false;
    to->cfa_words = (uint16_t)(cfa->offset_bytes / WORD);
    to->base_slot = (uint8_t)(is_by_sp ? RUNTIME_KNOWN_RULE_NO_SLOT : slot);
    to->lowest_words = 0;
    bool is_packed = pack_place(&rule->ra, to, &to->ra_words);
    for (unsigned i = 0; i < arch->tracked_count && is_packed; i++)
        is_packed = pack_register(&rule->tracked[i], to, &to->tracked_words[i]);
    return is_packed;
}

// What a machine says of a frame that a guess led to has to be confirmed by the frame's caller.
static bool is_unsure(const struct runtime_walk *walk, unsigned proof)
{
    return proof == RUNTIME_RULE_COUNTED && (walk->flags & QUT_FRAME_GUESSED || walk->rule.flags & QUT_RULE_BODY_ONLY);
}

void walk_rules_keep(struct runtime_known_rules *rules, const struct runtime_walk *walk, uintptr_t pc,
                     const struct walk_rule_source *source)
{
    const struct arch *arch = &arch_native_arch;
    const uint64_t now_at = runtime_plain_pc(arch, walk->regs.pc);
    // In a thunk it is another frame by now. That a rule is a guess would have to be said each time.
    if (!source->is_known || walk->end.reason != QUT_END_NOT || walk->trampoline || (uintptr_t)now_at != pc ||
        source->pc != (uintptr_t)arch_lookup_pc(now_at, walk->pc_kind) || walk->interpreted.method_cfa_bytes ||
        walk->flags & (QUT_FRAME_SIGNAL | QUT_FRAME_DEX) || is_unsure(walk, source->proof) ||
        (walk->flags & QUT_FRAME_GUESSED && walk->pc_kind == ARCH_PC_EXACT))
        return;
    struct runtime_known_rule kept;
    if (!pack(&walk->rule, &kept))
        return;
    kept.pc = pc;
    kept.stamp = rules->stamp;
    kept.proof = source->proof;
    kept.proof_number = source->number;
    kept.pc_kind = walk->pc_kind;
    kept.dex_slot = (uint8_t)(runtime_keeps_dex_pc(arch, walk) ? (unsigned)arch_slot(arch, walk->rule.dex_pc_reg)
                                                               : RUNTIME_KNOWN_RULE_NO_SLOT);
    kept.frame_flags = walk->flags & (uint8_t) ~(QUT_FRAME_GUESSED | QUT_FRAME_INTERRUPTED);
    *runtime_known_rule_place(rules, pc) = kept;
}

// ---- following

static struct runtime_known_rule *find(struct runtime_known_rules *rules, const struct runtime_walk *walk)
{
    uintptr_t pc = (uintptr_t)runtime_plain_pc(&arch_native_arch, walk->regs.pc);
    struct runtime_known_rule *rule = runtime_known_rule_place(rules, pc);
    return rule->pc == pc && rule->pc_kind == walk->pc_kind && rule->stamp == rules->stamp && pc ? rule : NULL;
}

bool walk_rules_are_for(struct runtime_known_rules *rules, const struct runtime_walk *walk)
{
    const struct runtime_known_rule *rule = find(rules, walk);
    return rule && (rule->proof != RUNTIME_RULE_LISTED || rule->dex_slot != RUNTIME_KNOWN_RULE_NO_SLOT);
}

static inline bool is_valid(const struct runtime_walk *walk, unsigned slot)
{
    return walk->regs.valid >> arch_native_arch.tracked[slot] & 1;
}

// Where the frame ends: within the part of the stack that can be read, as is all that it has saved. 0: elsewhere.
static uintptr_t cfa_of(const struct runtime_known_rule *rule, const struct runtime_walk *walk,
                        struct walk_direct direct)
{
    const unsigned slot = rule->base_slot;
    const uintptr_t sp = (uintptr_t)walk->regs.sp;
    if (slot != RUNTIME_KNOWN_RULE_NO_SLOT && !is_valid(walk, slot))
        return 0;
    uintptr_t base = slot == RUNTIME_KNOWN_RULE_NO_SLOT ? sp : (uintptr_t)walk->regs.tracked[slot];
    uintptr_t cfa = base + (uintptr_t)rule->cfa_words * WORD, saved_bytes = (uintptr_t)-rule->lowest_words * WORD;
    bool is_there = cfa > sp && cfa <= direct.high && cfa >= direct.low && cfa - direct.low >= saved_bytes;
    return is_there ? cfa : 0;
}

static inline uintptr_t load(uintptr_t cfa, int8_t words)
{
    return os_load(cfa + (uintptr_t)((intptr_t)words * WORD));
}

// What runtime_enter_caller does, of a frame like this.
static void enter_caller(struct runtime_walk *walk, const struct runtime_known_rule *rule, uintptr_t cfa, uint64_t pc)
{
    const struct arch *arch = &arch_native_arch;
    uint64_t valid = walk->regs.valid;
    walk->dex_pc = rule->dex_slot != RUNTIME_KNOWN_RULE_NO_SLOT ? walk->regs.tracked[rule->dex_slot] : 0;
    for (unsigned slot = 0; slot < arch->tracked_count; slot++) {
        const int8_t words = rule->tracked_words[slot];
        const uint64_t bit = (uint64_t)1 << arch->tracked[slot];
        if (words < 0) {
            walk->regs.tracked[slot] = load(cfa, words);
            valid |= bit;
        } else if (words == UNKNOWN) {
            valid &= ~bit;
        }
    }
    walk->regs.valid = valid;
    walk->regs.pc = pc;
    walk->regs.sp = cfa;
    walk->pc_kind = ARCH_PC_RETURN;
    walk->flags = walk->dex_pc ? QUT_FRAME_DEX : 0;
    walk->classified = walk->dex_pc != 0;
    walk->block_layout = NULL;
    walk->top = NULL;
    walk->index++;
}

enum walk_rule_told walk_rules_follow(struct runtime_known_rules *rules, struct runtime_walk *walk,
                                      struct walk_direct direct,
                                      bool (*holds)(void *context, const struct runtime_known_rule *rule),
                                      void *context, unsigned *flags)
{
    const struct runtime_known_rule *rule;
    if (walk->flags & QUT_FRAME_DEX) { // its interpreter's caller is known
        *flags = walk->flags;
        runtime_leave_dex(walk);
        return WALK_RULE_LEFT;
    }
    if (walk->classified || !runtime_knows_sp(&arch_native_arch, walk) || !(rule = find(rules, walk)) ||
        (rule->proof == RUNTIME_RULE_COUNTED && walk->flags & QUT_FRAME_GUESSED))
        return WALK_RULE_NONE;
    if (rule->dex_slot != RUNTIME_KNOWN_RULE_NO_SLOT && !is_valid(walk, rule->dex_slot))
        return WALK_RULE_LACKS_DEX_PC;
    uintptr_t cfa = cfa_of(rule, walk, direct);
    if (cfa == 0)
        return WALK_RULE_NONE;
    uint64_t pc = arch_native_strip(load(cfa, rule->ra_words));
    // Of 0, an outermost frame's, and of what has to be asked and does not hold, more is to be said.
    if (pc == 0 || (rule->proof != RUNTIME_RULE_LISTED && !holds(context, rule)))
        return WALK_RULE_NONE;
    *flags = walk->flags | rule->frame_flags;
    enter_caller(walk, rule, cfa, pc);
    return WALK_RULE_LEFT;
}
