// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/probe/probe_folder.h"
#include "tracer/cli/probe/probe_functions.h"
#include "tracer/cli/probe/probe_image.h"
#include "tracer/cli/probe/probe_library.h"
#include "tracer/cli/probe/probe_options.h"
#include "tracer/cli/probe/probe_output.h"
#include "tracer/cli/probe/probe_stacks.h"
#include "tracer/cli/record_go.h"
#include "tracer/probe/explain.h"
#include "tracer/probe/object.h"
#include "tracer/probe/parameters.h"
#include "tracer/probing/probing.h"
#include "tracer/traced/clock.h"
#include "tracer/traced/probe.h"

enum { SCRIPT_BYTES_MAX = 1 << 20, LINES_BYTES = 1 << 16 };

struct work {
    struct probe_options options;
    struct probe_script script;
    struct probe_functions functions; // that it means
    struct probe_folder folder;       // unless the recording is kept
    struct probe_output output;       // where it is
    const char *path;                 // of it
    struct traced_place *within;      // places within functions
};

// ---- the script

static char *copy_script(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy)
        memcpy(copy, text, length);
    else
        cli_report(stderr, "probe", "no memory");
    return copy;
}

// malloc's; NULL: it was said why. Of a file, or, where there is none, of one that comes with us.
static char *read_script(const char *path, size_t *length)
{
    FILE *file = fopen(path, "re");
    const struct probe_library_script *script = file ? NULL : cli_probe_library_find(path);
    if (script) {
        *length = script->length;
        return copy_script(script->text, script->length);
    }
    char *text = file ? malloc(SCRIPT_BYTES_MAX) : NULL;
    *length = text ? fread(text, 1, SCRIPT_BYTES_MAX, file) : 0;
    const int failed = !text || ferror(file) ? errno : *length == SCRIPT_BYTES_MAX ? EFBIG : 0;
    if (file)
        fclose(file);
    if (!failed)
        return text;
    const char *nearest = failed == ENOENT ? cli_probe_library_nearest(path) : NULL;
    if (nearest)
        cli_report(stderr, path, "%s, and no script of ours is called so: did you mean \"%s\"?", strerror(failed),
                   nearest);
    else
        cli_report(stderr, path, "%s%s", strerror(failed),
                   failed == ENOENT ? "; --list-scripts has those of ours" : "");
    free(text);
    return NULL;
}

static bool say_mistake(const struct probe_diagnostic *diagnostic, const char *name, const char *text, size_t length)
{
    char *shown = probe_diagnostic_show(diagnostic, name, text, length);
    fputs(shown ? shown : "qut: no memory\n", stderr);
    free(shown);
    return false;
}

static bool compile(struct work *work, const char *name, const char *text, size_t length)
{
    struct probe_diagnostic diagnostic;
    struct probe_resolver *resolver = cli_probe_functions_begin(&work->functions, &work->options.calls);
    if (!resolver) {
        cli_report(stderr, "probe", "no memory");
        return false;
    }
    if (probe_compile_with(text, length, resolver, &work->script, &diagnostic) == 0)
        return true;
    if (work->functions.status) // there is no such program, which was said
        return false;
    return say_mistake(&diagnostic, name, text, length);
}

// Where parameters were put in, mistakes are pointed at in what came out.
static bool put_and_compile(struct work *work, const char *name, const char *text, size_t length)
{
    const struct probe_options *options = &work->options;
    struct probe_diagnostic diagnostic;
    size_t put_length;
    char *put =
        probe_parameters_put(text, length, options->parameters, options->parameter_count, &put_length, &diagnostic);
    if (!put)
        return say_mistake(&diagnostic, name, text, length);
    const bool is_compiled = compile(work, name, put, put_length);
    free(put);
    return is_compiled;
}

// Of an object there is nothing to be asked of the program's debug information: its programs are as they are.
static bool take_object(struct work *work, const char *bytes, size_t length)
{
    const struct probe_options *options = &work->options;
    struct probe_object_fault fault;
    if (options->parameter_count) {
        cli_report(stderr, "--arg", "an object has no parameters: those are for the text of scripts");
        return false;
    }
    if (!cli_probe_functions_begin(&work->functions, &work->options.calls)) {
        cli_report(stderr, "probe", "no memory");
        return false;
    }
    if (probe_object_read(bytes, length, &work->script, &fault) == 0)
        return true;
    cli_report(stderr, options->script_path, "%s", fault.text);
    return false;
}

// CLI_GO_ON, or an exit status.
static int take_script(struct work *work)
{
    const struct probe_options *options = &work->options;
    size_t length = options->script ? strlen(options->script) : 0;
    char *text = options->script ? copy_script(options->script, length) : read_script(options->script_path, &length);
    const bool is_object = text && !options->script && probe_object_is(text, length);
    const bool is_compiled =
        is_object ? take_object(work, text, length)
                  : text && put_and_compile(work, options->script ? "-e" : options->script_path, text, length);
    free(text);
    return is_compiled ? CLI_GO_ON : work->functions.status ? work->functions.status : CLI_BAD;
}

