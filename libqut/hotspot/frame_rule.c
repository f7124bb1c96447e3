// SPDX-License-Identifier: Apache-2.0
// The rule of a frame of HotSpot's code, by where its pc stands. Registers but fp are not kept across Java's calls.
#include <string.h>

#include "libqut/hotspot/machine.h"

enum {
    CODE_BYTES_BEFORE = 64, // read around an interrupted pc
    CODE_BYTES_AT = 48,
    STEPS_MAX = 8,         // on the way out
    METHOD_CFA_WORDS = -5, // in an interpreted frame: behind fp, the caller\'s sp, and its own last one
};

// cfa = base + offset; ra = *(cfa - word). Nothing else is known.
static void begin_rule(const struct arch *arch, struct qut_rule *rule, uint8_t base_reg, int32_t offset_bytes)
{
    memset(rule, 0, sizeof *rule);
    rule->kind = QUT_RULE_FRAME;
    rule->dex_pc_reg = QUT_NO_REGISTER;
    rule->cfa = (struct qut_cfa){.how = QUT_CFA_REG, .reg = base_reg, .offset_bytes = offset_bytes};
    rule->ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -arch->word_bytes};
    for (unsigned slot = 0; slot < QUT_TRACKED_MAX; slot++)
        rule->tracked[slot].how = QUT_REG_UNDEFINED;
}

static void set_register(const struct arch *arch, struct qut_rule *rule, uint8_t reg, enum qut_reg_how how,
                         int32_t offset_bytes)
{
    int slot = arch_slot(arch, reg);
    if (slot >= 0)
        rule->tracked[slot] = (struct qut_reg_rule){.how = (uint8_t)how, .offset_bytes = offset_bytes};
}

// ---- the interpreter

// cfa = fp + 2 words; ra = *(cfa - word); fp = *(cfa - 2 words); sp = *(cfa - 3 words), since a method that was called
// by compiled code has had its caller's frame made wider.
static void set_interpreted(const struct hotspot_machine *machine, const struct arch *arch, struct qut_rule *rule)
{
    int32_t word = arch->word_bytes;
    begin_rule(arch, rule, machine->arch->fp_reg, 2 * word);
    rule->sp = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -3 * word};
    set_register(arch, rule, machine->arch->fp_reg, QUT_REG_AT_CFA, -2 * word);
}

static void set_place(const struct hotspot_machine *machine, const struct arch *arch, const struct hotspot_place *place,
                      struct qut_rule *rule)
{
    int32_t word = arch->word_bytes;
    switch ((enum hotspot_shape)place->shape) {
    case HOTSPOT_RA_ON_TOP: // cfa = sp + word; ra = *sp
        begin_rule(arch, rule, arch->sp_reg, word);
        set_register(arch, rule, machine->arch->fp_reg, QUT_REG_SAME, 0);
        break;
    case HOTSPOT_RA_IN_REGISTER:
        begin_rule(arch, rule, arch->sp_reg, 0);
        rule->ra = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = place->ra_reg};
        set_register(arch, rule, machine->arch->fp_reg, QUT_REG_SAME, 0);
        break;
    case HOTSPOT_FP_ON_TOP: // cfa = sp + 2 words; ra = *(sp + word); fp = *sp
        begin_rule(arch, rule, arch->sp_reg, 2 * word);
        set_register(arch, rule, machine->arch->fp_reg, QUT_REG_AT_CFA, -2 * word);
        break;
    case HOTSPOT_FRAME_WITHOUT_SP: set_interpreted(machine, arch, rule); break;
    }
    rule->sp = (struct qut_reg_rule){.how = QUT_REG_IN_REG, .reg = place->sp_reg};
}

// ---- compiled code

// cfa = sp + size; ra = *(cfa - word); fp = *(cfa - 2 words)
static void set_sized(const struct hotspot_machine *machine, const struct arch *arch, int32_t frame_bytes,
                      struct qut_rule *rule)
{
    begin_rule(arch, rule, arch->sp_reg, frame_bytes);
    set_register(arch, rule, machine->arch->fp_reg, QUT_REG_AT_CFA, -2 * arch->word_bytes);
}

// On the way out from here on? Nothing but what a method ends with lies before its return.
static bool leaves_by(const struct hotspot_machine *machine, const struct arch *arch, const uint8_t *code, size_t count,
                      struct qut_rule *rule)
{
    int32_t depth_bytes = 0, fp_at_bytes = -1;
    for (unsigned i = 0; i < STEPS_MAX; i++) {
        const struct hotspot_step *step = hotspot_step_at(machine->arch, code, count);
        if (!step)
            return false;
        switch ((enum hotspot_effect)step->effect) {
        case HOTSPOT_NOTHING: break;
        case HOTSPOT_SHRINKS: depth_bytes += (int32_t)(hotspot_step_immediate(step, code) & INT32_MAX); break;
        case HOTSPOT_POPS_FP:
            fp_at_bytes = depth_bytes;
            depth_bytes += arch->word_bytes;
            break;
        case HOTSPOT_JUMPS: // out of a frame that is gone: a method that threw does so
            if (fp_at_bytes < 0)
                return false;
            __attribute__((fallthrough));
        case HOTSPOT_RETURNS: // cfa = sp + depth + word; ra = *(cfa - word)
            begin_rule(arch, rule, arch->sp_reg, depth_bytes + arch->word_bytes);
            set_register(arch, rule, machine->arch->fp_reg, fp_at_bytes < 0 ? QUT_REG_SAME : QUT_REG_AT_CFA,
                         fp_at_bytes < 0 ? 0 : fp_at_bytes - depth_bytes - arch->word_bytes);
            return true;
        default: return false;
        }
        code += step->size_bytes;
        count -= step->size_bytes;
    }
    return false;
}

