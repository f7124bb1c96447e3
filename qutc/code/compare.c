// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/compare.h"

#include <stdlib.h>

// An instruction where registers that are stated to be as they were hold something else. That is false where the
// function overwrites them, which is known when it has been walked.
struct gone {
    uint32_t pc, end, stated;
    uint32_t rule; // as stated, but for what differs
    uint64_t regs;
    size_t difference; // of this instruction, in other registers; SIZE_MAX: none
};

struct told { // of one walk
    uint64_t agree, unjudged, unstated;
    size_t first, count; // of the differences that are kept
};

struct comparing {
    struct code_follower follower;
    const struct code_comparison *comparison;
    const struct cfi_row_list *rows;
    size_t row; // the last one that was asked for
    struct told now;
    BASE_VECTOR(struct code_difference) differences; // of the walk that is made
    BASE_VECTOR(struct gone) gone;
    BASE_VECTOR(struct told) kept;
    BASE_VECTOR(struct code_difference) kept_differences;
    // The last judgement: it is the same while neither the state nor what is stated changes.
    uint32_t version, stated;
    struct code_difference last;
    enum code_verdict verdict;
    uint64_t last_gone;
    bool no_memory;
};

static uint32_t stated_at(struct comparing *c, uint32_t pc)
{
    const struct cfi_row_list *rows = c->rows;
    bool is_here = c->row < rows->count && rows->rows[c->row].pc_rel <= pc &&
                   (c->row + 1 == rows->count || pc < rows->rows[c->row + 1].pc_rel);
    if (!is_here)
        c->row = cfi_row_list_index(rows, pc);
    return c->row == SIZE_MAX ? CFI_RULE_HOLE_ID : rows->rows[c->row].rule_id;
}

// What differs is taken of the code, one register after another; all else stays as it is stated. False: that does not
// end.
static bool mend(const struct code_machine *machine, const struct code_state *state, const struct qut_rule *followed,
                 struct qut_rule *rule)
{
    const struct arch *arch = machine->arch;
    for (unsigned tries = 0; tries < QUT_TRACKED_MAX + 2; tries++) {
        struct code_judgement judgement = code_judge_rule(machine, state, rule);
        if (judgement.verdict != CODE_DIFFERS)
            return true;
        if (judgement.reg == QUT_NO_REGISTER) { // what is said in terms of that CFA goes with it
            *rule = *followed;
            return true;
        }
        if (judgement.reg == arch->ra_reg) {
            enum { SIGNED = QUT_RULE_RA_SIGNED | QUT_RULE_RA_KEY_B };
            rule->ra = followed->ra;
            rule->flags = (uint8_t)((rule->flags & ~SIGNED) | (followed->flags & SIGNED));
        }
        for (unsigned i = 0; i < arch->tracked_count; i++)
            if (judgement.reg == arch->tracked[i])
                rule->tracked[i] = followed->tracked[i];
    }
    return false;
}

static void judge(struct comparing *c, uint32_t stated, const struct code_machine *machine,
                  const struct code_state *state)
{
    const struct qut_rule rule = c->follower.rules->rules[stated];
    struct code_judgement judgement = code_judge_rule(machine, state, &rule);
    c->version = state->version;
    c->stated = stated;
    c->verdict = judgement.verdict;
    c->last_gone = c->comparison->frames_only ? 0 : judgement.gone;
    uint8_t ra_reg = machine->arch->ra_reg;
    if (c->comparison->frames_only && judgement.reg != QUT_NO_REGISTER && judgement.reg != ra_reg)
        judgement.verdict = c->verdict = CODE_AGREES;
    if (judgement.verdict != CODE_DIFFERS)
        return;
    c->last_gone = 0;
    c->last = (struct code_difference){.stated = stated, .reg = judgement.reg};
    struct qut_rule followed, mended = rule;
    if (!code_rule_of(machine, state, &followed))
        return;
    c->last.followed = cfi_rule_set_intern(c->follower.rules, &followed);
    if (mend(machine, state, &followed, &mended)) {
        mended.origin = QUT_RULE_FROM_CODE;
        c->last.mended = cfi_rule_set_intern(c->follower.rules, &mended);
        c->last_gone = c->comparison->frames_only ? 0 : code_judge_rule(machine, state, &mended).gone;
    }
    c->no_memory |= c->last.followed == CFI_RULE_NO_MEMORY || c->last.mended == CFI_RULE_NO_MEMORY;
}

// Before the difference that is found there, if one is.
static void note_gone(struct comparing *c, uint32_t pc, const struct code_instruction *in, uint32_t stated)
{
    bool differs = c->verdict == CODE_DIFFERS;
    struct gone *place = BASE_ADD(&c->gone);
    if (place)
        *place = (struct gone){.pc = pc,
                               .end = pc + in->size_bytes,
                               .stated = stated,
                               .rule = differs ? c->last.mended : stated,
                               .regs = c->last_gone,
                               .difference = differs ? c->differences.count : SIZE_MAX};
    c->no_memory |= !place;
}

