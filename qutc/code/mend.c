// SPDX-License-Identifier: Apache-2.0
#include "qutc/code/mend.h"

#include <stdlib.h>

#include "qutc/code/compare.h"

enum {
    FUNCTION_MAX = 8192, // bytes of a function that is looked through for where it leaves
};

struct mending {
    const struct input_image *image;
    const struct code_arch *code;
    uint64_t text_start;
    const struct cfi_row_list *stated;
    struct cfi_rule_set *rules;
    struct code_mend_counts *counts;
    BASE_VECTOR(struct code_span) spans;
    struct base_error *error;
};

static bool add_span(struct mending *m, uint32_t pc, uint32_t end, uint32_t rule_id)
{
    struct code_span *span = rule_id == CFI_RULE_NO_MEMORY ? NULL : BASE_ADD(&m->spans);
    if (span)
        *span = (struct code_span){.pc = pc, .end = end, .rule_id = rule_id};
    return span != NULL;
}

static const struct qut_rule *rule_of_row(const struct mending *m, size_t row)
{
    return &m->rules->rules[m->stated->rows[row].rule_id];
}

// ---- what the code proves

// The rule that is stated, as one that the code contradicts.
static uint32_t doubtful(struct mending *m, uint32_t stated)
{
    struct qut_rule rule = m->rules->rules[stated];
    rule.origin = QUT_RULE_DOUBTFUL;
    return cfi_rule_set_intern(m->rules, &rule);
}

// A rule for a function's body stays in one piece: where its rows begin, functions do. What the code says of all of the
// function comes in its place later (fill.h); else it is doubtful.
static bool doubt_body(struct mending *m, const struct code_difference *difference)
{
    size_t row = cfi_row_list_index(m->stated, difference->pc);
    const struct cfi_row *rows = m->stated->rows;
    return row + 1 >= m->stated->count ||
           add_span(m, rows[row].pc_rel, rows[row + 1].pc_rel, doubtful(m, difference->stated));
}

static bool tell(void *context, const struct code_compared *compared)
{
    struct mending *m = context;
    const struct code_function *function = compared->function;
    m->counts->functions++;
    bool good = true;
    for (size_t i = 0; i < compared->count && good; i++) {
        const struct code_difference *difference = &compared->differences[i];
        if (function->end && (difference->pc < function->pc || difference->pc >= function->end))
            continue;
        if (m->rules->rules[difference->stated].flags & QUT_RULE_BODY_ONLY) {
            good = doubt_body(m, difference);
            continue;
        }
        // A function that nothing stated fits may be entered otherwise than others.
        bool is_proven = compared->agree > 0 && difference->mended != CFI_RULE_HOLE_ID;
        good = add_span(m, difference->pc, difference->end,
                        is_proven ? difference->mended : doubtful(m, difference->stated));
    }
    return good;
}

// ---- eh_return

// gcc's epilogue of functions that leave for a frame that catches: the return address is in a register, and popped. No
// other code has such a row.
static bool is_exchange(const struct mending *m, const struct qut_rule *rule)
{
    return rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG && rule->cfa.reg == m->image->arch->sp_reg &&
           rule->cfa.offset_bytes == 0 && rule->ra.how == QUT_REG_IN_REG;
}

static bool is_entry(const struct mending *m, const struct qut_rule *rule)
{
    const struct arch *arch = m->image->arch;
    bool good = rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG && rule->cfa.reg == arch->sp_reg &&
                rule->cfa.offset_bytes == (int32_t)arch->word_bytes;
    for (unsigned i = 0; i < arch->tracked_count && good; i++)
        good = rule->tracked[i].how == QUT_REG_SAME;
    return good;
}

static void read_at(const struct mending *m, uint32_t pc, struct code_instruction *in)
{
    m->code->read(input_image_some(m->image, m->text_start + pc, 16), m->text_start + pc, 0, in);
}

// Where the last but one of the calls from pc up to `leave` is, which must be reached; UINT32_MAX: nowhere.
static uint32_t last_but_one_call(const struct mending *m, uint32_t pc, uint32_t leave)
{
    uint32_t calls[2] = {UINT32_MAX, UINT32_MAX};
    struct code_instruction in;
    for (; pc < leave; pc += in.size_bytes) {
        read_at(m, pc, &in);
        if (in.size_bytes == 0)
            return UINT32_MAX;
        if (in.flow == CODE_CALL) {
            calls[0] = calls[1];
            calls[1] = pc;
        }
    }
    return pc == leave ? calls[0] : UINT32_MAX;
}

