// SPDX-License-Identifier: Apache-2.0
#include "qutc/check/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "qutc/cfi/art.h"
#include "qutc/check/compare.h"
#include "qutc/check/judge_row.h"
#include "qutc/check/plt_truth.h"

enum { PC_DEPENDENT_GRANULES = 32 }; // compared one by one where values depend on the pc

static const struct check_judge_class *const judge_classes[CHECK_JUDGES_COUNT] = {
    &check_judge_libdw,
    &check_judge_libdwarf,
    &check_judge_readelf,
};

struct section_judges {
    struct check_judge *judge[CHECK_JUDGES_COUNT]; // NULL where this one does not read the section
    bool unreadable;                               // judges were wanted, none could open it
};

struct verification {
    const struct qut_table *table;
    const struct input_image *image;
    const struct arch *arch;
    struct check_verify_result *result;
    struct section_judges sections[INPUT_FRAME_SECTIONS_MAX];
    BASE_VECTOR(uint64_t) pcs; // where something may begin or end, ascending
    struct check_context contexts[CHECK_CONTEXTS];
    const struct check_mended *mended;
    bool no_memory; // of a judge, or of the library behind it
};

// What the judges of the deciding section say of one pc.
struct expectation {
    unsigned section; // frame_count where none has a row
    bool unjudged;    // a section that none of the judges reads comes before
    struct check_judgement by_judge[CHECK_JUDGES_COUNT];
    unsigned spoke; // bit per judge with an answer other than an abstention
    uint64_t end;   // nothing changes before
};

static void note_abstention(struct check_judge_count *count, const char *reason)
{
    count->abstained++;
    for (unsigned i = 0; i < CHECK_ABSTAIN_REASONS_MAX; i++) {
        if (count->reasons[i].rows == 0)
            snprintf(count->reasons[i].text, sizeof count->reasons[i].text, "%.*s",
                     (int)sizeof count->reasons[i].text - 1, reason);
        if (strncmp(count->reasons[i].text, reason, sizeof count->reasons[i].text - 1) == 0) {
            count->reasons[i].rows++;
            return;
        }
    }
}

static bool reads_kind(unsigned judge, enum input_frame_kind kind)
{
    return (judge_classes[judge] == &check_judge_readelf) == (kind == INPUT_FRAME_EXIDX);
}

static int add_pcs(struct verification *v, const uint64_t *pcs, size_t count, struct base_error *error)
{
    if (!BASE_RESERVE(&v->pcs, count + 1)) // there is an array, if there are pcs or not
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of rows");
    memcpy(v->pcs.items + v->pcs.count, pcs, count * sizeof *pcs);
    v->pcs.count += count;
    return 0;
}

static int add_ranges(struct verification *v, const struct input_range *ranges, unsigned count,
                      struct base_error *error)
{
    for (unsigned i = 0; i < count; i++)
        if (add_pcs(v, (uint64_t[]){ranges[i].start, ranges[i].end}, 2, error))
            return -1;
    return 0;
}

// Libraries give up on a record, or on a section, where memory fails them, and do not say why; malloc does, by errno.
// Nothing else sets it so: they read what is in memory.
static void note_memory(struct verification *v)
{
    v->no_memory |= errno == ENOMEM;
}

static int open_judges(struct verification *v, unsigned judges_mask, struct base_error *error)
{
    for (unsigned s = 0; s < v->image->frame_count; s++) {
        const struct input_frame_section *section = &v->image->frame[s];
        unsigned opened = 0;
        for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
            if (!(judges_mask >> j & 1) || !reads_kind(j, section->kind))
                continue;
            struct base_error why = {0};
            errno = 0;
            struct check_judge *judge = judge_classes[j]->open(v->image, section, &why);
            note_memory(v);
            if (why.reason == BASE_ERR_NO_MEMORY)
                return base_fail_as(error, &why);
            if (!judge) {
                char reason[224];
                snprintf(reason, sizeof reason, "%s: %s", section->name, why.detail);
                note_abstention(&v->result->judges[j], reason);
                continue;
            }
            v->sections[s].judge[j] = judge;
            opened++;
            uint64_t *pcs = NULL;
            size_t count = 0;
            if (judge_classes[j]->boundaries(judge, &pcs, &count, error))
                return -1;
            int failed = add_pcs(v, pcs, count, error);
            free(pcs);
            if (failed)
                return -1;
        }
        v->sections[s].unreadable = opened == 0;
    }
    return add_ranges(v, v->image->exec, v->image->exec_count, error) ||
                   add_ranges(v, v->image->plt, v->image->plt_count, error)
               ? -1
               : 0;
}

