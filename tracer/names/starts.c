// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/starts.h"

#include <stdlib.h>

#include "qutc/cfi/exidx.h"
#include "qutc/cfi/frame_section.h"
#include "qutc/cfi/oat_rows.h"
#include "qutc/input/oat.h"
#include "tracer/symbols/sort.h"

enum { LOOK_BACK_MAX = 256 }; // functions that begin between one and an address it contains

// In [start, end), whatever a record says.
static bool text_of(const struct input_image *image, struct input_range *text)
{
    if (!image || image->exec_count == 0)
        return false;
    *text = (struct input_range){image->exec[0].start & ~(uint64_t)1, image->exec[image->exec_count - 1].end};
    return text->end > text->start && (text->end - text->start) >> 32 == 0;
}

static void add(struct names_starts *starts, uint64_t start, uint64_t end)
{
    starts->items[starts->count++] = (struct names_starts_range){.start = start, .end = end};
}

static void add_fdes(struct names_starts *starts, const struct input_image *image,
                     const struct input_frame_section *section, struct input_range text)
{
    struct cfi_frame_records records;
    if (cfi_frame_records_read(image, section, text.start, text.end, &records, NULL) != 0)
        return;
    if (BASE_RESERVE(starts, records.fde_count))
        for (size_t i = 0; i < records.fde_count; i++) {
            const struct cfi_fde *fde = cfi_fde_at(&records, i);
            add(starts, text.start + fde->start_rel, text.start + fde->end_rel);
        }
    cfi_frame_records_free(&records);
}

// Each function with instructions has a row of its own. Those that cannot be unwound share one, with whatever is
// between them: nothing is known of where they begin.
static void add_rows(struct names_starts *starts, const struct cfi_row_list *rows, const struct cfi_rule_set *rules,
                     struct input_range text)
{
    if (!BASE_RESERVE(starts, rows->count))
        return;
    for (size_t i = 0; i < rows->count; i++) {
        uint64_t end = i + 1 < rows->count ? text.start + rows->rows[i + 1].pc_rel : text.end;
        if (rules->rules[rows->rows[i].rule_id].kind == QUT_RULE_FRAME)
            add(starts, text.start + rows->rows[i].pc_rel, end);
    }
}

static void add_exidx(struct names_starts *starts, const struct input_image *image,
                      const struct input_frame_section *section, struct input_range text)
{
    struct cfi_rule_set rules;
    struct cfi_row_list rows = {0};
    struct cfi_exidx_counts counts;
    if (cfi_rule_set_init(&rules, NULL) != 0)
        return;
    if (cfi_exidx_read(image, section, text.start, text.end, &rules, &rows, &counts, NULL) == 0)
        add_rows(starts, &rows, &rules, text);
    cfi_row_list_free(&rows);
    cfi_rule_set_free(&rules);
}

// Candidates are in the file's tables; a header before each says whether it is one, and how long.
static void add_methods(struct names_starts *starts, const struct input_image *image)
{
    struct cfi_oat_view view;
    struct input_oat_starts methods = {0};
    if (!cfi_oat_view_of(image, &view))
        return;
    if (input_oat_find_starts(image, INPUT_OAT_BY_TABLES, &methods, NULL) == 0 && BASE_RESERVE(starts, methods.count))
        for (size_t i = 0; i < methods.count; i++) {
            struct cfi_oat_method method;
            uint64_t start = methods.items[i].vaddr, code_offset = start - view.code_vaddr;
            if (code_offset < view.code.size && cfi_oat_read_header(&view, code_offset, &method) != CFI_OAT_NO_HEADER &&
                method.code_bytes)
                add(starts, start, start + method.code_bytes);
        }
    input_oat_starts_free(&methods);
}

void names_starts_add(struct names_starts *starts, const struct input_image *image)
{
    struct input_range text;
    if (!text_of(image, &text))
        return;
    for (unsigned i = 0; i < image->frame_count; i++) {
        const struct input_frame_section *section = &image->frame[i];
        if (section->kind == INPUT_FRAME_EXIDX)
            add_exidx(starts, image, section, text);
        else
            add_fdes(starts, image, section, text);
    }
    add_methods(starts, image);
}

static bool is_ascending(const struct names_starts *starts)
{
    for (size_t i = 1; i < starts->count; i++)
        if (starts->items[i].start < starts->items[i - 1].start)
            return false;
    return true;
}

void names_starts_sort(struct names_starts *starts)
{
    if (!is_ascending(starts) && symbols_sort_by_first_u64(starts->items, starts->count, sizeof *starts->items) != 0)
        starts->count = 0;
    uint64_t greatest = 0;
    for (size_t i = 0; i < starts->count; i++) {
        greatest = starts->items[i].end > greatest ? starts->items[i].end : greatest;
        starts->items[i].greatest_end = greatest;
    }
}

void names_starts_free(struct names_starts *starts)
{
    base_vector_free(&starts->vector);
    *starts = (struct names_starts){0};
}

// How many begin at or before an address.
static size_t count_up_to(const struct names_starts *starts, uint64_t vaddr)
{
    size_t low = 0, high = starts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (starts->items[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool names_starts_find(const struct names_starts *starts, uint64_t vaddr, uint64_t *start)
{
    for (size_t i = count_up_to(starts, vaddr), steps = 0; i-- > 0 && steps < LOOK_BACK_MAX; steps++) {
        if (starts->items[i].greatest_end <= vaddr)
            break;
        if (vaddr < starts->items[i].end) {
            *start = starts->items[i].start;
            return true;
        }
    }
    return false;
}

bool names_starts_between(const struct names_starts *starts, uint64_t after, uint64_t vaddr)
{
    return count_up_to(starts, vaddr) > count_up_to(starts, after);
}
