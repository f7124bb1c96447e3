// SPDX-License-Identifier: Apache-2.0
// Plans files and prints what came of them: a line for each file, and, with --functions, one for each function, for
// readers that judge by other means. With --cache DIRECTORY first, plans are kept there.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock_inline.h"
#include "tracer/calls/plan.h"

static void print_function(const struct calls_plan *plan, const struct qut_plan_function *f)
{
    printf("f %" PRIx64 " %" PRIx32 " %s %u %u %u %" PRIx64 " ", f->entry_vaddr, f->size_bytes,
           f->kind == QUT_PLAN_REFUSED ? calls_refusal_text(f->refusal) : calls_kind_text(f->kind), f->patch_at,
           f->patch_bytes, f->moved_bytes, f->pad_vaddr);
    for (unsigned i = 0; i < f->instruction_count; i++)
        printf("%s%u/%u", i ? "," : "", f->instructions[i].length, f->instructions[i].move);
    printf(" %s\n", calls_plan_name(plan, f));
}

static int print_plan(const char *path, const char *directory, bool functions)
{
    struct calls_plan *plan;
    struct base_error error = {0};
    char text[256];
    uint64_t start_ns = base_clock_ns(CLOCK_MONOTONIC);
    struct calls_plan_cache cache = {.directory = directory};
    int result =
        directory ? calls_plan_get(path, NULL, &cache, &plan, &error) : calls_plan_make(path, NULL, &plan, &error);
    if (result != 0) {
        printf("%s: %s\n", path, base_error_text(&error, text, sizeof text));
        return error.reason == BASE_ERR_NO_MEMORY;
    }
    uint64_t time_ns = base_clock_ns(CLOCK_MONOTONIC) - start_ns;
    printf("%s: functions %u fragments %u", path, plan->header->function_count, plan->header->fragment_count);
    for (unsigned i = 0; i < QUT_PLAN_KIND_END; i++)
        printf(" %s %u", calls_kind_text(i), plan->kind_count[i]);
    for (unsigned i = 1; i < QUT_PLAN_REFUSAL_END; i++)
        if (plan->refusal_count[i])
            printf(" | %s %u", calls_refusal_text(i), plan->refusal_count[i]);
    printf(" | ms %" PRIu64 "\n", time_ns / 1000000);
    for (uint32_t i = 0; functions && i < plan->header->function_count; i++)
        print_function(plan, &plan->functions[i]);
    calls_plan_free(plan);
    return 0;
}

int main(int argc, char **argv)
{
    const char *directory = argc > 2 && strcmp(argv[1], "--cache") == 0 ? argv[2] : NULL;
    int first = directory ? 3 : 1, result = 0;
    bool functions = argc > first && strcmp(argv[first], "--functions") == 0;
    for (int i = first + functions; i < argc; i++)
        result |= print_plan(argv[i], directory, functions);
    return result;
}
