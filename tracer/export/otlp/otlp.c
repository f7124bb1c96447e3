// SPDX-License-Identifier: Apache-2.0
// A request of OTLP's profiles, with gzip, as it is posted to /v1development/profiles: samples by stack, thread and
// (where there is a choice of several) kind, each with what one weight counts. One dictionary stands behind all
// profiles: no entry twice, and none that nobody points to. Losses are an attribute of each profile. Addresses are
// virtual addresses of files.
#include <stdio.h>
#include <stdlib.h>

#include "tracer/export/clean.h"
#include "tracer/export/losses.h"
#include "tracer/export/otlp/inside.h"
#include "tracer/export/sums.h"

// ---- samples

static int compare_owners(const struct otlp_sample *a, const struct otlp_sample *b)
{
    const uint32_t left_keys[] = {a->process, a->thread_name, a->thread_id, a->kind};
    const uint32_t right_keys[] = {b->process, b->thread_name, b->thread_id, b->kind};
    for (unsigned i = 0; i < sizeof left_keys / sizeof *left_keys; i++)
        if (left_keys[i] != right_keys[i])
            return left_keys[i] < right_keys[i] ? -1 : 1;
    return 0;
}

static int compare_samples(const void *left, const void *right)
{
    const struct otlp_sample *a = left, *b = right;
    const int order = compare_owners(a, b);
    return order ? order : (a->stack > b->stack) - (a->stack < b->stack);
}

// Of a thread the largest first: their values, half of what samples are, begin alike then, and pack.
static int compare_values(const void *left, const void *right)
{
    const struct otlp_sample *a = left, *b = right;
    int order = compare_owners(a, b);
    order = order ? order : (a->value < b->value) - (a->value > b->value);
    return order ? order : (a->stack > b->stack) - (a->stack < b->stack);
}

// Samples that nothing tells apart are one.
static void join_samples(struct otlp_writer *writer)
{
    struct otlp_sample *samples = writer->samples.items;
    size_t kept = 0;
    if (writer->samples.count)
        qsort(samples, writer->samples.count, sizeof *samples, compare_samples);
    for (size_t i = 0; i < writer->samples.count; i++) {
        if (kept && compare_samples(&samples[kept - 1], &samples[i]) == 0)
            samples[kept - 1].value += samples[i].value;
        else
            samples[kept++] = samples[i];
    }
    writer->samples.count = kept;
}

// A power of two, which is written in fewer different bytes: the largest of which so many are no more than a tick. 0:
// what is sent is not the time of ticks.
static uint64_t grain_of(const struct otlp_writer *writer)
{
    const unsigned parts = writer->options->tick_parts;
    const bool is_of_ticks = writer->type.measure == MEASURE_CPU || writer->type.measure == MEASURE_WALL;
    if (!parts || !is_of_ticks || writer->types.period < parts)
        return 0;
    uint64_t grain = 1;
    while (grain * 2 <= writer->types.period / parts)
        grain *= 2;
    return grain;
}

// Less than a grain of each goes to the next one of its thread, and all that is left to the last one. What is shorter
// than a grain stays as it is.
static void keep_grains(struct otlp_writer *writer, uint64_t grain)
{
    struct otlp_sample *samples = writer->samples.items;
    uint64_t left = 0;
    for (size_t i = 0; i < writer->samples.count; i++) {
        const bool is_last = i + 1 == writer->samples.count || compare_owners(&samples[i], &samples[i + 1]) != 0;
        const uint64_t sum = samples[i].value + left, kept = is_last ? sum : sum - sum % grain;
        if (!kept)
            continue;
        left = sum - kept;
        samples[i].value = kept;
    }
}

static void sort_by_values(struct otlp_writer *writer)
{
    const uint64_t grain = grain_of(writer);
    if (grain)
        keep_grains(writer, grain);
    if (writer->samples.count)
        qsort(writer->samples.items, writer->samples.count, sizeof *writer->samples.items, compare_values);
}

static bool add_thread(struct otlp_writer *writer, const struct trace_thread *thread, const struct sums *sums)
{
    char name[CLEAN_THREAD_NAME_BYTES];
    struct otlp_sample sample = {.process = thread->process};
    for (size_t i = 0; i < sums->count; i++) {
        const struct sum *sum = &sums->items[i];
        sample.value = sum->of[writer->type.measure];
        if (!sample.value)
            continue;
        if (!sample.thread_name) {
            sample.thread_name = export_otlp_attribute_text(&writer->attributes, &writer->strings, "thread.name",
                                                            export_clean_thread_name(thread, name));
            sample.thread_id =
                export_otlp_attribute_number(&writer->attributes, &writer->strings, "thread.id", thread->tid);
        }
        sample.kind = writer->selection->kind != SELECTION_ALL
                          ? 0
                          : export_otlp_attribute_text(&writer->attributes, &writer->strings, "qut.kind",
                                                       trace_kind_name(writer->trace, sum->kind));
        sample.stack = writer->stacks.of_node[sum->node];
        writer->stacks.items[sample.stack].is_used = true;
        struct otlp_sample *added = BASE_ADD(&writer->samples);
        if (!added)
            return false;
        *added = sample;
    }
    return true;
}