static bool has_row(const struct check_judgement *judgement)
{
    return judgement->verdict != CHECK_VERDICT_NO_ROW && judgement->verdict != CHECK_VERDICT_ABSTAIN;
}

static void ask_section(struct verification *v, unsigned section, struct check_context *context,
                        struct expectation *expected)
{
    expected->section = section;
    expected->spoke = 0;
    for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
        struct check_judgement *judgement = &expected->by_judge[j];
        *judgement = (struct check_judgement){.verdict = CHECK_VERDICT_ABSTAIN};
        if (!v->sections[section].judge[j])
            continue;
        errno = 0;
        judge_classes[j]->at(v->sections[section].judge[j], &context->frame, check_context_read, context, judgement);
        note_memory(v);
        if (judgement->verdict != CHECK_VERDICT_ABSTAIN)
            expected->spoke |= 1u << j;
        if (judgement->end > context->frame.pc && judgement->end < expected->end)
            expected->end = judgement->end;
    }
}

// The first section whose judges have a row at pc decides; where all of a section's judges abstain, none does.
static void expect(struct verification *v, uint64_t pc, uint64_t end, struct expectation *expected)
{
    struct check_context *context = &v->contexts[0];
    check_context_set_pc(context, v->arch, pc);
    expected->end = end;
    expected->unjudged = false;
    for (unsigned s = 0; s < v->image->frame_count; s++) {
        if (v->sections[s].unreadable) {
            expected->unjudged = true;
            continue;
        }
        ask_section(v, s, context, expected);
        if (!expected->spoke)
            return;
        for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++)
            if (has_row(&expected->by_judge[j]))
                return;
    }
    expected->section = v->image->frame_count;
}

static void add_finding(struct verification *v, uint64_t pc, uint64_t end, bool disputed, const struct qut_rule *rule,
                        const char *text)
{
    if (disputed)
        v->result->disputed++;
    else
        v->result->wrong++;
    if (v->result->finding_count == CHECK_FINDINGS_MAX)
        return;
    struct check_finding *finding = &v->result->findings[v->result->finding_count++];
    *finding = (struct check_finding){.pc = pc, .end = end, .disputed = disputed};
    snprintf(finding->text, sizeof finding->text, "%s", text);
    table_rule_text(v->arch, rule, finding->rule);
}

enum outcome { SAME, WRONG, DISPUTED };

// All judges that spoke against each other, then the table against one of them.
static enum outcome compare_at(struct verification *v, const struct expectation *expected, uint64_t pc,
                               const struct qut_rule *rule, bool *depends_on_pc, char *text, unsigned text_size)
{
    for (unsigned c = 0; c < CHECK_CONTEXTS; c++) {
        struct check_context *context = &v->contexts[c];
        check_context_set_pc(context, v->arch, pc);
        struct expectation here = {.end = UINT64_MAX};
        ask_section(v, expected->section, context, &here);
        struct check_judgement table;
        check_rule_judgement(v->arch, rule, context, &table);
        *depends_on_pc |= table.depends_on_pc;
        int first = -1;
        for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
            if (!(here.spoke >> j & 1))
                continue;
            *depends_on_pc |= here.by_judge[j].depends_on_pc;
            if (first < 0)
                first = (int)j;
            else if (!check_judgements_equal(v->arch, &here.by_judge[first], judge_classes[first]->name,
                                             &here.by_judge[j], judge_classes[j]->name, text, text_size))
                return DISPUTED;
        }
        // A judge that does not know one register must not hide what another knows of it.
        for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
            if (!(here.spoke >> j & 1))
                continue;
            if (rule->kind == QUT_RULE_REFUSED && rule->reason == QUT_REFUSED_CANTUNWIND)
                table.verdict = CHECK_VERDICT_CANTUNWIND;
            if (rule->dex_pc_reg != here.by_judge[j].dex_pc_reg && cfi_art_has_dex_pc(v->image, pc, rule->dex_pc_reg))
                table.dex_pc_known = false;
            if (!check_judgements_equal(v->arch, &table, "table", &here.by_judge[j], judge_classes[j]->name, text,
                                        text_size))
                return WRONG;
        }
    }
    return SAME;
}

// The table's constant-time lookup and its walk over rows must tell the same rule all over the interval.
static bool lookup_agrees(const struct verification *v, uint64_t pc, uint64_t last_pc, const struct qut_rule *rule)
{
    struct qut_rule first, last;
    runtime_table_rule(v->table, pc, &first);
    runtime_table_rule(v->table, last_pc, &last);
    return memcmp(&first, rule, sizeof first) == 0 && memcmp(&last, rule, sizeof last) == 0;
}

