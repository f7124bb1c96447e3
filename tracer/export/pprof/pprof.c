// SPDX-License-Identifier: Apache-2.0
// profile.proto of pprof, with gzip: samples by stack, thread and kind, each with what its kind counts. Losses are the
// profile's comments. Addresses are virtual addresses of the files, and mappings the files' own segments: with the
// build-id, who has the file can name them, wherever it was loaded.
#include <stdlib.h>

#include "base/interner.h"
#include "tracer/export/clean.h"
#include "tracer/export/losses.h"
#include "tracer/export/pprof/fields.h"
#include "tracer/export/pprof/mappings.h"
#include "tracer/export/pprof/pprof_types.h"
#include "tracer/export/protobuf.h"
#include "tracer/export/sums.h"
#include "tracer/names/file_offset.h"

struct writer {
    const struct selection *selection;
    const struct export_options *options;
    struct pprof_types types;
    struct export_mapping *known; // of each module
    const struct trace *trace;
    const struct names *names;
    struct protobuf out;
    struct base_interner strings;
    struct locations locations;
    struct sums sums;
};

// 0 is what a field is where it is not written.
static void put(struct writer *writer, unsigned field, uint64_t value)
{
    if (value)
        export_protobuf_number(&writer->out, field, value);
}

static void put_string(struct writer *writer, unsigned field, const char *text)
{
    put(writer, field, base_interner_add(&writer->strings, text));
}

static void end_message(struct writer *writer, size_t begin)
{
    export_protobuf_end(&writer->out, begin);
    export_protobuf_flush(&writer->out, false);
}

static void write_type(struct writer *writer, unsigned field, const char *name, const char *unit)
{
    size_t type = export_protobuf_begin(&writer->out, field);
    put_string(writer, TYPE_NAME, name);
    put_string(writer, TYPE_UNIT, unit);
    end_message(writer, type);
}

static void write_types(struct writer *writer)
{
    const struct pprof_types *types = &writer->types;
    for (size_t i = 0; i < types->count; i++)
        write_type(writer, PROFILE_SAMPLE_TYPE, types->items[i].name, types->items[i].unit);
    put_string(writer, PROFILE_DEFAULT_TYPE, types->items[types->default_type].name);
    if (!types->period)
        return;
    write_type(writer, PROFILE_PERIOD_TYPE, types->period_name, types->period_unit);
    put(writer, PROFILE_PERIOD, types->period);
}

static void write_label(struct writer *writer, const char *key, const char *text, uint64_t number)
{
    size_t label = export_protobuf_begin(&writer->out, SAMPLE_LABEL);
    put_string(writer, LABEL_KEY, key);
    put_string(writer, LABEL_TEXT, text);
    put(writer, LABEL_NUMBER, number);
    export_protobuf_end(&writer->out, label);
}

// A stack without frames gets one that says so: readers have no place for none.
static uint32_t location_without_frames(const struct writer *writer)
{
    return (uint32_t)writer->locations.count + 1;
}

static void perfetto_write_sample(struct writer *writer, const struct trace_thread *thread, const struct sum *sum)
{
    size_t message = export_protobuf_begin(&writer->out, PROFILE_SAMPLE);
    size_t packed = export_protobuf_begin(&writer->out, SAMPLE_LOCATIONS);
    if (!sum->node)
        export_protobuf_bare_number(&writer->out, location_without_frames(writer));
    for (uint32_t node = sum->node; node; node = writer->trace->nodes[node].parent)
        export_protobuf_bare_number(&writer->out, writer->locations.of_node[node]);
    export_protobuf_end(&writer->out, packed);
    packed = export_protobuf_begin(&writer->out, SAMPLE_VALUES);
    for (size_t i = 0; i < writer->types.count; i++) {
        uint64_t value = sum->of[writer->types.items[i].measure];
        export_protobuf_bare_number(&writer->out, value > INT64_MAX ? INT64_MAX : value);
    }
    export_protobuf_end(&writer->out, packed);
    char name[CLEAN_THREAD_NAME_BYTES];
    write_label(writer, "thread", export_clean_thread_name(thread, name), 0);
    write_label(writer, "tid", NULL, thread->tid);
    write_label(writer, "pid", NULL, trace_pid_of(writer->trace, thread));
    if (writer->trace->process_count > 1) {
        char process[CLEAN_PROCESS_NAME_BYTES];
        write_label(writer, "process", export_clean_process_name(writer->trace, thread, process), 0);
    }
    write_label(writer, "kind", trace_kind_name(writer->trace, sum->kind), 0);
    end_message(writer, message);
}

