// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/whole_walk.h"

enum { PASSED_MAX = 256 };

static bool read_word(void *context, uint64_t address, uint64_t *value)
{
    const struct whole_walks *walks = context;
    return guest_read_word(walks->guest, address, value);
}

static size_t read_code(void *context, uint64_t pc, void *bytes, size_t size)
{
    const struct whole_walks *walks = context;
    return guest_read_bytes(walks->guest, pc, bytes, size);
}

static uint64_t strip(void *context, uint64_t pc)
{
    const struct whole_walks *walks = context;
    return guest_strip(walks->guest, pc);
}

static void find(void *context, uint64_t pc, struct runtime_code *code)
{
    struct whole_walks *walks = context;
    const struct oracle_module *module = modules_find(walks->modules, pc);
    *code = (struct runtime_code){.state = RUNTIME_CODE_NO_MODULE};
    if (!module)
        return;
    code->state = module->file->has_table ? RUNTIME_CODE_READY : RUNTIME_CODE_NO_TABLE;
    code->table = module->file->has_table ? &module->file->table : NULL;
    code->load_bias = module->load_bias;
    code->entry = module->file->entry_vaddr + module->load_bias;
}

// Code that this walk went through, until it was wrong.
struct passed {
    uint64_t pcs[PASSED_MAX];
    uint32_t count;
    bool is_doubtful; // and the table said of one of these rules that the code contradicts it
};

static bool is_doubtful(const struct qut_rule *rule)
{
    return rule->kind == QUT_RULE_FRAME && rule->origin == QUT_RULE_DOUBTFUL;
}

static bool passed_known_mistake(const struct whole_walks *walks, const struct passed *passed)
{
    for (uint32_t i = 0; i < passed->count; i++) {
        const struct oracle_module *module = modules_find(walks->modules, passed->pcs[i]);
        if (module && known_mistake(walks->known, module->file, passed->pcs[i]))
            return true;
    }
    return false;
}

static void note_wrong(struct whole_walks *walks, const struct wrong_walk *wrong, const struct runtime_walk *walk,
                       const struct passed *passed)
{
    if (passed_known_mistake(walks, passed)) {
        walks->wrong_by_known++;
        return;
    }
    if (walk->end.guessed_frame != QUT_NO_GUESS) {
        walks->wrong_but_marked++;
        return;
    }
    if (passed->is_doubtful) {
        walks->wrong_but_doubtful++;
        return;
    }
    if (walks->wrong < WRONG_WALKS_KEPT)
        walks->wrongs[walks->wrong] = *wrong;
    walks->wrong++;
}

void whole_walk(struct whole_walks *walks, const struct arch_frame_regs *regs, const struct shadow *shadow)
{
    static const struct runtime_walk_ops ops = {
        .read = read_word, .read_code = read_code, .find = find, .strip = strip};
    const struct arch *arch = walks->guest->arch;
    struct runtime_walk walk;
    size_t left = shadow->depth;
    struct passed passed = {{regs->pc}, 1, false};
    struct qut_frame frame;
    runtime_walk_begin(arch, &walk, regs, ARCH_PC_EXACT);
    runtime_walk_frame(arch, &ops, walks, &walk, &frame);
    walks->taken++;
    for (uint32_t depth = 1;; depth++, left--) {
        passed.is_doubtful |= is_doubtful(&walk.rule); // that the frame is left by; a step finds the next one's
        if (!runtime_walk_step(arch, &ops, walks, &walk))
            break;
        runtime_walk_frame(arch, &ops, walks, &walk, &frame);
        uint64_t wanted = left ? shadow->frames[left - 1].ra : 0;
        if (frame.pc != wanted) {
            note_wrong(walks, &(struct wrong_walk){regs->pc, depth, passed.pcs[passed.count - 1], wanted, frame.pc},
                       &walk, &passed);
            return;
        }
        walks->frames++;
        if (passed.count < PASSED_MAX)
            passed.pcs[passed.count++] = frame.pc;
    }
    if (left == 0 && walk.end.reason == QUT_END_OUTERMOST) {
        walks->equal++;
        return;
    }
    if (passed_known_mistake(walks, &passed)) {
        walks->wrong_by_known++;
        return;
    }
    if (walk.end.reason == QUT_END_OUTERMOST) { // it says that it is whole
        note_wrong(walks, &(struct wrong_walk){regs->pc, walk.index + 1, walk.end.pc, shadow_top(shadow)->ra, 0}, &walk,
                   &passed);
        return;
    }
    walks->early[walk.end.reason]++;
    walks->early_pc[walk.end.reason] = walk.end.pc;
}
