// SPDX-License-Identifier: Apache-2.0
// A judge for Arm exception indexes: binutils decodes, this file does what binutils' words say, with numbers.
#include <stdlib.h>

#include "qutc/check/judge.h"
#include "qutc/check/readelf_listing.h"

enum { CORE_REGISTERS = 16, SP = 13, LR = 14, PC = 15 };

struct check_judge {
    const struct input_image *image;
    struct check_readelf_listing listing; // only functions inside executable ranges
    bool ascending;
};

static const struct input_range *range_of(const struct input_image *image, uint64_t pc)
{
    for (unsigned i = 0; i < image->exec_count; i++)
        if (image->exec[i].start <= pc && pc < image->exec[i].end)
            return &image->exec[i];
    return NULL;
}

static void close_readelf(struct check_judge *judge)
{
    if (!judge)
        return;
    check_readelf_listing_free(&judge->listing);
    free(judge);
}

static void drop_functions_outside(struct check_judge *judge)
{
    struct check_readelf_listing *l = &judge->listing;
    size_t kept = 0;
    for (size_t i = 0; i < l->functions.count; i++)
        if (range_of(judge->image, l->functions.items[i].start))
            l->functions.items[kept++] = l->functions.items[i];
    l->functions.count = kept;
    judge->ascending = true;
    for (size_t i = 1; i < kept; i++)
        if (l->functions.items[i].start < l->functions.items[i - 1].start)
            judge->ascending = false;
}

static struct check_judge *open_readelf(const struct input_image *image, const struct input_frame_section *section,
                                        struct base_error *error)
{
    if (section->kind != INPUT_FRAME_EXIDX || section->from != INPUT_FROM_FILE || !image->arch->has_exidx) {
        base_fail(error, BASE_ERR_UNSUPPORTED, section->name, 0, "readelf judges a file's Arm exception index only");
        return NULL;
    }
    struct check_judge *judge = calloc(1, sizeof *judge);
    if (!judge) {
        base_fail(error, BASE_ERR_NO_MEMORY, section->name, 0, "judge");
        return NULL;
    }
    judge->image = image;
    const struct check_readelf_listing *l = &judge->listing;
    int result = check_readelf_run(image, section->name, &judge->listing, error);
    if (!result && !l->section_seen)
        result = base_fail(error, BASE_ERR_UNSUPPORTED, section->name, 0, "readelf finds no such section");
    if (!result && l->functions.count != l->functions_stated)
        result = base_fail(error, BASE_ERR_UNSUPPORTED, section->name, 0, "readelf listed %zu of its %zu entries",
                           l->functions.count, l->functions_stated);
    if (result) {
        close_readelf(judge);
        return NULL;
    }
    drop_functions_outside(judge);
    return judge;
}