static bool counts(const struct writer *writer, const struct sum *sum)
{
    for (size_t i = 0; i < writer->types.count; i++)
        if (sum->of[writer->types.items[i].measure])
            return true;
    return false;
}

static int write_samples(struct writer *writer, const struct export_options *options)
{
    const struct trace *trace = writer->trace;
    for (size_t i = 0; i < trace->thread_count && !sink_failed(writer->out.sink); i++) {
        const struct trace_thread *thread = &trace->threads[i];
        if (export_sums_of_thread(&writer->sums, writer->selection, thread, true) != 0)
            return -1;
        for (size_t s = 0; s < writer->sums.count; s++)
            if (counts(writer, &writer->sums.items[s]))
                perfetto_write_sample(writer, thread, &writer->sums.items[s]);
        if (options->progress)
            options->progress(options->progress_context, i + 1, trace->thread_count);
    }
    return 0;
}

static void write_mappings(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->trace->module_count; i++) {
        const struct trace_module *module = &writer->trace->modules[i];
        char build_id[EXPORT_BUILD_ID_CHARS];
        if (!export_has_mapping(writer->trace, i))
            continue;
        size_t mapping = export_protobuf_begin(&writer->out, PROFILE_MAPPING);
        put(writer, MAPPING_ID, i + 1);
        const struct names_options options = {.system_root = writer->options->system_root};
        put(writer, MAPPING_START, writer->known[i].start);
        put(writer, MAPPING_LIMIT, writer->known[i].limit);
        put(writer, MAPPING_OFFSET, names_file_offset(&options, module, writer->known[i].start));
        put_string(writer, MAPPING_FILE, module->path);
        put_string(writer, MAPPING_BUILD_ID, export_build_id_text(module, build_id));
        put(writer, MAPPING_HAS_FUNCTIONS, writer->known[i].functions);
        put(writer, MAPPING_HAS_FILES, writer->known[i].lines);
        put(writer, MAPPING_HAS_LINES, writer->known[i].lines);
        put(writer, MAPPING_HAS_INLINES, writer->known[i].inlined);
        end_message(writer, mapping);
    }
}

static void write_line(struct writer *writer, uint64_t function, uint32_t number)
{
    size_t line = export_protobuf_begin(&writer->out, LOCATION_LINE);
    put(writer, LINE_FUNCTION, function);
    put(writer, LINE_NUMBER, number);
    export_protobuf_end(&writer->out, line);
}

static void write_lines(struct writer *writer, uint32_t node)
{
    if (writer->options->no_names && export_has_mapping(writer->trace, writer->trace->nodes[node].module))
        return;
    size_t count = names_count(writer->names, node);
    for (size_t i = 0; i < count; i++) { // the last one is that into which the others were inlined
        const struct name *name = names_at(writer->names, node, i);
        write_line(writer, name->id + 1, name->line);
    }
}

static uint64_t function_without_frames(const struct writer *writer)
{
    return names_id_count(writer->names) + 1;
}

static void write_locations(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->locations.count; i++) {
        uint32_t node = writer->locations.nodes[i], module = writer->trace->nodes[node].module;
        size_t location = export_protobuf_begin(&writer->out, PROFILE_LOCATION);
        put(writer, LOCATION_ID, i + 1);
        put(writer, LOCATION_MAPPING, export_has_mapping(writer->trace, module) ? module + 1 : 0);
        put(writer, LOCATION_ADDRESS, export_mapping_address(writer->trace, node));
        write_lines(writer, node);
        end_message(writer, location);
    }
    size_t location = export_protobuf_begin(&writer->out, PROFILE_LOCATION);
    put(writer, LOCATION_ID, location_without_frames(writer));
    write_line(writer, function_without_frames(writer), 0);
    end_message(writer, location);
}

