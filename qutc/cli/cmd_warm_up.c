// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <qutc/warm_up.h>

#include "base/json.h"
#include "cli/progress.h"
#include "qutc/cli/options.h"

struct told {
    const struct cli_options *options;
    struct progress progress;
    struct base_json json;
};

static const char *const outcome_names[QUTC_WARM_UP_OUTCOMES] = {
    [QUTC_WARM_UP_COMPILED] = "compiled",
    [QUTC_WARM_UP_KEPT] = "up to date",
    [QUTC_WARM_UP_NO_UNWIND] = "without unwind information",
    [QUTC_WARM_UP_TOO_LARGE] = "too large",
    [QUTC_WARM_UP_FAILED] = "failed",
};

static void print_step(const struct qutc_warm_up_step *step)
{
    if (step->outcome != QUTC_WARM_UP_COMPILED)
        return;
    cli_print_name(stdout, step->name);
    printf(": bytes=%" PRIu64 " ms=%.1f\n", step->table_bytes, (double)step->time_ns / 1e6);
}

static void print_step_json(struct base_json *json, const struct qutc_warm_up_step *step)
{
    base_json_open(json, NULL, '{');
    base_json_string(json, "file", step->name);
    base_json_string(json, "status", outcome_names[step->outcome]);
    if (*step->reason)
        base_json_string(json, "reason", step->reason);
    base_json_number(json, "table_bytes", step->table_bytes);
    base_json_real(json, "ms", (double)step->time_ns / 1e6, 1);
    base_json_close(json, '}');
}

static int tell(void *context, const struct qutc_warm_up_step *step)
{
    struct told *told = context;
    cli_progress_end(&told->progress);
    if (step->outcome == QUTC_WARM_UP_FAILED || step->outcome == QUTC_WARM_UP_TOO_LARGE)
        cli_report(stderr, step->name, "%s", step->reason);
    if (told->options->json)
        print_step_json(&told->json, step);
    else if (!told->options->quiet)
        print_step(step);
    cli_progress_step_to(&told->progress, step->done, step->total, step->name);
    return ferror(stdout);
}

static void print_result(const struct qutc_warm_up_result *result)
{
    for (unsigned i = 0; i < QUTC_WARM_UP_OUTCOMES; i++)
        if (result->outcomes[i] || i <= QUTC_WARM_UP_KEPT)
            printf("%s%" PRIu64 " %s", i ? ", " : "total: ", result->outcomes[i], outcome_names[i]);
    if (result->left)
        printf(", %" PRIu64 " left", result->left);
    if (result->dropped)
        printf(", %" PRIu64 " dropped (%.1f MiB)", result->dropped, (double)result->dropped_bytes / (1 << 20));
    printf(": %.1f MiB made, %.1f MiB in the cache, %.2f s, %.2f s of processor time\n",
           (double)result->compiled_bytes / (1 << 20), (double)result->cache_bytes / (1 << 20),
           (double)result->time_ns / 1e9, (double)result->cpu_time_ns / 1e9);
}

static void print_result_json(struct base_json *json, const struct qutc_warm_up_result *result)
{
    static const char *const keys[QUTC_WARM_UP_OUTCOMES] = {"compiled", "up_to_date", "without_unwind_information",
                                                            "too_large", "failed"};
    base_json_close(json, ']');
    for (unsigned i = 0; i < QUTC_WARM_UP_OUTCOMES; i++)
        base_json_number(json, keys[i], result->outcomes[i]);
    base_json_number(json, "left", result->left);
    base_json_number(json, "unreadable", result->unreadable);
    base_json_number(json, "dropped", result->dropped);
    base_json_number(json, "dropped_bytes", result->dropped_bytes);
    base_json_number(json, "compiled_bytes", result->compiled_bytes);
    base_json_number(json, "cache_bytes", result->cache_bytes);
    base_json_real(json, "seconds", (double)result->time_ns / 1e9, 3);
    base_json_real(json, "processor_seconds", (double)result->cpu_time_ns / 1e9, 3);
    base_json_close(json, '}');
    putchar('\n');
}

// Where it is not allowed, or there is no such class, the run is as good.
static void step_back(void)
{
    const struct sched_param parameters = {0};
    setpriority(PRIO_PROCESS, 0, 19);
    sched_setscheduler(0, SCHED_IDLE, &parameters);
}

static int run_warm_up(const struct cli_options *options)
{
    struct told told = {.options = options, .json = {.stream = stdout}};
    const struct qutc_warm_up_options warm_up = {
        .size = sizeof warm_up,
        .cache_directory = options->output,
        .debug_root = options->image.debug_root,
        .small = options->small,
        .pids = options->pids,
        .pid_count = options->pid_count,
        .paths = (const char *const *)options->operands,
        .path_count = (size_t)options->operand_count,
        .system = options->system,
        .cpu_share_percent = options->cpu_share_percent,
        .memory_bytes = options->memory_bytes,
        .budget_bytes = options->budget_bytes,
        .max_age_seconds = options->max_age_seconds,
        .step = tell,
        .step_context = &told,
    };
    struct qutc_warm_up_result result;
    char reason[256];
    cli_progress_begin(&told.progress, options->command, options->quiet);
    if (options->json) {
        base_json_open(&told.json, NULL, '{');
        base_json_open(&told.json, "files", '[');
    }
    step_back();
    enum qutc_warm_up_status status = qutc_warm_up(&warm_up, &result, reason, sizeof reason);
    cli_progress_end(&told.progress);
    if (options->json)
        print_result_json(&told.json, &result);
    else if (!options->quiet)
        print_result(&result);
    if (*reason)
        cli_report(stderr, options->command, "%s", reason);
    if (result.unreadable)
        cli_report(stderr, options->command, "%" PRIu64 " files or directories could not be read", result.unreadable);
    return status == QUTC_WARM_UP_WHOLE ? CLI_OK : status == QUTC_WARM_UP_STUCK ? CLI_BAD : CLI_NO;
}

static const struct cli_usage usage = {
    .run = run_warm_up,
    .option_set = CLI_OPT_OUTPUT | CLI_OPT_SMALL | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM | CLI_OPT_DEBUG_FILES |
                  CLI_OPT_WARM_UP,
    .operands_min = 1,
    .operands_max = -1,
    .help =
        "Usage: qutc warm-up [--cpu-share PERCENT] [--memory SIZE] [--budget SIZE] [--max-age DAYS] INPUT...\n\n"
        "Compiles what the cache (-o DIR, else as for compile) does not have: what --pid has mapped comes first, then "
        "libc, ART\n"
        "and its boot images, then the rest of INPUT: files, APKs, directories. Runs with the lowest priority; may be "
        "killed at\n"
        "any moment, and goes on where it stopped. Of two at once in one cache the second leaves, with status 1.\n\n"
        "Example: qutc warm-up --cpu-share 10 --budget 64M --pid 4711 /data/app/com.example\n",
};
const struct cli_command command_warm_up = {"warm-up", "fill the cache in the background, in order of need", cli_run,
                                            &usage};
