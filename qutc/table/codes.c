// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/codes.h"

#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_code_inline.h"

// A long rule fills several ids, so it goes behind all one-cell rules. The hole is always id 0.
struct candidate {
    uint32_t index;
    uint32_t uses;
    uint32_t cells;
};

static int by_uses(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->cells != b->cells)
        return a->cells < b->cells ? -1 : 1;
    if (a->uses != b->uses)
        return a->uses > b->uses ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

// Splits the 255 leads: `needed` ids on either side, each either short (a lead of its own) or one of 256 behind a lead.
static void split_leads(struct table_codes *codes, const struct candidate *rules, uint32_t rule_count,
                        const struct candidate *runs, uint32_t run_count)
{
    uint32_t rule_leads = (codes->cell_count + 255) / 256, run_leads = (run_count + 255) / 256;
    if (codes->cell_count + run_count <= QUT_LEAD_WIDE) {
        codes->short_rules = (uint8_t)codes->cell_count;
        codes->short_runs = (uint8_t)run_count;
        return;
    }
    // Beyond this, the rarest get codes of four bytes.
    if (rule_leads > 100)
        rule_leads = 100;
    if (run_leads > 100)
        run_leads = 100;
    uint32_t shorts = QUT_LEAD_WIDE - rule_leads - run_leads;
    uint32_t short_rules = 1, short_runs = 0;
    while (short_rules + short_runs < shorts) {
        bool rule_left = short_rules < rule_count && rules[short_rules].cells == 1;
        bool run_left = short_runs < run_count;
        if (!rule_left && !run_left)
            break;
        if (rule_left && (!run_left || rules[short_rules].uses >= runs[short_runs].uses))
            short_rules++;
        else
            short_runs++;
    }
    codes->short_rules = (uint8_t)short_rules;
    codes->short_runs = (uint8_t)short_runs;
    codes->long_rule_leads = (uint8_t)rule_leads;
}

static struct table_code make_code(const struct table_codes *codes, bool is_run, uint32_t id)
{
    struct table_code code = {0};
    uint32_t shorts = is_run ? codes->short_runs : codes->short_rules;
    uint32_t first_short = is_run ? codes->short_rules : 0;
    uint32_t first_long = (uint32_t)codes->short_rules + codes->short_runs + (is_run ? codes->long_rule_leads : 0u);
    uint32_t last_long = is_run ? QUT_LEAD_WIDE : first_long + codes->long_rule_leads;
    if (id < shorts) {
        code.bytes[0] = (uint8_t)(first_short + id);
        code.size = 1;
        return code;
    }
    uint32_t behind = id - shorts;
    if (first_long + (behind >> 8) < last_long) {
        code.bytes[0] = (uint8_t)behind;
        code.bytes[1] = (uint8_t)(first_long + (behind >> 8));
        code.size = 2;
        return code;
    }
    uint32_t wide = id | (is_run ? 0x800000 : 0);
    for (int i = 0; i < 3; i++)
        code.bytes[i] = (uint8_t)(wide >> (8 * i));
    code.bytes[3] = QUT_LEAD_WIDE;
    code.size = 4;
    return code;
}

static uint32_t gather(const struct table_draft *draft, bool runs, struct candidate *all)
{
    uint32_t count = 0;
    uint32_t total = runs ? draft->run_count : (uint32_t)draft->symbols.count;
    for (uint32_t i = 0; i < total; i++) {
        uint32_t uses = runs ? draft->runs[i].uses : draft->symbols.items[i].uses;
        if (uses)
            all[count++] = (struct candidate){i, uses, runs ? 1 : draft->symbols.items[i].cell_count};
    }
    qsort(all, count, sizeof *all, by_uses);
    return count;
}

int table_codes_assign(struct table_codes *codes, struct table_draft *draft, struct base_error *error)
{
    *codes = (struct table_codes){0};
    draft->symbols.items[CFI_RULE_HOLE_ID].uses = UINT32_MAX; // in force where the text begins: the first of all
    struct candidate *rules = calloc(draft->symbols.count, sizeof *rules);
    struct candidate *runs = calloc(draft->run_count + 1, sizeof *runs);
    codes->of_symbol = calloc(draft->symbols.count, sizeof *codes->of_symbol);
    codes->of_run = calloc(draft->run_count + 1, sizeof *codes->of_run);
    codes->cell_order = calloc(draft->symbols.count, sizeof *codes->cell_order);
    codes->run_order = calloc(draft->run_count + 1, sizeof *codes->run_order);
    int result = 0;
    if (!rules || !runs || !codes->of_symbol || !codes->of_run || !codes->cell_order || !codes->run_order)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "codes");
    if (result == 0) {
        codes->used_symbols = gather(draft, false, rules);
        codes->used_runs = gather(draft, true, runs);
        for (uint32_t i = 0; i < codes->used_symbols; i++)
            codes->cell_count += rules[i].cells;
        if (codes->cell_count > 0x7fffff || codes->used_runs > 0x7fffff)
            result = base_fail(error, BASE_ERR_LIMIT, "", 0, "more than 8 million distinct rules");
    }
    if (result == 0) {
        split_leads(codes, rules, codes->used_symbols, runs, codes->used_runs);
        uint32_t id = 0;
        for (uint32_t i = 0; i < codes->used_symbols; i++) {
            codes->of_symbol[rules[i].index] = make_code(codes, false, id);
            codes->cell_order[i] = rules[i].index;
            id += rules[i].cells;
        }
        for (uint32_t i = 0; i < codes->used_runs; i++) {
            codes->of_run[runs[i].index] = make_code(codes, true, i);
            codes->run_order[i] = runs[i].index;
        }
    }
    free(rules);
    free(runs);
    if (result != 0)
        table_codes_free(codes);
    return result;
}

void table_codes_free(struct table_codes *codes)
{
    free(codes->of_symbol);
    free(codes->of_run);
    free(codes->cell_order);
    free(codes->run_order);
    *codes = (struct table_codes){0};
}
