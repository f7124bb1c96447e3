// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/table/rule_text.h"

enum { WRONG_LINES_MAX = 400 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static const char *module_name(const struct oracle *oracle, uint64_t pc, uint64_t *vaddr)
{
    for (size_t i = 0; i < oracle->modules.count; i++) {
        const struct oracle_module *module = &oracle->modules.items[i];
        if (pc >= module->start && pc < module->end) {
            *vaddr = pc - module->load_bias;
            return base_name(module->file->path);
        }
    }
    *vaddr = pc;
    return "-";
}

// A pc counts where its worst answer stands.
static enum verdict worst_of(const struct judged_pc *at)
{
    enum verdict worst = VERDICT_EXACT;
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        if (at->counts[v])
            worst = (enum verdict)v;
    return worst;
}

struct sums {
    uint64_t instructions[VERDICT_COUNT], pcs[VERDICT_COUNT];
    uint64_t known_instructions, known_pcs;
    uint64_t refusal_instructions[QUT_REFUSAL_END], refusal_pcs[QUT_REFUSAL_END];
    uint64_t spoiled_pcs, spoiled_unflagged;
    unsigned wrong_lines;
};

static uint64_t wrong_count(const struct judged_pc *at)
{
    uint64_t count = 0;
    for (unsigned v = VERDICT_WRONG_CFA; v < VERDICT_COUNT; v++)
        count += at->counts[v];
    return count;
}

static void report_wrong(const struct oracle *oracle, const struct judged_pc *at, const char *known, FILE *out)
{
    char rule[TABLE_RULE_TEXT_BYTES];
    const struct arch *arch = oracle->guest.arch;
    fprintf(out, "wrong %s 0x%" PRIx64 " %s", base_name(at->file->path), at->vaddr, verdict_names[at->wrong]);
    if (at->wrong == VERDICT_WRONG_REGISTER)
        fprintf(out, "(%s)", arch->register_names[arch->tracked[at->wrong_slot]]);
    fprintf(out, " times=%" PRIu64 " wanted=0x%" PRIx64 " given=0x%" PRIx64 " known=%s rule: %s\n", wrong_count(at),
            at->wanted, at->given, known ? known : "no", table_rule_text(arch, &at->rule, rule));
}

static void add_pc(struct oracle *oracle, const struct judged_pc *at, struct sums *sums, FILE *out)
{
    enum verdict worst = worst_of(at);
    uint64_t executed = 0;
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        executed += at->counts[v];
    if (!executed)
        return;
    if (at->spoiled) {
        // Where there is no caller, a wrong rule for it does no harm.
        sums->spoiled_pcs += at->judged;
        sums->spoiled_unflagged += at->judged && at->counts[VERDICT_EXACT] + at->counts[VERDICT_BODY_RIGHT] > 0;
        return;
    }
    const char *known = verdict_is_wrong(worst) ? known_mistake(&oracle->known, at->file, at->pc) : NULL;
    if (known) {
        sums->known_instructions += executed;
        sums->known_pcs++;
    } else {
        for (unsigned v = 0; v < VERDICT_COUNT; v++)
            sums->instructions[v] += at->counts[v];
        sums->pcs[worst]++;
    }
    if (at->without_rule == VERDICT_REFUSED) {
        sums->refusal_instructions[at->rule.reason] += executed;
        sums->refusal_pcs[at->rule.reason]++;
    }
    if (verdict_is_wrong(worst) && sums->wrong_lines++ < WRONG_LINES_MAX)
        report_wrong(oracle, at, known, out);
    else if (worst >= VERDICT_DOUBTFUL && !verdict_is_wrong(worst))
        fprintf(out, "without %s %s 0x%" PRIx64 " times=%" PRIu64 "\n", verdict_names[worst],
                at->file ? base_name(at->file->path) : "-", at->file ? at->vaddr : at->pc, executed);
}

static void report_walks(const struct oracle *oracle, FILE *out)
{
    const struct whole_walks *walks = &oracle->walks;
    uint64_t vaddr, left_vaddr;
    fprintf(out,
            "walks %" PRIu64 " equal %" PRIu64 " wrong %" PRIu64 " wrong_but_marked %" PRIu64 " wrong_by_known %" PRIu64
            " frames %" PRIu64 " wrong_but_doubtful %" PRIu64 "\n",
            walks->taken, walks->equal, walks->wrong, walks->wrong_but_marked, walks->wrong_by_known, walks->frames,
            walks->wrong_but_doubtful);
    for (unsigned reason = 0; reason < QUT_END_REASON_COUNT; reason++) {
        if (!walks->early[reason])
            continue;
        const char *module = module_name(oracle, walks->early_pc[reason], &vaddr);
        fprintf(out, "early %" PRIu64 " %s; the last at %s 0x%" PRIx64 "\n", walks->early[reason],
                qut_end_reason_name(reason), module, vaddr);
    }
    for (uint64_t i = 0; i < walks->wrong && i < WRONG_WALKS_KEPT; i++) {
        const struct wrong_walk *wrong = &walks->wrongs[i];
        const char *module = module_name(oracle, wrong->start_pc, &vaddr);
        const char *left_module = module_name(oracle, wrong->left_pc, &left_vaddr);
        fprintf(out,
                "wrong_walk from %s 0x%" PRIx64 " frame %u, behind %s 0x%" PRIx64 ": wanted=0x%" PRIx64
                " given=0x%" PRIx64 "\n",
                module, vaddr, wrong->depth, left_module, left_vaddr, wrong->wanted, wrong->given);
    }
}

void report(struct oracle *oracle, FILE *out)
{
    struct sums sums = {0};
    const struct shadow *shadow = &oracle->shadow;
    fprintf(out, "arch %s\n", oracle->guest.arch->name);
    for (size_t i = 0; i < oracle->judge.capacity; i++)
        if (oracle->judge.slots[i])
            add_pc(oracle, oracle->judge.slots[i], &sums, out);
    for (unsigned v = 0; v < VERDICT_COUNT; v++)
        fprintf(out, "verdict %s %" PRIu64 " %" PRIu64 "\n", verdict_names[v], sums.instructions[v], sums.pcs[v]);
    fprintf(out, "verdict known_mistake %" PRIu64 " %" PRIu64 "\n", sums.known_instructions, sums.known_pcs);
    for (unsigned r = 0; r < QUT_REFUSAL_END; r++)
        if (sums.refusal_pcs[r])
            fprintf(out, "refusal %s %" PRIu64 " %" PRIu64 "\n", qut_refusal_name(r), sums.refusal_instructions[r],
                    sums.refusal_pcs[r]);
    fprintf(out, "spoiled %" PRIu64 " unflagged %" PRIu64 "\n", sums.spoiled_pcs, sums.spoiled_unflagged);
    for (const struct oracle_file *file = oracle->modules.files; file; file = file->next)
        fprintf(out, "file %s %s%s\n", file->path, file->has_table ? "table" : "no table: ", file->reason);
    report_walks(oracle, out);
    fprintf(out,
            "shadow calls %" PRIu64 " returns %" PRIu64 " unwound %" PRIu64 " signals %" PRIu64
            " signal_returns %" PRIu64 " signal_mismatches %" PRIu64 " deepest %zu\n",
            shadow->calls, shadow->returns, shadow->unwound, shadow->signals, shadow->signal_returns,
            shadow->signal_mismatches, shadow->deepest);
    fprintf(out, "other_threads %" PRIu64 "\n", oracle->other_threads);
    fprintf(out, "end\n");
}