// ---- where its programs run

static bool refuse(const char *name, const char *why)
{
    cli_report(stderr, name, "%s", why);
    return false;
}

static bool refuse_no_place(void)
{
    return refuse("probe", "the script has no place in a program: entry:NAME, or return:NAME");
}

static bool is_pattern(const char *text)
{
    const char *name = strchr(text, '!');
    return (*text != '!' && strlen(text) <= TRACED_PATTERN_BYTES && (!name || name[1])) ||
           refuse(text, "is no [MODULE!]NAME");
}

static bool take_places(struct work *work, struct traced_probe *probe)
{
    struct calls_options *calls = &work->options.calls;
    work->within = calloc(work->script.places.count + 1, sizeof *work->within);
    if (!work->within)
        return refuse("probe", "no memory");
    for (size_t i = 0; i < work->script.places.count; i++) {
        const struct probe_place *place = &work->script.places.items[i];
        if (!qut_probe_is_inside(place->kind))
            continue;
        if (!is_pattern(place->pattern) || (place->caller && !is_pattern(place->caller)))
            return false;
        if (place->kind == QUT_PROBE_PLACE) {
            if (probe->place_count == TRACED_PLACES_MAX)
                return refuse("probe", "the script has more than 64 places within functions");
            work->within[probe->place_count++] = (struct traced_place){.pattern = place->pattern,
                                                                       .offset_bytes = place->offset_bytes,
                                                                       .file = place->file,
                                                                       .line = place->line,
                                                                       .programs = UINT32_C(1) << place->program};
            continue;
        }
        if (calls->traced.pattern_count == CALLS_PATTERNS_MAX)
            return refuse("probe", "the script has more than 256 places");
        const size_t pattern = cli_probe_pattern(calls, place->pattern);
        // Marks come last: what the script names itself is there before.
        if (qut_probe_is_mark(place->kind) && !probe->programs[pattern])
            calls->traced.is_optional[pattern] = true;
        probe->programs[pattern] |= UINT32_C(1) << place->program;
        probe->callers[place->program] = place->caller;
    }
    if (!calls->traced.pattern_count && !probe->place_count)
        return refuse_no_place();
    probe->places = work->within;
    calls->traced.patterns = calls->patterns;
    cli_probe_functions_tell(&work->functions, &work->script, probe);
    calls->traced.without_running = true;
    calls->traced.probe = probe;
    return true;
}

// ---- the recording, of which nothing is kept without -o

static int go(struct work *work, struct probing *probing, int argc, char **argv)
{
    struct record_command_options record;
    struct calls_options *calls = &work->options.calls;
    int status = cli_calls_record_options(calls, "probe", &record, argc, argv);
    if (status != CLI_GO_ON)
        return status;
    cli_probe_output_join(&work->output, probing, &record);
    record.calls = &calls->traced;
    record.asked = calls;
    record.settings.call_ring_bytes = calls->ring_bytes;
    return cli_record_go(&record);
}

// Without them stacks are shown by their numbers.
static struct probe_stacks *read_stacks(struct work *work, struct probe_stacks_known *known)
{
    struct base_error error = {0};
    // Else it was said why not. A file may have been there before.
    const bool is_recorded = access(work->path, F_OK) == 0 && (!work->output.path || work->output.fd >= 0);
    if (!is_recorded || !cli_probe_takes_stacks(&work->script))
        return NULL;
    if (cli_probe_stacks_read(known, work->path, &error) == 0)
        return &known->stacks;
    cli_report_error(stderr, "stacks", &error);
    return NULL;
}

static void say_over(const struct probing_over *over)
{
    cli_report(
        stderr, "--budget",
        "probes took %.1f %% of the processor time of process %u, in %.2f s of it: they are switched off, and the "
        "program goes on without them",
        over->percent, over->pid, over->cpu_s);
}

static int say_what_is_missing(const struct probing_result *result)
{
    if (!result->is_whole)
        cli_report(stderr, "standard output", "not all could be written");
    if (result->interpreted)
        cli_report(stderr, NULL,
                   "in %s of the processes programs were interpreted, which takes longer: no machine code: %s",
                   base_quantity_count(result->interpreted).text, strerror(result->interpreted_error));
    if (result->lost_records)
        cli_report(stderr, NULL, "%s records of printf had no room: they came faster than they could be shown",
                   base_quantity_count(result->lost_records).text);
    if (result->untold_stacks)
        cli_report(stderr, NULL,
                   "%s times a stack was shown by a number that is not told: more than 16,384 were shown while the "
                   "program ran",
                   base_quantity_count(result->untold_stacks).text);
    if (result->unknown_stacks)
        cli_report(stderr, NULL, "%s times a stack is shown by its number alone: its frames had no room",
                   base_quantity_count(result->unknown_stacks).text);
    if (result->unlisted_calls)
        cli_report(stderr, NULL, "%s calls were so deep, or jumped so often, that it is not known how they ended",
                   base_quantity_count(result->unlisted_calls).text);
    const bool is_all = result->is_whole && !result->is_over && !result->lost_records && !result->untold_stacks &&
                        !result->unlisted_calls && !result->unknown_stacks;
    return is_all ? CLI_OK : CLI_NO;
}

