// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "tracer/calls/inside.h"
#include "tracer/symbols/sort.h"

int calls_rows(struct calls_work *work, uint32_t index, uint32_t end_rel)
{
    struct cfi_fde fde = work->records.fdes[index];
    fde.end_rel = end_rel < fde.end_rel ? end_rel : fde.end_rel;
    work->rows.count = 0;
    return cfi_program_run(&work->runner, &work->records.cies.items[fde.cie], &fde, work->text_start, &work->rows,
                           work->error);
}

static bool is_entry_rule(const struct calls_work *work, const struct qut_rule *rule)
{
    const struct arch *arch = work->image->arch;
    int32_t word = arch->ra_in_register ? 0 : arch->word_bytes;
    bool is_on_top = rule->ra.how == QUT_REG_AT_CFA && rule->ra.offset_bytes == -word;
    return rule->kind == QUT_RULE_FRAME && rule->cfa.how == QUT_CFA_REG && rule->cfa.reg == arch->sp_reg &&
           rule->cfa.offset_bytes == word && (arch->ra_in_register ? rule->ra.how == QUT_REG_SAME : is_on_top);
}

static bool is_in_plt(const struct input_image *image, uint64_t vaddr)
{
    for (unsigned i = 0; i < image->plt_count; i++)
        if (vaddr >= image->plt[i].start && vaddr < image->plt[i].end)
            return true;
    return false;
}

static int add_fdes(struct calls_work *work)
{
    if (!BASE_RESERVE(&work->regions, work->records.fde_count))
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "functions");
    for (size_t i = 0; i < work->records.fde_count; i++) {
        const struct cfi_fde *fde = &work->records.fdes[i];
        uint64_t start = work->text_start + fde->start_rel;
        if (calls_rows(work, (uint32_t)i, fde->start_rel + 1) != 0)
            return -1;
        const struct qut_rule *first =
            &work->rules.rules[work->rows.count ? work->rows.rows[0].rule_id : (uint32_t)CFI_RULE_HOLE_ID];
        work->regions.items[work->regions.count++] = (struct calls_region){
            .start = start,
            .end = work->text_start + fde->end_rel,
            .fde = (uint32_t)i,
            .is_entry = is_entry_rule(work, first) && !is_in_plt(work->image, start),
            .is_signal = work->records.cies.items[fde->cie].signal_frame,
        };
    }
    return 0;
}

static int sort(struct calls_work *work)
{
    if (symbols_sort_by_first_u64(work->regions.items, work->regions.count, sizeof *work->regions.items) != 0)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "functions");
    return 0;
}

// How many begin at or before an address.
static size_t count_up_to(const struct calls_work *work, uint64_t vaddr)
{
    size_t low = 0, high = work->regions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->regions.items[middle].start <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct calls_region *calls_region_behind(const struct calls_work *work, uint64_t vaddr)
{
    const size_t i = count_up_to(work, vaddr);
    return i < work->regions.count ? &work->regions.items[i] : NULL;
}

struct calls_region *calls_region_at(const struct calls_work *work, uint64_t vaddr)
{
    const size_t low = count_up_to(work, vaddr);
    if (low == 0 || vaddr >= work->regions.items[low - 1].end)
        return NULL;
    return &work->regions.items[low - 1];
}

static bool has_code(const struct input_image *image, uint64_t start, uint64_t end)
{
    for (unsigned i = 0; i < image->exec_count; i++)
        if (start >= image->exec[i].start && end <= image->exec[i].end)
            return true;
    return false;
}

// Functions that no FDE covers. Those with the same start are one.
static int add_symbols(struct calls_work *work)
{
    size_t fdes = work->regions.count;
    BASE_VECTOR(struct calls_region) found = {0};
    struct symbol symbol;
    for (size_t i = 0; i < symbols_count(work->symbols); i++) {
        symbols_at(work->symbols, i, &symbol);
        calls_mark(&work->targets, symbol.start_vaddr);
        if (!symbol.has_size || !has_code(work->image, symbol.start_vaddr, symbol.end_vaddr) ||
            calls_region_at(work, symbol.start_vaddr) || is_in_plt(work->image, symbol.start_vaddr))
            continue;
        if (found.count && found.items[found.count - 1].end > symbol.start_vaddr)
            continue;
        struct calls_region *region = BASE_ADD(&found);
        if (!region) {
            base_vector_free(&found.vector);
            return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "functions");
        }
        *region = (struct calls_region){.start = symbol.start_vaddr, .end = symbol.end_vaddr, .fde = UINT32_MAX};
    }
    bool has_room = BASE_RESERVE(&work->regions, found.count);
    for (size_t i = 0, next = 0; i < found.count && has_room; i++) {
        struct calls_region region = found.items[i];
        while (next < fdes && work->regions.items[next].start <= region.start)
            next++;
        if (next < fdes && region.end > work->regions.items[next].start)
            region.end = work->regions.items[next].start;
        work->regions.items[work->regions.count++] = region;
    }
    base_vector_free(&found.vector);
    return has_room ? 0 : base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "functions");
}

// Of two at the same start the first stays: the FDE.
static void drop_repeated(struct calls_work *work)
{
    size_t kept = 0;
    for (size_t i = 0; i < work->regions.count; i++) {
        if (kept && work->regions.items[kept - 1].start == work->regions.items[i].start)
            continue;
        work->regions.items[kept++] = work->regions.items[i];
    }
    work->regions.count = kept;
}

int calls_find_regions(struct calls_work *work)
{
    if (calls_read_sleds(work) != 0 || add_fdes(work) != 0 || sort(work) != 0 || add_symbols(work) != 0 ||
        sort(work) != 0 || calls_add_sled_regions(work) != 0 || sort(work) != 0)
        return -1;
    drop_repeated(work);
    for (size_t i = 0; i < work->regions.count; i++) {
        struct calls_region *region = &work->regions.items[i];
        calls_mark(&work->targets, region->start);
        region->has_sled = work->sleds.count && calls_is_sled_entry(work, region->start);
    }
    return 0;
}
