// SPDX-License-Identifier: Apache-2.0
#include "qutc/lint.h"

#include "qutc/rows.h"

struct judged { // an instruction of the function that is being followed
    uint32_t pc, end;
    struct code_judgement judgement;
    uint32_t stated; // rule
    struct qut_rule followed;
    bool has_followed;
};

struct lint {
    struct qutc_rows rows;
    struct code_follower follower;
    struct qutc_lint_result *result;
    BASE_VECTOR(struct judged) judged;
    uint64_t unjudged, agree, unstated;
    bool no_memory;
};

static void visit(void *context, uint32_t pc, const struct code_instruction *in, const struct code_machine *machine,
                  const struct code_state *state)
{
    struct lint *lint = context;
    if (!lint->follower.is_final)
        return;
    uint32_t stated = cfi_row_list_at(&lint->rows.rows, pc);
    const struct qut_rule rule = lint->rows.rules.rules[stated];
    if (rule.kind != QUT_RULE_FRAME) {
        lint->unstated++;
        return;
    }
    struct code_judgement judgement = code_judge_rule(machine, state, &rule);
    if (judgement.verdict == CODE_AGREES) {
        lint->agree++;
    } else if (judgement.verdict == CODE_UNJUDGED) {
        lint->unjudged++;
    } else if (rule.flags & QUT_RULE_BODY_ONLY && in->flow != CODE_CALL) { // in a prologue or an epilogue
        lint->unstated++;
    } else {
        struct judged *judged = BASE_ADD(&lint->judged);
        if (!judged) {
            lint->no_memory = true;
            return;
        }
        *judged = (struct judged){.pc = pc, .end = pc + in->size_bytes, .judgement = judgement, .stated = stated};
        judged->has_followed = code_rule_of(machine, state, &judged->followed);
    }
}

static void report(struct lint *lint, const struct code_function *function, const struct judged *judged)
{
    struct qutc_lint_result *result = lint->result;
    uint64_t text_start = lint->rows.text_start;
    const struct qut_rule *stated = &lint->rows.rules.rules[judged->stated];
    struct qutc_lint_finding *last =
        result->findings.count ? &result->findings.items[result->findings.count - 1] : NULL;
    result->differ++;
    if (last && last->end == text_start + judged->pc && last->reg == judged->judgement.reg &&
        memcmp(&last->stated, stated, sizeof *stated) == 0 && last->has_followed == judged->has_followed &&
        memcmp(&last->followed, &judged->followed, sizeof judged->followed) == 0) {
        last->end = text_start + judged->end;
        return;
    }
    struct qutc_lint_finding *finding = BASE_ADD(&result->findings);
    if (!finding) {
        lint->no_memory = true;
        return;
    }
    *finding = (struct qutc_lint_finding){.pc = text_start + judged->pc,
                                          .end = text_start + judged->end,
                                          .function = text_start + function->pc,
                                          .reg = judged->judgement.reg,
                                          .stated = *stated,
                                          .followed = judged->followed,
                                          .has_followed = judged->has_followed};
}

static void done(void *context, const struct code_function *function, const struct code_walked *walked)
{
    struct lint *lint = context;
    struct qutc_lint_result *result = lint->result;
    if (!result->outcomes[walked->outcome]++)
        result->first[walked->outcome] = lint->rows.text_start + function->pc;
    result->functions++;
    if (walked->outcome == CODE_FOLLOWED) {
        result->instructions += walked->instructions;
        result->unsaid += walked->refused;
        result->agree += lint->agree;
        result->unjudged += lint->unjudged;
        result->unstated += lint->unstated;
        for (size_t i = 0; i < lint->judged.count; i++)
            report(lint, function, &lint->judged.items[i]);
    }
    lint->judged.count = 0;
    lint->agree = lint->unjudged = lint->unstated = 0;
}

int qutc_lint(const struct input_image *image, struct qutc_lint_result *result, struct base_error *error)
{
    struct qutc_compile_stats stats = {0};
    struct lint lint = {.rows = {.image = image, .stats = &stats, .error = error}, .result = result};
    *result = (struct qutc_lint_result){0};
    int status = qutc_rows_read(&lint.rows);
    if (status == 0 && !code_arch(image->arch)->read)
        status = base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "code of %s is not followed", image->arch->name);
    if (status == 0)
        status = code_follower_init(&lint.follower, image, lint.rows.text_start, lint.rows.text_end, &lint.rows.rows,
                                    &lint.rows.rules, error);
    if (status == 0) {
        lint.follower.visit = visit;
        lint.follower.context = &lint;
        status = code_follower_run(&lint.follower, done);
        code_follower_free(&lint.follower);
    }
    if (status == 0 && lint.no_memory)
        status = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "differences");
    base_vector_free(&lint.judged.vector);
    qutc_rows_free(&lint.rows);
    if (status != 0)
        qutc_lint_free(result);
    return status;
}

void qutc_lint_free(struct qutc_lint_result *result)
{
    base_vector_free(&result->findings.vector);
}
