// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oat/compare.h"

#include <stdlib.h>

#include "qutc/cfi/frame_program.h"
#include "qutc/input/oat.h"
#include "qutc/table/row_merge.h"
#include "tests/proof/oat/paths.h"

static void must(bool good)
{
    if (!good)
        abort();
}

void oat_rows_of(const struct input_image *image, struct oat_rows *rows)
{
    struct base_error error = {0};
    *rows = (struct oat_rows){.text_start = image->exec[0].start & ~UINT64_C(0x3ff),
                              .text_end = image->exec[image->exec_count - 1].end};
    must(cfi_rule_set_init(&rows->rules, &error) == 0);
    for (unsigned i = 0; i < image->frame_count; i++) {
        struct cfi_row_list list = {0};
        struct cfi_frame_counts counts;
        must(cfi_frame_rows_read(image, &image->frame[i], rows->text_start, rows->text_end, &rows->rules, &list,
                                 &counts, &error) == 0);
        must(table_rows_fill_holes(&rows->from_frames, &list, &error) == 0);
        cfi_row_list_free(&list);
    }
    const struct cfi_row_list none = {0};
    must(cfi_oat_rows(image, rows->text_start, rows->text_end, &none, &rows->rules, &rows->from_headers, &rows->counts,
                      &error) == 0);
}

void oat_rows_free(struct oat_rows *rows)
{
    cfi_row_list_free(&rows->from_frames);
    cfi_row_list_free(&rows->from_headers);
    cfi_rule_set_free(&rows->rules);
}

// A place in a list that moves forwards.
struct position {
    const struct oat_rows *rows;
    const struct cfi_row_list *list;
    size_t next;
};

static const struct qut_rule *rule_at(struct position *p, uint32_t pc_rel)
{
    while (p->next < p->list->count && p->list->rows[p->next].pc_rel <= pc_rel)
        p->next++;
    return &p->rows->rules.rules[p->next ? p->list->rows[p->next - 1].rule_id : CFI_RULE_HOLE_ID];
}

static uint32_t row_end(const struct position *p, uint32_t limit)
{
    bool ends = p->next < p->list->count && p->list->rows[p->next].pc_rel < limit;
    return ends ? p->list->rows[p->next].pc_rel : limit;
}

static bool same_but_flags(const struct qut_rule *a, const struct qut_rule *b)
{
    struct qut_rule c = *a;
    c.flags = b->flags;
    return memcmp(&c, b, sizeof c) == 0;
}

static void judge(struct oat_comparison *to, const struct qut_rule *frames, const struct qut_rule *headers, uint64_t pc,
                  uint64_t bytes, const int32_t *truth)
{
    bool is_exact = headers->kind == QUT_RULE_FRAME && !(headers->flags & QUT_RULE_BODY_ONLY);
    for (uint64_t i = 0; is_exact && i < bytes; i++)
        if (truth[i] != PATHS_NOT_REACHED && truth[i] != headers->cfa.offset_bytes && to->mismatches++ == 0)
            to->first_mismatch = pc + i;
    if (frames->kind == QUT_RULE_HOLE) {
        if (headers->kind == QUT_RULE_FRAME)
            to->additional_bytes += bytes;
        return;
    }
    to->cfi_bytes += bytes;
    if (headers->kind == QUT_RULE_HOLE) {
        to->missing_bytes += bytes;
    } else if (headers->kind == QUT_RULE_REFUSED) {
        to->refused_bytes += bytes;
    } else if (headers->flags & QUT_RULE_BODY_ONLY) {
        to->body_bytes += bytes;
    } else if (same_but_flags(frames, headers)) {
        to->exact_bytes += bytes;
    } else if (*truth == headers->cfa.offset_bytes && *truth != frames->cfa.offset_bytes) {
        to->frames_wrong++;
        to->frames_wrong_bytes += bytes;
    } else if (to->mismatches++ == 0) {
        to->first_mismatch = pc;
    }
}

