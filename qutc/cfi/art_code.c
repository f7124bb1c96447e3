// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/art.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "qutc/cfi/oat_code.h"

enum {
    BLOCK_MAX = 256,        // instructions that are looked back at
    FRAME_BYTES_MAX = 4096, // larger ones are none of those
    INSTRUCTION_BYTES_MAX = 15,
};

struct instruction {
    uint32_t pc_rel, size_bytes;
    uint32_t rule_id; // what holds there
    int32_t sp_change_bytes;
};

// Another rule for a part of the rows.
struct mend {
    uint32_t start_rel, end_rel, rule_id;
};

struct mender {
    const struct input_image *image;
    uint64_t text_start;
    struct cfi_rule_set *rules;
    const struct cfi_row_list *rows;
    struct base_error *error;
    BASE_VECTOR(struct mend) mends; // ascending
    // What runs in a line up to where we are.
    struct instruction block[BLOCK_MAX];
    unsigned count;
    uint32_t end_rel; // where it goes on
    uint32_t lost_id; // the rule that holds and no longer counts with the sp there is; CFI_RULE_HOLE_ID: none
};

static bool counts_with_sp(const struct mender *m, const struct qut_rule *rule)
{
    return rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG && rule->cfa.reg == m->image->arch->sp_reg;
}

static bool states(const struct mender *m, uint32_t rule_id, int32_t cfa_bytes)
{
    const struct qut_rule *rule = &m->rules->rules[rule_id];
    return counts_with_sp(m, rule) && rule->cfa.offset_bytes == cfa_bytes;
}

static int add_mend(struct mender *m, const struct instruction *at, const struct qut_rule *rule)
{
    uint32_t rule_id = cfi_rule_set_intern(m->rules, rule);
    struct mend *mend = rule_id == CFI_RULE_NO_MEMORY ? NULL : BASE_ADD(&m->mends);
    if (!mend)
        return base_fail(m->error, BASE_ERR_NO_MEMORY, "", 0, "rules");
    *mend = (struct mend){at->pc_rel, at->pc_rel + at->size_bytes, rule_id};
    return 0;
}

// The block's last instruction is a return.
static int prove_block(struct mender *m)
{
    int32_t word = m->image->arch->word_bytes, cfa_bytes[BLOCK_MAX];
    unsigned first = m->count - 1;
    cfa_bytes[first] = word;
    if (states(m, m->block[first].rule_id, word))
        return 0;
    for (; first > 0; first--) {
        int32_t before = cfa_bytes[first] + m->block[first - 1].sp_change_bytes;
        if (before < word || before > FRAME_BYTES_MAX)
            return 0;
        if (states(m, m->block[first - 1].rule_id, before))
            break;
        cfa_bytes[first - 1] = before;
    }
    for (unsigned i = first; i < m->count; i++) {
        struct qut_rule rule = m->rules->rules[m->block[i].rule_id];
        rule.cfa = (struct qut_cfa){.how = QUT_CFA_REG, .reg = m->image->arch->sp_reg, .offset_bytes = cfa_bytes[i]};
        rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -word};
        if (add_mend(m, &m->block[i], &rule) != 0)
            return -1;
    }
    return 0;
}

static void begin_block(struct mender *m)
{
    m->count = 0;
}

// One instruction, under a rule. 0, or -1: no memory.
static int take(struct mender *m, const struct instruction *at, unsigned effect)
{
    if (m->lost_id != at->rule_id)
        m->lost_id = CFI_RULE_HOLE_ID;
    if (m->lost_id != CFI_RULE_HOLE_ID && effect != ART_RETURN) {
        struct qut_rule refused = cfi_rule_refused(QUT_REFUSED_STACK_SWITCH);
        if (add_mend(m, at, &refused) != 0)
            return -1;
    }
    if (m->count == BLOCK_MAX) { // the nearest ones count
        memmove(m->block, m->block + BLOCK_MAX / 2, BLOCK_MAX / 2 * sizeof *m->block);
        m->count = BLOCK_MAX / 2;
    }
    m->block[m->count++] = *at;
    int result = effect == ART_RETURN && m->lost_id == CFI_RULE_HOLE_ID ? prove_block(m) : 0;
    if (effect == ART_SP_LOST && counts_with_sp(m, &m->rules->rules[at->rule_id]))
        m->lost_id = at->rule_id; // if it holds behind it, too
    else if (effect == ART_RETURN || effect == ART_LEAVES)
        m->lost_id = CFI_RULE_HOLE_ID;
    if (effect == ART_RETURN || effect == ART_LEAVES || effect == ART_SP_LOST)
        begin_block(m);
    return result;
}

// It pushes an address, to be popped or to be returned to: that is not known. (A push of a number looks alike here.)
static bool is_call_of_next(const struct art_instruction *in)
{
    enum { CALL_BYTES = 5 };
    return in->size_bytes == CALL_BYTES && in->sp_change_bytes < 0 && in->access_count == 0;
}

