// SPDX-License-Identifier: Apache-2.0
#include "qutc/lint.h"

#include <stdlib.h>

#include "qutc/input/go_functions.h"
#include "qutc/rows.h"

struct lint {
    struct qutc_rows rows;
    struct qutc_lint_result *result;
};

// Instructions that follow each other and differ alike are one finding.
static bool report(struct lint *lint, const struct code_function *function, const struct code_difference *difference)
{
    struct qutc_lint_result *result = lint->result;
    uint64_t text_start = lint->rows.text_start;
    const struct qut_rule *rules = lint->rows.rules.rules;
    struct qutc_lint_finding *last =
        result->findings.count ? &result->findings.items[result->findings.count - 1] : NULL;
    bool has_followed = difference->followed != CFI_RULE_HOLE_ID;
    if (last && last->end == text_start + difference->pc && last->function == text_start + function->pc &&
        last->reg == difference->reg && memcmp(&last->stated, &rules[difference->stated], sizeof *rules) == 0 &&
        last->has_followed == has_followed &&
        memcmp(&last->followed, &rules[difference->followed], sizeof *rules) == 0) {
        last->end = text_start + difference->end;
        last->instructions++;
        return true;
    }
    struct qutc_lint_finding *finding = BASE_ADD(&result->findings);
    if (!finding)
        return false;
    *finding = (struct qutc_lint_finding){.pc = text_start + difference->pc,
                                          .end = text_start + difference->end,
                                          .function = text_start + function->pc,
                                          .name = function->name,
                                          .name_length = function->name_length,
                                          .instructions = 1,
                                          .reg = difference->reg,
                                          .stated = rules[difference->stated],
                                          .followed = rules[difference->followed],
                                          .has_followed = has_followed};
    return true;
}

static bool tell(void *context, const struct code_compared *compared)
{
    struct lint *lint = context;
    struct qutc_lint_result *result = lint->result;
    if (!result->outcomes[compared->walked->outcome]++)
        result->first[compared->walked->outcome] = lint->rows.text_start + compared->function->pc;
    result->functions++;
    if (compared->walked->outcome != CODE_FOLLOWED)
        return true;
    result->instructions += compared->walked->instructions;
    result->agree += compared->agree;
    result->unjudged += compared->unjudged;
    result->unstated += compared->unstated;
    result->spoiled += compared->count > 0;
    bool good = true;
    for (size_t i = 0; i < compared->count && good; i++)
        good = report(lint, compared->function, &compared->differences[i]);
    return good;
}

static int by_pc(const void *a, const void *b)
{
    const struct qutc_lint_finding *x = a, *y = b;
    if (x->pc != y->pc)
        return x->pc < y->pc ? -1 : 1;
    return (x->function > y->function) - (x->function < y->function);
}

// Code that several functions go on in differs once.
static void tidy(struct qutc_lint_result *result)
{
    size_t count = 0;
    if (result->findings.count)
        qsort(result->findings.items, result->findings.count, sizeof *result->findings.items, by_pc);
    result->differ = 0;
    for (size_t i = 0; i < result->findings.count; i++) {
        struct qutc_lint_finding *finding = &result->findings.items[i];
        const struct qutc_lint_finding *last = count ? &result->findings.items[count - 1] : NULL;
        if (last && last->pc == finding->pc && last->end == finding->end &&
            memcmp(&last->followed, &finding->followed, sizeof last->followed) == 0)
            continue;
        result->differ += finding->instructions;
        result->findings.items[count++] = *finding;
    }
    result->findings.count = count;
}

int qutc_lint(const struct input_image *image, struct qutc_lint_result *result, struct base_error *error)
{
    struct qutc_compile_stats stats = {0};
    struct lint lint = {.rows = {.image = image, .stats = &stats, .error = error, .as_stated = true}, .result = result};
    struct input_go_functions go;
    const struct code_comparison comparison = {
        .tell = tell, .context = &lint, .frames_only = input_go_find(image, &go)};
    *result = (struct qutc_lint_result){0};
    int status = qutc_rows_read(&lint.rows);
    if (status == 0)
        status = code_compare(image, lint.rows.text_start, lint.rows.text_end, &lint.rows.rows, &lint.rows.rules,
                              &comparison, error);
    tidy(result);
    qutc_rows_free(&lint.rows);
    if (status != 0)
        qutc_lint_free(result);
    return status;
}

void qutc_lint_free(struct qutc_lint_result *result)
{
    base_vector_free(&result->findings.vector);
}