static void write_function(struct writer *writer, uint64_t id, const struct name *name)
{
    size_t function = export_protobuf_begin(&writer->out, PROFILE_FUNCTION);
    put(writer, FUNCTION_ID, id);
    put_string(writer, FUNCTION_NAME, name->function);
    put_string(writer, FUNCTION_SYSTEM_NAME, name->mangled ? name->mangled : name->function);
    put_string(writer, FUNCTION_FILE, name->file ? name->file : name->module);
    end_message(writer, function);
}

// Only those that are said: without names, of what lies in no file.
static int write_functions(struct writer *writer)
{
    const struct trace *trace = writer->trace;
    bool *is_said = calloc(names_id_count(writer->names) + 1, sizeof *is_said);
    if (!is_said)
        return -1;
    for (size_t i = 0; i < writer->locations.count; i++) {
        uint32_t node = writer->locations.nodes[i];
        bool is_left = writer->options->no_names && export_has_mapping(trace, trace->nodes[node].module);
        for (size_t f = 0; !is_left && f < names_count(writer->names, node); f++)
            is_said[names_at(writer->names, node, f)->id] = true;
    }
    for (uint32_t id = 0; id < names_id_count(writer->names); id++)
        if (is_said[id])
            write_function(writer, id + 1, names_by_id(writer->names, id));
    write_function(writer, function_without_frames(writer), &(struct name){.function = "[no frames]"});
    free(is_said);
    return 0;
}

static void write_comment(void *context, const char *text)
{
    struct writer *writer = context;
    export_protobuf_number(&writer->out, PROFILE_COMMENT, base_interner_add(&writer->strings, text));
}

static void perfetto_write_head(struct writer *writer)
{
    const struct trace *trace = writer->trace;
    const struct selection *selection = writer->selection;
    put(writer, PROFILE_TIME_NS, trace->realtime_ns + (selection->start_ns - trace->start_ns));
    put(writer, PROFILE_DURATION_NS,
        selection->end_ns > selection->start_ns ? selection->end_ns - selection->start_ns : 0);
    export_losses_say(trace, write_comment, writer);
    write_comment(writer, trace->command ? trace->command : "");
    write_comment(writer, "made by qut " QUT_VERSION);
}

static void write_strings(struct writer *writer)
{
    for (uint32_t i = 0; i < writer->strings.count; i++) {
        export_protobuf_text(&writer->out, PROFILE_STRING, base_interner_text(&writer->strings, i));
        export_protobuf_flush(&writer->out, false);
    }
}

static void end_writer(struct writer *writer)
{
    free(writer->known);
    base_interner_free(&writer->strings);
    export_locations_free(&writer->locations);
    export_sums_free(&writer->sums);
    export_protobuf_free(&writer->out);
}

static int write_pprof(const struct selection *selection, const struct names *names,
                       const struct export_options *options, struct sink *sink, struct base_error *error)
{
    struct writer writer = {.selection = selection,
                            .options = options,
                            .types = export_pprof_types(selection, options->weight),
                            .trace = &selection->trace,
                            .names = names,
                            .out = {.sink = sink}};
    bool is_good = export_locations_make(&writer.locations, writer.trace, names) == 0;
    if (is_good)
        writer.known = export_mappings_make(writer.trace, names, &writer.locations, options->no_names);
    is_good = is_good && writer.known;
    if (is_good) {
        write_types(&writer);
        is_good = write_samples(&writer, options) == 0;
    }
    if (is_good) {
        write_mappings(&writer);
        write_locations(&writer);
        is_good = write_functions(&writer) == 0;
        perfetto_write_head(&writer);
        write_strings(&writer);
        export_protobuf_flush(&writer.out, true);
        is_good = is_good && !writer.strings.has_failed && !writer.out.failed;
    }
    end_writer(&writer);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "profile");
}

const struct export_format export_pprof = {
    .name = "pprof",
    .extension = ".pb.gz",
    .what = "profile.proto: what the kind counts, by stack and thread; allocations as a heap profile (go tool pprof)",
    .write = write_pprof,
    .weight = EXPORT_WEIGHT_SAMPLES,
    .is_binary = true,
    .is_gzip = true,
    .has_no_names = true,
};