// From one row to the next. What cannot be read is passed over: it proves nothing.
static int take_row(struct mender *m, uint32_t start_rel, uint32_t end_rel, uint32_t rule_id)
{
    cfi_oat_read_fn read = cfi_oat_arch(m->image->arch)->read;
    if (m->rules->rules[rule_id].kind != QUT_RULE_FRAME || start_rel != m->end_rel)
        begin_block(m);
    m->end_rel = end_rel;
    if (m->rules->rules[rule_id].kind != QUT_RULE_FRAME)
        return 0;
    struct base_bytes code = input_image_some(m->image, m->text_start + start_rel, end_rel - start_rel);
    for (uint32_t at = 0; at < code.size;) {
        struct art_instruction in;
        cfi_oat_read(read, (struct base_bytes){code.data + at, code.size - at}, &in);
        if (in.size_bytes == 0) {
            begin_block(m);
            m->end_rel = start_rel; // the next row begins a block
            return 0;
        }
        const struct instruction now = {start_rel + at, in.size_bytes, rule_id, in.sp_change_bytes};
        if (take(m, &now, in.effect) != 0)
            return -1;
        if (is_call_of_next(&in))
            begin_block(m);
        at += in.size_bytes;
    }
    return 0;
}

// The rows, and over them the mends.
static int apply(struct mender *m, struct cfi_row_list *rows)
{
    struct cfi_row_list out = {0};
    if (cfi_row_list_reserve(&out, rows->count + 2 * m->mends.count, m->error) != 0)
        return -1;
    size_t next = 0;
    for (size_t i = 0; i < rows->count; i++) {
        uint32_t at = rows->rows[i].pc_rel, rule_id = rows->rows[i].rule_id;
        uint32_t end = i + 1 < rows->count ? rows->rows[i + 1].pc_rel : UINT32_MAX;
        cfi_row_list_put(&out, at, rule_id);
        for (; next < m->mends.count && m->mends.items[next].start_rel < end; next++) {
            cfi_row_list_put(&out, m->mends.items[next].start_rel, m->mends.items[next].rule_id);
            if (m->mends.items[next].end_rel < end)
                cfi_row_list_put(&out, m->mends.items[next].end_rel, rule_id);
        }
    }
    cfi_row_list_free(rows);
    *rows = out;
    return 0;
}

// Where a call pushes the return address, a return says where it lies. Of 32-bit x86 no runtime was walked to see
// whether what is proven is so.
static bool is_told_by_returns(const struct arch *arch)
{
    return !arch->ra_in_register && arch->word_bytes == 8 && cfi_oat_arch(arch)->read;
}

int cfi_art_mend_rows(const struct input_image *image, uint64_t text_start, struct cfi_rule_set *rules,
                      struct cfi_row_list *rows, struct base_error *error)
{
    if (!is_told_by_returns(image->arch))
        return 0;
    struct mender *m = calloc(1, sizeof *m);
    if (!m)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "rows");
    *m = (struct mender){.image = image, .text_start = text_start, .rules = rules, .rows = rows, .error = error};
    m->lost_id = CFI_RULE_HOLE_ID;
    int result = 0;
    for (size_t i = 0; i + 1 < rows->count && result == 0; i++)
        result = take_row(m, rows->rows[i].pc_rel, rows->rows[i + 1].pc_rel, rows->rows[i].rule_id);
    if (result == 0 && m->mends.count)
        result = apply(m, rows);
    base_vector_free(&m->mends.vector);
    free(m);
    return result;
}

bool cfi_art_is_proven(const struct input_image *image, uint64_t vaddr, const struct qut_rule *rule)
{
    const struct arch *arch = image->arch;
    if (!is_told_by_returns(arch) || rule->kind != QUT_RULE_FRAME || rule->cfa.how != QUT_CFA_REG ||
        rule->cfa.reg != arch->sp_reg)
        return false;
    int32_t cfa_bytes = rule->cfa.offset_bytes;
    struct base_bytes code = input_image_some(image, vaddr, (uint64_t)BLOCK_MAX * INSTRUCTION_BYTES_MAX);
    for (size_t at = 0, count = 0; at < code.size && count < BLOCK_MAX; count++) {
        struct art_instruction in;
        cfi_oat_read(cfi_oat_arch(arch)->read, (struct base_bytes){code.data + at, code.size - at}, &in);
        if (in.effect == ART_RETURN)
            return cfa_bytes == arch->word_bytes;
        if (in.size_bytes == 0 || in.effect == ART_LEAVES || in.effect == ART_SP_LOST || is_call_of_next(&in))
            return false;
        cfa_bytes -= in.sp_change_bytes;
        at += in.size_bytes;
    }
    return false;
}
