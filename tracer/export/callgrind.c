// SPDX-License-Identifier: Apache-2.0
// Callgrind's text (callgrind_annotate, KCachegrind): what functions cost, by line, and who calls whom. Samples do not
// tell how often a function was called: the number of a call is that of stacks in which it stands. A call counts once
// in a stack, and a function that calls itself is no call.
#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "base/vector.h"
#include "tracer/export/clean.h"
#include "tracer/export/export.h"
#include "tracer/export/losses.h"
#include "tracer/export/sums.h"

enum { NO_CALL = UINT32_MAX };

struct cost {
    uint32_t function, line, called; // ids of names; called NO_CALL: its own cost
    uint32_t stack;                  // the last one that was added: a call counts once in each
    uint64_t value, count;
};

struct writer {
    const struct selection *selection;
    const struct names *names;
    const struct export_options *options;
    struct sink *sink;
    BASE_VECTOR(struct cost) costs;
    struct base_hash_index index;
    uint32_t stack;
    bool *is_said; // of each function's name: its number is enough
};

static bool add(struct writer *writer, struct cost added)
{
    uint64_t hash = base_hash_word(base_hash_word(0, (uint64_t)added.function << 32 | added.called), added.line);
    struct cost *found = NULL;
    for (uint32_t step = 0, i; !found && (i = base_hash_next(&writer->index, hash, &step)) != BASE_HASH_NONE;) {
        struct cost *cost = &writer->costs.items[i];
        if (cost->function == added.function && cost->called == added.called && cost->line == added.line)
            found = cost;
    }
    if (found && found->stack == writer->stack && added.called != NO_CALL)
        return true;
    if (!found) {
        found = BASE_ADD(&writer->costs);
        if (!found || !base_hash_add(&writer->index, hash, (uint32_t)writer->costs.count - 1))
            return false;
        *found = (struct cost){.function = added.function, .line = added.line, .called = added.called};
    }
    found->stack = writer->stack;
    found->value += added.value;
    found->count += added.count;
    return true;
}

static uint32_t without_frames(const struct writer *writer)
{
    return (uint32_t)names_id_count(writer->names);
}

static bool add_stack(struct writer *writer, const struct sum *sum)
{
    struct cost cost = {.called = NO_CALL, .value = sum->of[writer->options->weight], .count = 1};
    bool is_good = true;
    writer->stack++;
    if (!sum->node) {
        cost.function = without_frames(writer);
        return add(writer, cost);
    }
    for (uint32_t node = sum->node; node && is_good; node = writer->selection->trace.nodes[node].parent)
        for (size_t i = 0; i < names_count(writer->names, node) && is_good; i++) {
            const struct name *name = names_at(writer->names, node, i);
            cost.function = name->id;
            cost.line = name->line;
            if (cost.function != cost.called)
                is_good = add(writer, cost);
            cost.called = name->id;
        }
    return is_good;
}

static bool gather(struct writer *writer)
{
    const struct trace *trace = &writer->selection->trace;
    struct sums sums = {0};
    bool is_good = true;
    for (size_t t = 0; t < trace->thread_count && is_good; t++) {
        is_good = export_sums_of_thread(&sums, writer->selection, &trace->threads[t], false) == 0;
        for (size_t i = 0; i < sums.count && is_good; i++)
            if (sums.items[i].of[writer->options->weight])
                is_good = add_stack(writer, &sums.items[i]);
        if (writer->options->progress)
            writer->options->progress(writer->options->progress_context, t + 1, trace->thread_count);
    }
    export_sums_free(&sums);
    return is_good;
}

static int compare_costs(const void *a, const void *b)
{
    const struct cost *left = a, *right = b;
    if (left->function != right->function)
        return left->function < right->function ? -1 : 1;
    uint32_t left_call = left->called + 1, right_call = right->called + 1; // own costs first
    if (left_call != right_call)
        return left_call < right_call ? -1 : 1;
    return (left->line > right->line) - (left->line < right->line);
}

static void put_numbers(struct writer *writer, uint64_t first, uint64_t second)
{
    sink_number(writer->sink, first);
    sink_text(writer->sink, " ");
    sink_number(writer->sink, second);
    sink_text(writer->sink, "\n");
}