// What all ways through each method say, by offset of the code.
static int32_t *find_truth(const struct cfi_oat_view *view, const struct input_oat_starts *starts)
{
    int32_t *truth = malloc((view->code.size + 1) * sizeof *truth);
    must(truth != NULL);
    for (size_t i = 0; i <= view->code.size; i++)
        truth[i] = PATHS_NOT_REACHED;
    for (size_t i = 0; i < starts->count; i++) {
        uint64_t at = starts->items[i].vaddr - view->code_vaddr;
        struct cfi_oat_method method;
        if (cfi_oat_read_header(view, at, &method) != CFI_OAT_METHOD)
            continue;
        if (!paths_follow(view->arch, (struct base_bytes){view->code.data + at, method.code_bytes}, truth + at))
            for (size_t j = 0; j < method.code_bytes; j++)
                truth[at + j] = PATHS_NOT_REACHED;
    }
    return truth;
}

static void compare_bodies(const struct cfi_oat_view *view, const struct input_oat_starts *starts,
                           const struct oat_rows *rows, struct oat_comparison *to)
{
    struct position frames = {rows, &rows->from_frames, 0};
    for (size_t i = 0; i < starts->count; i++) {
        uint64_t at = starts->items[i].vaddr - view->code_vaddr;
        uint32_t pc_rel = (uint32_t)(starts->items[i].vaddr - rows->text_start);
        struct cfi_oat_method method;
        if (cfi_oat_read_header(view, at, &method) != CFI_OAT_METHOD)
            continue;
        const struct qut_rule *rule = rule_at(&frames, pc_rel);
        if (rule->kind == QUT_RULE_HOLE)
            continue;
        struct qut_rule body = cfi_oat_body_rule(view->arch, &method);
        bool is_said = same_but_flags(rule, &body);
        for (uint32_t pc = row_end(&frames, pc_rel + method.code_bytes); pc < pc_rel + method.code_bytes && !is_said;
             pc = row_end(&frames, pc_rel + method.code_bytes))
            is_said = same_but_flags(rule_at(&frames, pc), &body);
        if (is_said)
            to->bodies++;
        else
            to->bodies_other++;
    }
}

void oat_compare(const struct input_image *image, const struct oat_rows *rows, struct oat_comparison *comparison)
{
    uint32_t end = (uint32_t)(rows->text_end - rows->text_start);
    struct position f = {rows, &rows->from_frames, 0}, h = {rows, &rows->from_headers, 0};
    struct cfi_oat_view view;
    struct input_oat_starts starts;
    struct base_error error = {0};
    *comparison = (struct oat_comparison){0};
    if (!cfi_oat_view_of(image, &view))
        return;
    must(input_oat_find_starts(image, INPUT_OAT_BY_TABLES, &starts, &error) == 0);
    int32_t *truth = find_truth(&view, &starts);
    compare_bodies(&view, &starts, rows, comparison);
    for (uint32_t pc = 0; pc < end;) {
        const struct qut_rule *frames = rule_at(&f, pc);
        const struct qut_rule *headers = rule_at(&h, pc);
        uint32_t next = row_end(&h, row_end(&f, end));
        uint64_t at = rows->text_start + pc - view.code_vaddr;
        uint64_t in_code = at < view.code.size ? view.code.size - at : 0;
        if (in_code && next - pc > in_code)
            next = pc + (uint32_t)in_code;
        if (in_code)
            judge(comparison, frames, headers, rows->text_start + pc, next - pc, truth + at);
        pc = next;
    }
    free(truth);
    input_oat_starts_free(&starts);
}

bool oat_same_rows(const struct oat_rows *a, const struct oat_rows *b, const struct cfi_row_list *where, uint64_t *pc)
{
    uint32_t end = (uint32_t)(a->text_end - a->text_start);
    struct position x = {a, &a->from_headers, 0}, y = {b, &b->from_headers, 0}, w = {a, where, 0};
    for (uint32_t at = 0; at < end;) {
        const struct qut_rule *first = rule_at(&x, at), *second = rule_at(&y, at);
        bool matters = rule_at(&w, at)->kind != QUT_RULE_HOLE;
        *pc = a->text_start + at;
        if (matters && memcmp(first, second, sizeof *first) != 0)
            return false;
        at = row_end(&w, row_end(&x, row_end(&y, end)));
    }
    return true;
}
