// SPDX-License-Identifier: Apache-2.0
#include "qutc/table/codes.h"

#include <stdlib.h>
#include <string.h>

#include "formats/qut_table_code_inline.h"

enum {
    ID_MAX = 0x7fffff,
    LONG_LEADS_MAX = 100,   // beyond this, the rarest get codes of four bytes
    STANDARD_STEP = 16,     // so many more standard cells are tried with codes of one byte
    OWN_SHORT_USES_MIN = 16 // a second cell costs 16 bytes, and saves one for each use
};

struct candidate {
    uint32_t index;
    uint32_t uses;
    uint32_t cells;
    uint16_t standard;
};

// What is given out: symbols by use, those of several cells behind the others, and runs by use.
struct candidates {
    struct candidate *rules, *runs;
    uint32_t rule_count, run_count;
    uint32_t standard_end; // behind the last standard cell that is used
};

// One way to give codes out.
struct split {
    struct qut_table_leads leads;
    uint64_t cost; // in halves of a byte
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

static bool is_standard(const struct candidate *rule)
{
    return rule->standard != TABLE_STANDARD_NONE;
}

// Whether a rule has a code of one byte without an own cell.
static bool is_short_standard(const struct candidate *rule, uint32_t short_standard)
{
    return is_standard(rule) && rule->standard < short_standard;
}

// Whether a rule that has none is given an own cell for a code of one byte, if one is left.
static bool wants_short(const struct candidate *rule)
{
    return rule->cells == 1 && (!is_standard(rule) || rule->uses > OWN_SHORT_USES_MIN);
}

static uint32_t leads_for(uint32_t ids)
{
    const uint32_t leads = (ids + 255) / 256;
    return leads > LONG_LEADS_MAX ? LONG_LEADS_MAX : leads;
}

// The 255 leads: some standard cells have one each; own cells and runs share what is left, by their use; and some leads
// say that another byte comes.
static struct split try_split(const struct candidates *all, uint32_t short_standard)
{
    uint32_t others = 0, must_be_long = 0, must_be_own = 0;
    for (uint32_t i = 0; i < all->rule_count; i++) {
        const struct candidate *rule = &all->rules[i];
        if (is_short_standard(rule, short_standard))
            continue;
        others++;
        must_be_long += !wants_short(rule);
        must_be_own += is_standard(rule) ? 0 : rule->cells;
    }
    struct split split = {0};
    const bool are_all_short = must_be_long == 0 && short_standard + others + all->run_count <= QUT_LEAD_WIDE;
    const uint32_t standard_count =
        are_all_short || all->standard_end < short_standard ? short_standard : all->standard_end;
    const uint32_t rule_leads = are_all_short ? 0 : leads_for(standard_count - short_standard + must_be_own);
    const uint32_t run_leads = are_all_short ? 0 : leads_for(all->run_count);
    uint32_t left = QUT_LEAD_WIDE - rule_leads - run_leads;
    left = left > short_standard ? left - short_standard : 0;
    uint32_t short_own = 0, short_runs = 0, own_cells = must_be_own;
    for (uint32_t i = 0; i < all->rule_count; i++) {
        const struct candidate *rule = &all->rules[i];
        if (is_short_standard(rule, short_standard))
            continue;
        while (left && wants_short(rule) && short_runs < all->run_count && all->runs[short_runs].uses > rule->uses) {
            short_runs++;
            left--;
        }
        if (left && wants_short(rule)) {
            short_own++;
            left--;
            own_cells += is_standard(rule);
        } else {
            split.cost += 3u * (uint64_t)rule->uses; // a byte, and half of one that the block has more for it
        }
    }
    for (; left && short_runs < all->run_count; left--)
        short_runs++;
    for (uint32_t i = short_runs; i < all->run_count; i++)
        split.cost += 3u * (uint64_t)all->runs[i].uses;
    split.cost += 2 * sizeof(union qut_table_cell) * own_cells;
    split.leads.short_rules = (uint8_t)(short_standard + short_own);
    split.leads.short_own = (uint8_t)short_own;
    split.leads.short_runs = (uint8_t)short_runs;
    split.leads.long_rule_leads = (uint8_t)rule_leads;
    split.leads.standard_count = (uint16_t)standard_count;
    return split;
}

static struct split best_split(const struct candidates *all, uint32_t known_count)
{
    struct split best = try_split(all, known_count ? 1 : 0);
    for (uint32_t i = STANDARD_STEP; i < QUT_LEAD_WIDE && i <= known_count; i += STANDARD_STEP) {
        const struct split other = try_split(all, i);
        if (other.cost < best.cost)
            best = other;
    }
    return best;
}

static struct table_code make_code(const struct qut_table_leads *leads, bool is_run, uint32_t id)
{
    struct table_code code = {0};
    uint32_t shorts = is_run ? leads->short_runs : leads->short_rules;
    uint32_t first_short = is_run ? leads->short_rules : 0;
    uint32_t first_long = (uint32_t)leads->short_rules + leads->short_runs + (is_run ? leads->long_rule_leads : 0u);
    uint32_t last_long = is_run ? QUT_LEAD_WIDE : first_long + leads->long_rule_leads;
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

// Ids are as qut_cell_place reads them.
static void number_rules(struct table_codes *codes, const struct candidates *all)
{
    const struct qut_table_leads *leads = &codes->leads;
    const uint32_t short_standard = (uint32_t)leads->short_rules - leads->short_own;
    for (uint32_t i = 0; i < all->rule_count; i++) {
        const struct candidate *rule = &all->rules[i];
        const bool has_short_left = codes->own_symbols < leads->short_own;
        const bool is_own =
            !is_short_standard(rule, short_standard) && (!is_standard(rule) || (has_short_left && wants_short(rule)));
        uint32_t id;
        if (is_own) {
            id = codes->cell_count + (has_short_left ? 0 : leads->standard_count);
            codes->cell_order[codes->own_symbols++] = rule->index;
            codes->cell_count += rule->cells;
        } else {
            id = leads->short_own + rule->standard;
        }
        codes->of_symbol[rule->index] = make_code(leads, false, id);
    }
    codes->hole = codes->of_symbol[CFI_RULE_HOLE_ID].bytes[0];
}

static uint32_t gather(const struct table_draft *draft, bool runs, struct candidate *all)
{
    uint32_t count = 0;
    uint32_t total = runs ? draft->run_count : (uint32_t)draft->symbols.count;
    for (uint32_t i = 0; i < total; i++) {
        const struct table_symbol *symbol = runs ? NULL : &draft->symbols.items[i];
        const uint32_t uses = runs ? draft->runs[i].uses : symbol->uses;
        if (uses)
            all[count++] = (struct candidate){i, uses, runs ? 1 : symbol->cell_count,
                                              runs ? TABLE_STANDARD_NONE : symbol->standard};
    }
    qsort(all, count, sizeof *all, by_uses);
    return count;
}

static int gather_all(struct candidates *all, const struct table_draft *draft, struct base_error *error)
{
    all->rule_count = gather(draft, false, all->rules);
    all->run_count = gather(draft, true, all->runs);
    uint64_t cells = draft->standard.known.count;
    for (uint32_t i = 0; i < all->rule_count; i++) {
        const struct candidate *rule = &all->rules[i];
        cells += rule->cells;
        if (is_standard(rule) && rule->standard + rule->cells > all->standard_end)
            all->standard_end = rule->standard + rule->cells;
    }
    if (cells > ID_MAX || all->run_count > ID_MAX)
        return base_fail(error, BASE_ERR_LIMIT, "", 0, "more than 8 million distinct rules");
    return 0;
}

int table_codes_assign(struct table_codes *codes, struct table_draft *draft, struct base_error *error)
{
    *codes = (struct table_codes){0};
    draft->symbols.items[CFI_RULE_HOLE_ID].uses = UINT32_MAX; // in force where the text begins: the first of all
    struct candidates all = {.rules = calloc(draft->symbols.count, sizeof *all.rules),
                             .runs = calloc(draft->run_count + 1, sizeof *all.runs)};
    codes->of_symbol = calloc(draft->symbols.count, sizeof *codes->of_symbol);
    codes->of_run = calloc(draft->run_count + 1, sizeof *codes->of_run);
    codes->cell_order = calloc(draft->symbols.count, sizeof *codes->cell_order);
    codes->run_order = calloc(draft->run_count + 1, sizeof *codes->run_order);
    int result = 0;
    if (!all.rules || !all.runs || !codes->of_symbol || !codes->of_run || !codes->cell_order || !codes->run_order)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "codes");
    if (result == 0)
        result = gather_all(&all, draft, error);
    if (result == 0) {
        codes->leads = best_split(&all, draft->standard.known.count).leads;
        number_rules(codes, &all);
        codes->used_runs = all.run_count;
        for (uint32_t i = 0; i < all.run_count; i++) {
            codes->of_run[all.runs[i].index] = make_code(&codes->leads, true, i);
            codes->run_order[i] = all.runs[i].index;
        }
    }
    free(all.rules);
    free(all.runs);
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