// How many functions start at or below pc.
static size_t count_up_to(const struct check_readelf_listing *l, uint64_t pc)
{
    size_t low = 0, high = l->functions.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->functions.items[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// Ends at the next function's start, and at the end of the executable range; an odd end holds no last instruction.
static uint64_t function_end(const struct check_judge *judge, size_t index)
{
    const struct check_readelf_listing *l = &judge->listing;
    uint64_t end = range_of(judge->image, l->functions.items[index].start)->end & ~UINT64_C(1);
    if (index + 1 < l->functions.count && l->functions.items[index + 1].start < end)
        end = l->functions.items[index + 1].start;
    return end;
}

struct machine {
    uint32_t vsp;
    uint32_t reg[CORE_REGISTERS];
    uint32_t known;  // bit per register
    uint32_t popped; // bit per register
    bool ra_signed;
    runtime_read_word read;
    void *context;
};

static const char *pop(struct machine *m, unsigned core_mask)
{
    for (unsigned reg = 0; reg < CORE_REGISTERS; reg++) {
        if (!(core_mask >> reg & 1))
            continue;
        uint64_t word;
        if (!m->read(m->context, m->vsp, &word))
            return "memory that cannot be read";
        m->reg[reg] = (uint32_t)word;
        m->known |= UINT32_C(1) << reg;
        m->vsp += 4;
    }
    // A popped sp is written back last.
    if (core_mask >> SP & 1)
        m->vsp = m->reg[SP];
    m->popped |= core_mask;
    return NULL;
}

// Runs the steps. Returns NULL, or why not; *refused where the function says that it cannot be unwound.
static const char *run(struct machine *m, const struct check_readelf_step *steps, size_t step_count, bool *refused)
{
    for (size_t i = 0; i < step_count; i++) {
        const struct check_readelf_step *step = &steps[i];
        const char *reason = NULL;
        switch (step->what) {
        case CHECK_READELF_MOVE:
            m->vsp += (uint32_t)step->bytes;
            m->ra_signed |= step->ra_auth_code;
            break;
        case CHECK_READELF_SET:
            if (!(m->known >> step->reg & 1))
                reason = "a register whose value is not known";
            m->vsp = m->reg[step->reg];
            break;
        case CHECK_READELF_POP: reason = pop(m, step->core_mask); break;
        case CHECK_READELF_FINISH: return NULL;
        case CHECK_READELF_REFUSE: *refused = true; return NULL;
        case CHECK_READELF_UNKNOWN: reason = step->reason; break;
        }
        if (reason)
            return reason;
    }
    return NULL;
}

static void abstain(struct check_judgement *judgement, const char *reason)
{
    judgement->verdict = CHECK_VERDICT_ABSTAIN;
    judgement->reason = reason;
}

static void evaluate(const struct check_judge *judge, const struct check_readelf_function *function,
                     const struct arch_frame_regs *frame, runtime_read_word read, void *context,
                     struct check_judgement *judgement)
{
    struct machine m = {.read = read, .context = context};
    for (unsigned reg = 0; reg < CORE_REGISTERS; reg++)
        m.reg[reg] = (uint32_t)frame->reg[reg];
    m.known = (uint32_t)frame->valid;
    m.vsp = m.reg[SP];
    if (!(m.known >> SP & 1)) {
        abstain(judgement, "sp is not known");
        return;
    }
    bool refused = false;
    const char *reason = run(&m, judge->listing.steps.items + function->first_step, function->step_count, &refused);
    unsigned ra_reg = m.popped >> PC & 1 ? PC : LR;
    if (!reason && !refused && !(m.known >> ra_reg & 1))
        reason = "the return address is in a register that is not known";
    if (reason) {
        abstain(judgement, reason);
        return;
    }
    if (refused) {
        judgement->verdict = CHECK_VERDICT_CANTUNWIND;
        return;
    }
    judgement->verdict = CHECK_VERDICT_ROW;
    judgement->cfa = judgement->sp = m.vsp;
    judgement->ra = m.reg[ra_reg];
    judgement->ra_signed_known = true;
    judgement->ra_signed = m.ra_signed;
    // Restoring all three is not returning from a call: that leaves lr dead.
    judgement->signal_frame = m.popped >> SP & m.popped >> LR & m.popped >> PC & 1;
    for (unsigned slot = 0; slot < judge->image->arch->tracked_count; slot++) {
        unsigned reg = judge->image->arch->tracked[slot];
        judgement->tracked[slot] = m.reg[reg];
        if (!(m.known >> reg & 1))
            judgement->tracked_unknown |= (uint8_t)(1u << slot);
    }
}

static void at(struct check_judge *judge, const struct arch_frame_regs *frame, runtime_read_word read, void *context,
               struct check_judgement *judgement)
{
    const struct check_readelf_listing *l = &judge->listing;
    *judgement = (struct check_judgement){.verdict = CHECK_VERDICT_NO_ROW, .body_only_source = true, .end = UINT64_MAX};
    if (!judge->ascending) {
        abstain(judgement, "an index that is not in ascending order");
        return;
    }
    size_t below = count_up_to(l, frame->pc);
    if (below < l->functions.count)
        judgement->end = l->functions.items[below].start;
    if (!below)
        return;
    uint64_t end = function_end(judge, below - 1);
    if (frame->pc >= end) {
        judgement->start = end;
        return;
    }
    const struct check_readelf_function *function = &l->functions.items[below - 1];
    judgement->start = function->start;
    judgement->end = end;
    if (function->named_only)
        abstain(judgement, "a personality routine that readelf does not know");
    else
        evaluate(judge, function, frame, read, context, judgement);
}

static int boundaries(struct check_judge *judge, uint64_t **pcs, size_t *count, struct base_error *error)
{
    const struct check_readelf_listing *l = &judge->listing;
    uint64_t *list = malloc((2 * l->functions.count + 1) * sizeof *list);
    if (!list)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "boundaries");
    size_t used = 0;
    for (size_t i = 0; judge->ascending && i < l->functions.count; i++) {
        // Several entries may share an address, and one function's end may be the next one's start.
        const uint64_t edges[] = {l->functions.items[i].start, function_end(judge, i)};
        for (size_t edge = 0; edge < 2; edge++)
            if (!used || edges[edge] > list[used - 1])
                list[used++] = edges[edge];
    }
    *pcs = list;
    *count = used;
    return 0;
}

const struct check_judge_class check_judge_readelf = {
    .name = "readelf", .open = open_readelf, .at = at, .boundaries = boundaries, .close = close_readelf};