static void note_refused(struct check_verify_result *result, const struct qut_rule *rule)
{
    result->rows++;
    result->refused++;
    result->refused_by_reason[rule->reason < QUT_REFUSAL_END ? rule->reason : 0]++;
}

// Go's own table says where stacks end, and what was interrupted and not called; its .debug_frame knows of neither.
static bool is_beyond_judges(const struct verification *v, const struct qut_rule *rule)
{
    return v->table->header->flags & QUT_TABLE_FROM_GOPCLNTAB && rule->kind == QUT_RULE_FRAME &&
           (rule->ra.how == QUT_REG_UNDEFINED || rule->flags & QUT_RULE_SIGNAL);
}

// Readers do not count where the code proves another rule than theirs, if it is the table's.
static bool is_mended(const struct verification *v, uint64_t pc, uint64_t last_pc, const struct qut_rule *rule)
{
    if (!v->mended || rule->kind != QUT_RULE_FRAME || rule->origin != QUT_RULE_FROM_CODE || pc < v->mended->text_start)
        return false;
    uint32_t rule_id = cfi_row_list_at(v->mended->rows, (uint32_t)(pc - v->mended->text_start));
    return rule_id != CFI_RULE_HOLE_ID && memcmp(&v->mended->rules->rules[rule_id], rule, sizeof *rule) == 0 &&
           rule_id == cfi_row_list_at(v->mended->rows, (uint32_t)(last_pc - v->mended->text_start));
}

// What code says of functions that cannot be unwound, or in their bodies alone: where they call, it was compared with
// that when it was followed.
static bool is_refined(const struct expectation *expected, const struct qut_rule *rule)
{
    bool refines = rule->kind == QUT_RULE_FRAME && rule->origin == QUT_RULE_FROM_CODE;
    for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++)
        if (expected->spoke >> j & 1)
            refines &=
                expected->by_judge[j].verdict == CHECK_VERDICT_CANTUNWIND || expected->by_judge[j].body_only_source;
    return refines && expected->spoke;
}

static void judge_interval(struct verification *v, uint64_t pc, uint64_t end, const struct qut_rule *rule,
                           const struct expectation *expected)
{
    struct check_verify_result *result = v->result;
    uint64_t granule = (uint64_t)1 << v->arch->pc_shift;
    uint64_t last_pc = (end - 1) & ~(granule - 1);
    if (!lookup_agrees(v, pc, last_pc, rule)) {
        result->rows++;
        add_finding(v, pc, end, false, rule, "the table's lookup contradicts its list of rows");
        return;
    }
    if (is_mended(v, pc, last_pc, rule)) {
        result->mended++;
        return;
    }
    bool is_refused = rule->kind == QUT_RULE_REFUSED && rule->reason != QUT_REFUSED_CANTUNWIND;
    if (expected->section == v->image->frame_count) { // no judge has a row
        if (rule->kind == QUT_RULE_HOLE) {
            result->holes++;
        } else if (is_refused && rule->reason == QUT_REFUSED_INSTRUMENTED) { // for what lies behind it
            note_refused(result, rule);
        } else if (v->image->oat.present && (v->table->header->flags & QUT_TABLE_FROM_OAT_HEADERS)) {
            result->oat_headers++;
        } else if (expected->unjudged) {
            result->abstained++;
        } else if (rule->kind == QUT_RULE_FRAME && check_true_of_plt(v->image, pc, rule)) {
            result->plt_leaf++;
        } else if (rule->kind == QUT_RULE_FRAME && rule->origin == QUT_RULE_FROM_CODE) {
            result->from_code++; // no reader says anything of it: tests/whole/qutc/fill_test.py and the oracle do
        } else {
            result->rows++;
            add_finding(v, pc, end, false, rule, "no judge has a row here");
        }
        return;
    }
    for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++) {
        if (expected->spoke >> j & 1)
            result->judges[j].rows++;
        else if (v->sections[expected->section].judge[j])
            note_abstention(&result->judges[j], expected->by_judge[j].reason ? expected->by_judge[j].reason : "failed");
    }
    if (is_refused) {
        note_refused(result, rule);
        return;
    }
    if (is_refined(expected, rule)) {
        result->from_code++;
        return;
    }
    if (!expected->spoke || is_beyond_judges(v, rule)) {
        result->abstained++;
        return;
    }
    result->rows++;
    char text[sizeof result->findings[0].text];
    bool depends_on_pc = false;
    enum outcome outcome = compare_at(v, expected, pc, rule, &depends_on_pc, text, sizeof text);
    if (depends_on_pc) {
        for (unsigned i = 1; outcome == SAME && i < PC_DEPENDENT_GRANULES && pc + i * granule < end; i++)
            outcome = compare_at(v, expected, pc + i * granule, rule, &depends_on_pc, text, sizeof text);
        if (outcome == SAME)
            outcome = compare_at(v, expected, last_pc, rule, &depends_on_pc, text, sizeof text);
    }
    if (outcome == SAME) {
        result->exact++;
        result->doubtful += rule->origin == QUT_RULE_DOUBTFUL;
    } else if (outcome == WRONG && cfi_art_is_mended(v->image, pc, rule)) {
        result->rows--; // where the code contradicts what is read, readers do not count
        result->abstained++;
    } else {
        add_finding(v, pc, end, outcome == DISPUTED, rule, text);
    }
}