// libgcc calls what writes the catching frame's registers over those that it has saved itself, then what debuggers stop
// in, then leaves. From the first call on its rows say of neither frame what is so.
static int refuse_exchange(struct mending *m, size_t row)
{
    uint32_t leave = m->stated->rows[row].pc_rel, from = UINT32_MAX;
    struct code_instruction in;
    read_at(m, leave, &in);
    if (in.flow != CODE_JUMP || in.through != rule_of_row(m, row)->ra.reg)
        return 0;
    // Its function begins at the last row like a function's first that two calls stand behind.
    for (size_t i = row; i > 0 && leave - m->stated->rows[i - 1].pc_rel < FUNCTION_MAX && from == UINT32_MAX; i--)
        if (is_entry(m, rule_of_row(m, i - 1)))
            from = last_but_one_call(m, m->stated->rows[i - 1].pc_rel, leave);
    if (from == UINT32_MAX)
        return 0;
    const struct qut_rule refused = cfi_rule_refused(QUT_REFUSED_EH_RETURN);
    m->counts->exchanges++;
    return add_span(m, from, leave + in.size_bytes, cfi_rule_set_intern(m->rules, &refused)) ? 0 : -1;
}

static int refuse_exchanges(struct mending *m)
{
    bool has_rule = false;
    for (size_t i = 0; i < m->rules->count && !has_rule; i++)
        has_rule = is_exchange(m, &m->rules->rules[i]);
    for (size_t i = 0; has_rule && i < m->stated->count; i++)
        if (is_exchange(m, rule_of_row(m, i)) && refuse_exchange(m, i) != 0)
            return -1;
    return 0;
}

// ---- rows

// Refusals first: what is refused is not mended.
static int by_pc(const struct mending *m, const struct code_span *a, const struct code_span *b)
{
    if (a->pc != b->pc)
        return a->pc < b->pc ? -1 : 1;
    bool a_refused = m->rules->rules[a->rule_id].kind == QUT_RULE_REFUSED;
    bool b_refused = m->rules->rules[b->rule_id].kind == QUT_RULE_REFUSED;
    return a_refused != b_refused ? (a_refused ? -1 : 1) : 0;
}

static int by_pc_with(const void *a, const void *b, void *context)
{
    return by_pc(context, a, b);
}

static int make_rows(struct mending *m, struct cfi_row_list *rows)
{
    if (m->spans.count == 0)
        return 0;
    qsort_r(m->spans.items, m->spans.count, sizeof *m->spans.items, by_pc_with, m);
    if (cfi_row_list_reserve(rows, 2 * m->spans.count + 1, m->error) != 0)
        return -1;
    uint32_t at = 0; // where the last one ends
    for (size_t i = 0; i < m->spans.count; i++) {
        const struct code_span *span = &m->spans.items[i];
        if (span->pc < at) // refused, or code of two functions
            continue;
        const struct code_span *next = i + 1 < m->spans.count ? &m->spans.items[i + 1] : NULL;
        bool is_disputed = false; // two functions that share it say different things
        for (; next && next->pc == span->pc; next = ++i + 1 < m->spans.count ? &m->spans.items[i + 1] : NULL)
            is_disputed |= next->rule_id != span->rule_id && m->rules->rules[span->rule_id].kind != QUT_RULE_REFUSED;
        uint32_t rule_id = is_disputed ? doubtful(m, cfi_row_list_at(m->stated, span->pc)) : span->rule_id;
        if (rule_id == CFI_RULE_NO_MEMORY)
            return base_fail(m->error, BASE_ERR_NO_MEMORY, "", 0, "rules");
        cfi_row_list_put(rows, span->pc, rule_id);
        cfi_row_list_put(rows, span->end, CFI_RULE_HOLE_ID);
        m->counts->instructions += m->rules->rules[rule_id].origin == QUT_RULE_FROM_CODE;
        m->counts->doubtful += m->rules->rules[rule_id].origin == QUT_RULE_DOUBTFUL;
        at = span->end;
    }
    return 0;
}

int code_mend(const struct input_image *image, uint64_t text_start, uint64_t text_end,
              const struct cfi_row_list *stated, struct cfi_rule_set *rules, bool check, struct cfi_row_list *rows,
              struct code_mend_counts *counts, struct base_error *error)
{
    struct mending m = {.image = image,
                        .code = code_arch(image->arch),
                        .text_start = text_start,
                        .stated = stated,
                        .rules = rules,
                        .counts = counts,
                        .error = error};
    if (!m.code->read || stated->count == 0 || image->oat.present)
        return 0;
    int result = image->arch->ra_in_register ? 0 : refuse_exchanges(&m);
    if (result != 0)
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    const struct code_comparison comparison = {.tell = tell, .context = &m};
    // Where functions take words off their callers' stacks, code that is followed is no judge yet.
    if (result == 0 && check && !m.code->callees_pop)
        result = code_compare(image, text_start, text_end, stated, rules, &comparison, error);
    if (result == 0)
        result = make_rows(&m, rows);
    base_vector_free(&m.spans.vector);
    return result;
}