// Before the blob's frame counts as complete it may stand already: code from 20 on looks there whether it may be
// entered. The instruction that made it is known by its size, which with ra, and fp if that was pushed, is the frame's.
static bool has_grown(const struct hotspot_machine *machine, const struct arch *arch, const struct hotspot_blob *blob,
                      const uint8_t *pc_bytes, size_t before)
{
    for (size_t back = 0; back < before; back++) {
        const uint8_t *end = pc_bytes - back;
        const struct hotspot_step *step = hotspot_growth_before(machine->arch, end, before - back);
        if (!step)
            continue;
        uint32_t rest = (uint32_t)blob->frame_bytes - hotspot_step_immediate(step, end - step->size_bytes);
        if (rest == arch->word_bytes || rest == 2u * arch->word_bytes)
            return true;
    }
    return false;
}

static void set_entering(const struct hotspot_machine *machine, const struct arch *arch,
                         const struct hotspot_blob *blob, const uint8_t *pc_bytes, size_t before, size_t at,
                         struct qut_rule *rule)
{
    if (has_grown(machine, arch, blob, pc_bytes, before)) {
        const struct hotspot_step *next = hotspot_step_at(machine->arch, pc_bytes, at);
        set_sized(machine, arch, blob->frame_bytes, rule);
        if (next && next->effect == HOTSPOT_STORES_FP)
            set_register(arch, rule, machine->arch->fp_reg, QUT_REG_SAME, 0);
        return;
    }
    // cfa = sp + word, or behind push fp: cfa = sp + 2 words
    const struct hotspot_step *done = hotspot_step_before(machine->arch, pc_bytes, before);
    bool pushed = done && done->effect == HOTSPOT_PUSHES_FP;
    begin_rule(arch, rule, arch->sp_reg, (pushed ? 2 : 1) * arch->word_bytes);
    set_register(arch, rule, machine->arch->fp_reg, pushed ? QUT_REG_AT_CFA : QUT_REG_SAME,
                 pushed ? -2 * arch->word_bytes : 0);
}

static bool interrupted_rule(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                             const struct hotspot_blob *blob, uint64_t pc, struct qut_rule *rule)
{
    uint8_t code[CODE_BYTES_BEFORE + CODE_BYTES_AT];
    uint64_t begun = pc - blob->code_begin;
    size_t before = begun < CODE_BYTES_BEFORE ? (size_t)begun : CODE_BYTES_BEFORE;
    size_t got = memory->read(memory->context, pc - before, code, before + CODE_BYTES_AT);
    if (got < before)
        return false;
    if (leaves_by(machine, memory->arch, code + before, got - before, rule))
        return true;
    if (blob->frame_complete_bytes >= 0 && begun < (uint32_t)blob->frame_complete_bytes) {
        set_entering(machine, memory->arch, blob, code + before, before, got - before, rule);
        return true;
    }
    set_sized(machine, memory->arch, blob->frame_bytes, rule);
    rule->flags |= QUT_RULE_BODY_ONLY;
    return true;
}

int32_t hotspot_frame_bytes(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t ra)
{
    struct hotspot_blob blob;
    uint64_t lookup_pc = arch_lookup_pc(ra, ARCH_PC_RETURN);
    if (ra == machine->call_stub_return || hotspot_is_interpreter(machine, lookup_pc) ||
        !hotspot_blob_at(machine, memory, lookup_pc, &blob))
        return 0;
    return blob.frame_bytes;
}

bool hotspot_frame_rule(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                        enum arch_pc_kind kind, struct qut_rule *rule, struct arch_interpreted *interpreted)
{
    const struct arch *arch = memory->arch;
    *interpreted = (struct arch_interpreted){0};
    uint64_t lookup_pc = arch_lookup_pc(pc, kind);
    if (kind == ARCH_PC_RETURN && pc == machine->call_stub_return) {
        // cfa = fp + 2 words. What C++ expects to be kept lies in the stub's frame.
        begin_rule(arch, rule, machine->arch->fp_reg, 2 * arch->word_bytes);
        set_register(arch, rule, machine->arch->fp_reg, QUT_REG_AT_CFA, -2 * arch->word_bytes);
        for (unsigned i = 0; i < machine->arch->call_stub_saved_count; i++)
            set_register(arch, rule, machine->arch->call_stub_saved[i].reg, QUT_REG_AT_CFA,
                         machine->arch->call_stub_saved[i].words_from_cfa * arch->word_bytes);
        return true;
    }
    if (hotspot_is_interpreter(machine, lookup_pc)) {
        const struct hotspot_place *place = kind == ARCH_PC_EXACT ? hotspot_place_at(machine, pc) : NULL;
        if (place)
            set_place(machine, arch, place, rule);
        else
            set_interpreted(machine, arch, rule);
        if (!place)
            *interpreted = (struct arch_interpreted){.method_cfa_bytes = (int8_t)(METHOD_CFA_WORDS * arch->word_bytes),
                                                     .bytecode_cfa_bytes =
                                                         (int8_t)(machine->bytecode_cfa_words * arch->word_bytes),
                                                     .bytecode_reg = machine->arch->bytecode_reg};
        return true;
    }
    struct hotspot_blob blob;
    if (!hotspot_blob_at(machine, memory, lookup_pc, &blob) || blob.frame_bytes == 0)
        return false;
    if (kind == ARCH_PC_EXACT)
        return interrupted_rule(machine, memory, &blob, pc, rule);
    set_sized(machine, arch, blob.frame_bytes, rule);
    return true;
}