// "fn=(3) main": the text only where the number is new.
static void put_function(struct writer *writer, const char *prefix, uint32_t id)
{
    static const struct name none = {.function = "[no frames]", .module = ""};
    const struct name *name = id == without_frames(writer) ? &none : names_by_id(writer->names, id);
    sink_text(writer->sink, prefix);
    sink_text(writer->sink, "ob=");
    export_clean_text(writer->sink, *name->module ? name->module : "???", 0, 0);
    sink_text(writer->sink, *prefix ? "\ncfi=" : "\nfl=");
    export_clean_text(writer->sink, name->file ? name->file : "???", 0, 0);
    sink_text(writer->sink, *prefix ? "\ncfn=(" : "\nfn=(");
    sink_number(writer->sink, id + 1);
    sink_text(writer->sink, ")");
    if (!writer->is_said[id]) {
        sink_text(writer->sink, " ");
        export_clean_text(writer->sink, name->function, 0, 0);
    }
    writer->is_said[id] = true;
    sink_text(writer->sink, "\n");
}

static void write_costs(struct writer *writer)
{
    for (size_t i = 0; i < writer->costs.count && !sink_failed(writer->sink); i++) {
        const struct cost *cost = &writer->costs.items[i];
        if (i == 0 || cost[-1].function != cost->function) {
            sink_text(writer->sink, "\n");
            put_function(writer, "", cost->function);
        }
        if (cost->called != NO_CALL) {
            put_function(writer, "c", cost->called);
            sink_text(writer->sink, "calls=");
            put_numbers(writer, cost->count, 0);
        }
        put_numbers(writer, cost->line, cost->value);
    }
}

static void write_loss(void *context, const char *text)
{
    struct writer *writer = context;
    sink_text(writer->sink, "desc: Missing: ");
    export_clean_text(writer->sink, text, 0, 0);
    sink_text(writer->sink, "\n");
}

static void write_head(struct writer *writer)
{
    const struct trace *trace = &writer->selection->trace;
    sink_text(writer->sink, "# callgrind format\nversion: 1\ncreator: qut " QUT_VERSION "\npid: ");
    sink_number(writer->sink, trace->pid);
    sink_text(writer->sink, "\ncmd: ");
    export_clean_text(writer->sink, trace->command ? trace->command : "", 0, 0);
    sink_text(writer->sink, "\ndesc: Kind: ");
    sink_text(writer->sink, analysis_kind_name(writer->selection->kind));
    sink_text(writer->sink, ", in ");
    sink_text(writer->sink, export_weights_unit(writer->options->weight));
    sink_text(writer->sink, "\n");
    export_losses_say(trace, write_loss, writer);
    sink_text(writer->sink, "positions: line\nevents: ");
    sink_text(writer->sink, export_weights_name(writer->options->weight));
    sink_text(writer->sink, "\nsummary: ");
    sink_number(writer->sink, writer->selection->sums[writer->options->weight]);
    sink_text(writer->sink, "\n");
}

static int write_callgrind(const struct selection *selection, const struct names *names,
                           const struct export_options *options, struct sink *sink, struct base_error *error)
{
    struct writer writer = {.selection = selection, .names = names, .options = options, .sink = sink};
    writer.is_said = calloc(names_id_count(names) + 1, sizeof *writer.is_said);
    bool is_good = writer.is_said && gather(&writer);
    if (is_good) {
        if (writer.costs.count)
            qsort(writer.costs.items, writer.costs.count, sizeof *writer.costs.items, compare_costs);
        write_head(&writer);
        write_costs(&writer);
    }
    free(writer.is_said);
    base_vector_free(&writer.costs.vector);
    base_hash_free(&writer.index);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "callgrind");
}

const struct export_format export_callgrind = {
    .name = "callgrind",
    .extension = ".callgrind.out",
    .what = "functions and calls as of Callgrind (callgrind_annotate, KCachegrind)",
    .write = write_callgrind,
    .weight = EXPORT_WEIGHT_SAMPLES,
};