static void visit(void *context, uint32_t pc, const struct code_instruction *in, const struct code_machine *machine,
                  const struct code_state *state)
{
    struct comparing *c = context;
    uint32_t stated = stated_at(c, pc);
    const struct qut_rule *rule = &c->follower.rules->rules[stated];
    if (rule->kind != QUT_RULE_FRAME) {
        c->now.unstated++;
        return;
    }
    if (!state) {
        c->now.unjudged++;
        return;
    }
    bool is_body_only = rule->flags & QUT_RULE_BODY_ONLY;
    if (state->version != c->version || stated != c->stated)
        judge(c, stated, machine, state);
    if (c->last_gone && !is_body_only)
        note_gone(c, pc, in, stated);
    if (c->verdict == CODE_AGREES) {
        c->now.agree++;
    } else if (c->verdict == CODE_UNJUDGED) {
        c->now.unjudged++;
    } else if (is_body_only && in->flow != CODE_CALL) { // in a prologue or an epilogue
        c->now.unstated++;
    } else {
        struct code_difference *place = BASE_ADD(&c->differences);
        if (place) {
            *place = c->last;
            place->pc = pc;
            place->end = pc + in->size_bytes;
        }
        c->no_memory |= !place;
    }
}

static void forget(void *context)
{
    struct comparing *c = context;
    c->now = (struct told){0};
    c->differences.count = c->gone.count = 0;
    c->version = 0;
}

// What the walk that was made turned out to overwrite is gone indeed.
static void judge_gone(struct comparing *c, const struct code_walked *walked)
{
    const struct arch *arch = c->follower.arch;
    for (size_t i = 0; i < c->gone.count; i++) {
        const struct gone *gone = &c->gone.items[i];
        uint64_t regs = gone->regs & walked->overwrites;
        if (!regs || gone->rule == CFI_RULE_NO_MEMORY)
            continue;
        struct qut_rule rule = c->follower.rules->rules[gone->rule];
        struct code_difference difference = {.pc = gone->pc, .end = gone->end, .stated = gone->stated};
        for (unsigned k = arch->tracked_count; k-- > 0;)
            if (regs >> arch->tracked[k] & 1) {
                rule.tracked[k] = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
                difference.reg = arch->tracked[k];
            }
        rule.origin = QUT_RULE_FROM_CODE;
        difference.followed = difference.mended = cfi_rule_set_intern(c->follower.rules, &rule);
        c->no_memory |= difference.mended == CFI_RULE_NO_MEMORY;
        if (gone->difference < c->differences.count) {
            c->differences.items[gone->difference].mended = difference.mended;
            continue;
        }
        struct code_difference *place = BASE_ADD(&c->differences);
        if (place)
            *place = difference;
        c->no_memory |= !place;
        c->now.agree--;
    }
    c->gone.count = 0;
}

static bool keep(void *context, const struct code_function *function, const struct code_walked *walked)
{
    struct comparing *c = context;
    struct told *told = BASE_ADD(&c->kept);
    (void)function;
    judge_gone(c, walked);
    if (!told || !BASE_RESERVE(&c->kept_differences, c->differences.count))
        return false;
    *told = c->now;
    told->first = c->kept_differences.count;
    told->count = c->differences.count;
    if (told->count)
        memcpy(&c->kept_differences.items[told->first], c->differences.items,
               told->count * sizeof *c->differences.items);
    c->kept_differences.count += told->count;
    return true;
}

static int by_pc(const void *a, const void *b)
{
    const struct code_difference *x = a, *y = b;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

static void done(void *context, const struct code_function *function, const struct code_walked *walked)
{
    struct comparing *c = context;
    if (!function->kept)
        judge_gone(c, walked);
    const struct told *told = function->kept ? &c->kept.items[function->kept - 1] : &c->now;
    struct code_compared compared = {.function = function, .walked = walked};
    struct code_difference *differences = NULL;
    if (walked->outcome == CODE_FOLLOWED) {
        compared.agree = told->agree;
        compared.unjudged = told->unjudged;
        compared.unstated = told->unstated;
        compared.count = function->kept ? told->count : c->differences.count;
        if (compared.count)
            differences = function->kept ? &c->kept_differences.items[told->first] : c->differences.items;
    }
    if (compared.count)
        qsort(differences, compared.count, sizeof *differences, by_pc);
    compared.differences = differences;
    c->no_memory |= !c->comparison->tell(c->comparison->context, &compared);
}

int code_compare(const struct input_image *image, uint64_t text_start, uint64_t text_end,
                 const struct cfi_row_list *rows, struct cfi_rule_set *rules, const struct code_comparison *comparison,
                 struct base_error *error)
{
    if (!code_arch(image->arch)->read)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "code of %s is not followed", image->arch->name);
    struct comparing c = {.comparison = comparison, .rows = rows};
    if (code_follower_init(&c.follower, image, text_start, text_end, rows, rules, error) != 0)
        return -1;
    c.follower.visit = visit;
    c.follower.forget = forget;
    c.follower.keep = keep;
    c.follower.is_wanted = comparison->is_wanted;
    c.follower.context = &c;
    c.follower.wanted_context = comparison->context;
    int status = code_follower_run(&c.follower, done);
    code_follower_free(&c.follower);
    if (status == 0 && c.no_memory)
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "differences");
    base_vector_free(&c.differences.vector);
    base_vector_free(&c.gone.vector);
    base_vector_free(&c.kept.vector);
    base_vector_free(&c.kept_differences.vector);
    return status;
}