// The table's rule at pc and where its row ends, at most `limit`.
static uint64_t table_row(const struct verification *v, uint64_t pc, uint64_t limit, struct qut_rule *rule)
{
    uint64_t at = pc, end = limit;
    if (!runtime_table_next_row(v->table, &at, &end, rule)) { // outside of the table's text
        runtime_table_rule(v->table, pc, rule);
        end = pc < v->table->text_start ? v->table->text_start : limit;
    }
    return end <= pc || end > limit ? limit : end;
}

// From pc, inside an executable range that ends at `limit`, up to the first change. Returns where that is.
static uint64_t walk_interval(struct verification *v, uint64_t pc, uint64_t limit)
{
    uint64_t granule = (uint64_t)1 << v->arch->pc_shift;
    struct qut_rule rule;
    uint64_t table_end = table_row(v, pc, limit, &rule);
    // Neighbouring rows with one rule are one: the table splits them where its blocks end.
    struct qut_rule next_rule;
    uint64_t next_end;
    while (table_end < limit && (next_end = table_row(v, table_end, limit, &next_rule)) > table_end &&
           memcmp(&rule, &next_rule, sizeof rule) == 0)
        table_end = next_end;
    struct expectation expected;
    expect(v, pc, table_end, &expected);
    // A change inside a granule is none that a pc can be at.
    uint64_t end = (expected.end + granule - 1) & ~(granule - 1);
    if (end > limit)
        end = limit;
    judge_interval(v, pc, end, &rule, &expected);
    return end;
}

static void walk_ranges(struct verification *v)
{
    uint64_t granule = (uint64_t)1 << v->arch->pc_shift;
    size_t next = 0; // the first boundary behind pc
    for (unsigned r = 0; r < v->image->exec_count; r++) {
        uint64_t pc = (v->image->exec[r].start + granule - 1) & ~(granule - 1);
        uint64_t range_end = v->image->exec[r].end;
        while (pc < range_end) {
            while (next < v->pcs.count && v->pcs.items[next] <= pc)
                next++;
            uint64_t limit = range_end;
            if (next < v->pcs.count && v->pcs.items[next] < limit)
                limit = v->pcs.items[next];
            uint64_t aligned_limit = (limit + granule - 1) & ~(granule - 1);
            pc = walk_interval(v, pc, aligned_limit < range_end ? aligned_limit : range_end);
        }
    }
}

int check_verify(const struct qut_table *table, const struct input_image *image, unsigned judges_mask,
                 struct check_verify_result *result, struct base_error *error)
{
    return check_verify_mended(table, image, judges_mask, NULL, result, error);
}

int check_verify_mended(const struct qut_table *table, const struct input_image *image, unsigned judges_mask,
                        const struct check_mended *mended, struct check_verify_result *result, struct base_error *error)
{
    *result = (struct check_verify_result){0};
    for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++)
        result->judges[j].name = judge_classes[j]->name;
    struct verification v = {.table = table, .image = image, .arch = image->arch, .mended = mended, .result = result};
    for (unsigned c = 0; c < CHECK_CONTEXTS; c++)
        check_context_init(&v.contexts[c], v.arch, 0x5157 + c);

    int status = open_judges(&v, judges_mask, error);
    if (status == 0) {
        check_sort_pcs(v.pcs.items, &v.pcs.count);
        walk_ranges(&v);
        if (v.no_memory)
            status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "a reader that the table is compared with");
    }
    for (unsigned s = 0; s < image->frame_count; s++)
        for (unsigned j = 0; j < CHECK_JUDGES_COUNT; j++)
            if (v.sections[s].judge[j])
                judge_classes[j]->close(v.sections[s].judge[j]);
    base_vector_free(&v.pcs.vector);
    return status;
}
