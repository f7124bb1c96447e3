// SPDX-License-Identifier: Apache-2.0
// A resource for each process, with one profile: of one kind of value, since a sample of OTLP has one.
#include "tracer/export/clean.h"
#include "tracer/export/otlp/inside.h"

static void write_resource_attribute(struct otlp_writer *writer, const char *key, const char *text, uint64_t number)
{
    const size_t attribute = export_protobuf_begin(&writer->out, RESOURCE_ATTRIBUTES);
    export_protobuf_text(&writer->out, ATTRIBUTE_KEY, key);
    const size_t value = export_protobuf_begin(&writer->out, ATTRIBUTE_VALUE);
    if (text)
        export_protobuf_text(&writer->out, ANY_TEXT, text);
    else
        export_protobuf_number(&writer->out, ANY_NUMBER, number); // also 0: a value that is not there is none
    export_protobuf_end(&writer->out, value);
    export_protobuf_end(&writer->out, attribute);
}

static void write_resource(struct otlp_writer *writer, uint32_t process)
{
    const struct analysis_labels *labels = &writer->options->labels;
    char name[CLEAN_PROCESS_NAME_BYTES];
    const struct trace_thread any = {.process = process};
    export_clean_process_name(writer->trace, &any, name);
    const size_t resource = export_protobuf_begin(&writer->out, RESOURCE_PROFILES_RESOURCE);
    // Receivers ask for it before anything else.
    write_resource_attribute(writer, "service.name", labels->service ? labels->service : name, 0);
    if (labels->version)
        write_resource_attribute(writer, "service.version", labels->version, 0);
    if (labels->host)
        write_resource_attribute(writer, "host.name", labels->host, 0);
    write_resource_attribute(writer, "process.executable.name", name, 0);
    write_resource_attribute(writer, "process.pid", NULL, trace_pid_of(writer->trace, &any));
    export_protobuf_end(&writer->out, resource);
}

static void write_type(struct otlp_writer *writer, unsigned field, const char *name, const char *unit)
{
    const size_t type = export_protobuf_begin(&writer->out, field);
    otlp_put_string(writer, VALUE_TYPE_NAME, name);
    otlp_put_string(writer, VALUE_TYPE_UNIT, unit);
    export_protobuf_end(&writer->out, type);
}

static void write_sample(struct otlp_writer *writer, const struct otlp_sample *sample)
{
    const size_t message = export_protobuf_begin(&writer->out, PROFILE_SAMPLES);
    otlp_put(writer, SAMPLE_STACK, sample->stack);
    size_t packed = export_protobuf_begin(&writer->out, SAMPLE_ATTRIBUTES);
    const uint32_t attributes[] = {sample->thread_name, sample->thread_id, sample->kind};
    for (unsigned i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (attributes[i])
            export_protobuf_bare_number(&writer->out, attributes[i]);
    export_protobuf_end(&writer->out, packed);
    packed = export_protobuf_begin(&writer->out, SAMPLE_VALUES);
    export_protobuf_bare_number(&writer->out, sample->value > INT64_MAX ? INT64_MAX : sample->value);
    export_protobuf_end(&writer->out, packed);
    export_protobuf_end(&writer->out, message);
}

// The same trace, process and choice give the same one: what is sent again can be known for that.
static void write_id(struct otlp_writer *writer, uint32_t process)
{
    const struct selection *selection = writer->selection;
    const struct trace *trace = writer->trace;
    const uint64_t words[] = {trace->realtime_ns, trace->start_ns, selection->start_ns, selection->end_ns,
                              (uint64_t)selection->kind << 32 | writer->type.measure};
    const bool is_told = process < trace->process_count;
    uint64_t id[2] = {1, 2};
    for (unsigned half = 0; half < 2; half++) {
        id[half] = base_hash_bytes(id[half], words, sizeof words);
        if (is_told)
            id[half] = base_hash_bytes(id[half], trace->processes[process].identity,
                                       sizeof trace->processes[process].identity);
        id[half] = base_hash_word(id[half], process);
    }
    export_protobuf_bytes(&writer->out, PROFILE_ID, id, sizeof id);
}

static size_t write_profile(struct otlp_writer *writer, uint32_t process, size_t first)
{
    const struct selection *selection = writer->selection;
    const struct trace *trace = writer->trace;
    const size_t profile = export_protobuf_begin(&writer->out, SCOPE_PROFILES_PROFILES);
    write_type(writer, PROFILE_SAMPLE_TYPE, writer->type.name, writer->type.unit);
    for (; first < writer->samples.count && writer->samples.items[first].process == process; first++)
        write_sample(writer, &writer->samples.items[first]);
    export_protobuf_fixed64(&writer->out, PROFILE_TIME_UNIX_NS,
                            trace->realtime_ns + (selection->start_ns - trace->start_ns));
    otlp_put(writer, PROFILE_DURATION_NS,
             selection->end_ns > selection->start_ns ? selection->end_ns - selection->start_ns : 0);
    if (writer->types.period) {
        write_type(writer, PROFILE_PERIOD_TYPE, writer->types.period_name, writer->types.period_unit);
        otlp_put(writer, PROFILE_PERIOD, writer->types.period);
    }
    write_id(writer, process);
    const uint32_t attributes[] = {writer->losses, writer->halvings, writer->share};
    if (writer->losses || writer->halvings || writer->share) {
        const size_t packed = export_protobuf_begin(&writer->out, PROFILE_ATTRIBUTES);
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
            if (attributes[i])
                export_protobuf_bare_number(&writer->out, attributes[i]);
        export_protobuf_end(&writer->out, packed);
    }
    export_protobuf_end(&writer->out, profile);
    return first;
}

static size_t write_process(struct otlp_writer *writer, uint32_t process, size_t first)
{
    const size_t resource_profiles = export_protobuf_begin(&writer->out, REQUEST_RESOURCE_PROFILES);
    write_resource(writer, process);
    const size_t scope_profiles = export_protobuf_begin(&writer->out, RESOURCE_PROFILES_SCOPE_PROFILES);
    const size_t scope = export_protobuf_begin(&writer->out, SCOPE_PROFILES_SCOPE);
    export_protobuf_text(&writer->out, SCOPE_NAME, "qut");
    export_protobuf_text(&writer->out, SCOPE_VERSION, QUT_VERSION);
    export_protobuf_end(&writer->out, scope);
    first = write_profile(writer, process, first);
    export_protobuf_end(&writer->out, scope_profiles);
    export_protobuf_end(&writer->out, resource_profiles);
    export_protobuf_flush(&writer->out, false);
    return first;
}

void export_otlp_write_profiles(struct otlp_writer *writer)
{
    // Without any sample, too, what is missing is said.
    size_t first = 0;
    do {
        first = write_process(writer, first < writer->samples.count ? writer->samples.items[first].process : 0, first);
    } while (first < writer->samples.count && !writer->out.failed);
}