static bool add_samples(struct otlp_writer *writer)
{
    const struct trace *trace = writer->trace;
    struct sums sums = {0};
    bool has_memory = true;
    for (size_t i = 0; i < trace->thread_count && has_memory; i++) {
        has_memory = export_sums_of_thread(&sums, writer->selection, &trace->threads[i],
                                           writer->selection->kind == SELECTION_ALL) == 0 &&
                     add_thread(writer, &trace->threads[i], &sums);
        if (writer->options->progress)
            writer->options->progress(writer->options->progress_context, i + 1, trace->thread_count);
    }
    export_sums_free(&sums);
    if (!has_memory || export_otlp_stacks_number(&writer->stacks) != 0)
        return false;
    for (size_t i = 0; i < writer->samples.count; i++)
        writer->samples.items[i].stack = writer->stacks.items[writer->samples.items[i].stack].number;
    join_samples(writer);
    sort_by_values(writer);
    return true;
}

// ---- all

struct told {
    char text[1024];
    size_t size;
};

static void tell(void *context, const char *line)
{
    struct told *told = context;
    const int written =
        snprintf(told->text + told->size, sizeof told->text - told->size, "%s%s", told->size ? "\n" : "", line);
    if (written > 0)
        told->size =
            told->size + (size_t)written < sizeof told->text ? told->size + (size_t)written : sizeof told->text - 1;
}

static void add_losses(struct otlp_writer *writer)
{
    struct told told = {.size = 0};
    export_losses_say(writer->trace, tell, &told);
    if (told.size)
        writer->losses = export_otlp_attribute_text(&writer->attributes, &writer->strings, "qut.losses", told.text);
}

static bool make_parts(struct otlp_writer *writer)
{
    if (export_locations_make(&writer->locations, writer->trace, writer->names) != 0)
        return false;
    writer->mappings =
        export_mappings_make(writer->trace, writer->names, &writer->locations, writer->options->no_names);
    return writer->mappings && export_otlp_places_make(writer) == 0 &&
           export_otlp_stacks_make(&writer->stacks, writer->trace, &writer->locations, &writer->places) == 0 &&
           add_samples(writer);
}

static void end_writer(struct otlp_writer *writer)
{
    free(writer->mappings);
    base_vector_free(&writer->samples.vector);
    base_interner_free(&writer->strings);
    export_otlp_attributes_free(&writer->attributes);
    export_otlp_stacks_free(&writer->stacks);
    export_otlp_places_free(&writer->places);
    export_locations_free(&writer->locations);
    export_protobuf_free(&writer->out);
}

static int write_otlp(const struct selection *selection, const struct names *names,
                      const struct export_options *options, struct sink *sink, struct base_error *error)
{
    struct otlp_writer writer = {.selection = selection,
                                 .trace = &selection->trace,
                                 .names = names,
                                 .options = options,
                                 .types = export_pprof_types(selection, options->weight),
                                 .out = {.sink = sink}};
    writer.type = writer.types.items[writer.types.default_type];
    base_interner_add(&writer.strings, ""); // string 0
    bool is_good = make_parts(&writer);
    if (is_good) {
        add_losses(&writer);
        if (options->halvings)
            writer.halvings = export_otlp_attribute_number(&writer.attributes, &writer.strings, "qut.rate.halvings",
                                                           options->halvings);
        if (options->window_share_percent)
            writer.share = export_otlp_attribute_number(&writer.attributes, &writer.strings, "qut.window.share_percent",
                                                        options->window_share_percent);
        export_otlp_write_profiles(&writer);
        is_good = export_otlp_write_dictionary(&writer);
        export_protobuf_flush(&writer.out, true);
        is_good = is_good && !writer.strings.has_failed && !writer.attributes.has_failed && !writer.out.failed;
    }
    end_writer(&writer);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "profile");
}

const struct export_format export_otlp = {
    .name = "otlp",
    .extension = ".otlp.pb.gz",
    .what = "a request of OpenTelemetry's profiles (opentelemetry-proto 1.11, /v1development/profiles), by stack and "
            "thread",
    .write = write_otlp,
    .weight = EXPORT_WEIGHT_SAMPLES,
    .is_binary = true,
    .is_gzip = true,
    .has_labels = true,
    .has_no_names = true,
};