static uint64_t every_ns(const struct probe_options *options)
{
    enum { EVERY_MS = 100, MS_NS = 1000000 };
    return (uint64_t)(options->every_ms ? options->every_ms : (uint32_t)EVERY_MS) * MS_NS;
}

static bool begin_output(struct work *work)
{
    cli_probe_output_begin(&work->output, work->options.output);
    work->path = work->output.path;
    if (work->path)
        return true;
    work->path = work->folder.path;
    return cli_probe_folder_make(&work->folder) && cli_calls_pass(&work->options.calls, "--output", work->path) == 0;
}

static void end_folder(struct work *work)
{
    if (!work->output.path)
        cli_probe_folder_remove(&work->folder);
}

static int probe(struct work *work, int argc, char **argv)
{
    struct probe_stacks_live live;
    if (!begin_output(work))
        return CLI_BAD;
    cli_probe_stacks_live_begin(&live, work->path);
    const struct probing_options options = {.script = &work->script,
                                            .out = stdout,
                                            .said = stderr,
                                            .budget_permille = work->options.budget_permille,
                                            .interprets = work->options.interprets,
                                            .tells_calls = work->options.tells_calls,
                                            .say_over = say_over,
                                            .every_ns = work->output.path ? every_ns(&work->options) : 0,
                                            .live = cli_probe_takes_stacks(&work->script) ? &live.stacks : NULL,
                                            .form = work->options.json         ? PROBING_JSON
                                                    : work->options.prometheus ? PROBING_PROMETHEUS
                                                                               : PROBING_TEXT};
    struct base_error error = {0};
    setvbuf(stdout, NULL, _IOLBF, LINES_BYTES); // a command may write there, too: not within our lines
    struct probing *probing = probing_begin(&options, &error);
    if (!probing) {
        end_folder(work);
        cli_report_error(stderr, "probe", &error);
        return CLI_BAD;
    }
    struct probe_stacks_known known = {.names = NULL};
    struct probe_stacks *stacks = NULL;
    int status = CLI_BAD;
    if (take_places(work, probing_memory(probing))) {
        status = go(work, probing, argc, argv);
        cli_probe_stacks_live_stop(&live);
        stacks = read_stacks(work, &known);
    }
    end_folder(work);
    const struct probing_result result = probing_end(probing, stacks);
    cli_probe_stacks_free(&known);
    cli_probe_stacks_live_end(&live);
    const int kept = cli_probe_output_end(&work->output, &result.track, work->options.quiet);
    const int missing = say_what_is_missing(&result);
    return status ? status : missing ? missing : kept;
}

static int explain(struct work *work)
{
    const bool has_program = work->options.calls.pid || work->options.calls.command;
    struct probe_counts *counts = has_program ? cli_probe_functions_count(&work->functions, &work->script) : NULL;
    if (work->functions.status)
        return work->functions.status;
    char *text = probe_explain(&work->script, counts);
    if (text)
        fputs(text, stdout);
    else
        cli_report(stderr, "probe", "no memory");
    const int status = text ? CLI_OK : CLI_BAD;
    free(counts);
    free(text);
    return status;
}

static int list(struct work *work)
{
    struct calls_options *calls = &work->options.calls;
    for (size_t i = 0; i < work->script.places.count; i++)
        if (qut_probe_is_inside(work->script.places.items[i].kind) &&
            !qut_probe_is_mark(work->script.places.items[i].kind))
            cli_probe_pattern(calls, work->script.places.items[i].pattern);
    calls->traced.patterns = calls->patterns;
    calls->lists_probes = true;
    return calls->traced.pattern_count || refuse_no_place() ? cli_calls_list(calls) : CLI_BAD;
}

static int probe_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct work *work = calloc(1, sizeof *work);
    if (!work) {
        cli_report(stderr, "probe", "no memory");
        return CLI_BAD;
    }
    int status = cli_probe_options_parse(&work->options, argc, argv);
    if (status == CLI_GO_ON && work->options.list_scripts)
        status = cli_probe_library_list();
    if (status == CLI_GO_ON && !work->options.explain && !work->options.image && !traced_is_possible()) {
        cli_report(stderr, "probe",
                   "not in this build: it is for x86-64, with the decoder that -Dzydis=enabled asks for");
        status = CLI_BAD;
    }
    if (status == CLI_GO_ON && (work->options.script || work->options.script_path))
        status = take_script(work);
    if (status == CLI_GO_ON)
        status = work->options.list      ? list(work)
                 : work->options.explain ? explain(work)
                 : work->options.image   ? cli_probe_image_write(&work->script, work->options.image)
                                         : probe(work, argc, argv);
    cli_probe_functions_end(&work->functions);
    probe_script_free(&work->script);
    free(work->within);
    free(work);
    return status;
}

const struct cli_command command_probe = {
    "probe", "run a script at the entries and exits of functions, and put everything back", probe_command, NULL};
