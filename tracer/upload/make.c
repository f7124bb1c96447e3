// SPDX-License-Identifier: Apache-2.0
// Requests of a trace: one, or several of a part of its time each, where a receiver takes no longer ones.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/protobuf.h"
#include "tracer/export/sink/sink.h"
#include "tracer/upload/inside.h"
#include "tracer/upload/push_fields.h"

enum { SPLITS_MAX = 16 }; // of a part in two, and so on

struct maker {
    const struct trace *trace;
    const struct names *names;
    const struct upload_wanted *wanted;
    upload_each *each;
    void *context;
};

// ---- who it is

struct id_hash {
    uint64_t half[2];
};

static void add_bytes(struct id_hash *hash, const void *bytes, size_t size)
{
    for (unsigned i = 0; i < 2; i++)
        hash->half[i] = base_hash_word(base_hash_bytes(hash->half[i], bytes, size), size);
}

static void add_text(struct id_hash *hash, const char *text)
{
    add_bytes(hash, text ? text : "", text ? strlen(text) : 0);
}

static void print_id(const struct id_hash *hash, char id[UPLOAD_ID_CHARS])
{
    snprintf(id, UPLOAD_ID_CHARS, "%016" PRIx64 "%016" PRIx64, hash->half[0], hash->half[1]);
}

// Host, boot and recording: a process's identity is drawn anew each time, and the clocks' difference is the boot's.
static void make_id(const struct maker *maker, const struct selection *selection, char id[UPLOAD_ID_CHARS])
{
    const struct trace *trace = maker->trace;
    const struct analysis_labels *labels = &maker->wanted->labels;
    const uint64_t words[] = {trace->realtime_ns,  trace->boottime_ns,
                              trace->start_ns,     selection->start_ns,
                              selection->end_ns,   (uint64_t)selection->kind << 32 | selection->measure,
                              maker->wanted->form, maker->wanted->no_names};
    struct id_hash hash = {{1, 2}};
    add_bytes(&hash, words, sizeof words);
    add_bytes(&hash, trace->identity, sizeof trace->identity);
    for (size_t i = 0; i < trace->process_count; i++)
        add_bytes(&hash, trace->processes[i].identity, sizeof trace->processes[i].identity);
    add_text(&hash, labels->host);
    add_text(&hash, labels->service);
    add_text(&hash, labels->version);
    if (maker->wanted->window)
        add_bytes(&hash, &maker->wanted->window, sizeof maker->wanted->window);
    print_id(&hash, id);
}

// ---- Pyroscope's push

static void put_label(struct protobuf *out, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    const size_t label = export_protobuf_begin(out, SERIES_LABELS);
    export_protobuf_text(out, SERIES_LABEL_NAME, name);
    export_protobuf_text(out, SERIES_LABEL_VALUE, value);
    export_protobuf_end(out, label);
}

// As Pyroscope calls what Go's profiles of these kinds are of.
static const char *profile_name(enum selection_kind kind)
{
    switch (kind) {
    case SELECTION_CPU: return "process_cpu";
    case SELECTION_ALLOC: return "memory";
    case SELECTION_LOCK: return "mutex";
    case SELECTION_IO: return "block";
    default: return analysis_kind_name(kind);
    }
}

static void write_push(const struct maker *maker, const struct selection *selection, const char *id,
                       struct base_bytes profile, struct protobuf *out)
{
    const struct analysis_labels *labels = &maker->wanted->labels;
    const struct trace_thread any = {.process = 0};
    char name[CLEAN_PROCESS_NAME_BYTES], uuid[UPLOAD_UUID_CHARS], halvings[12], share[12];
    export_clean_process_name(maker->trace, &any, name);
    const size_t series = export_protobuf_begin(out, PUSH_SERIES);
    put_label(out, "__name__", profile_name(selection->kind));
    put_label(out, "service_name", labels->service && *labels->service ? labels->service : name);
    put_label(out, "service_version", labels->version);
    put_label(out, "hostname", labels->host);
    snprintf(halvings, sizeof halvings, "%u", maker->wanted->halvings);
    put_label(out, "qut_rate_halvings", maker->wanted->halvings ? halvings : NULL);
    snprintf(share, sizeof share, "%u", maker->wanted->window_share_percent);
    put_label(out, "qut_window_share_percent", maker->wanted->window_share_percent ? share : NULL);
    const size_t sample = export_protobuf_begin(out, SERIES_SAMPLES);
    export_protobuf_bytes(out, RAW_PROFILE, profile.data, profile.size);
    export_protobuf_text(out, RAW_ID, upload_uuid(id, uuid));
    export_protobuf_end(out, sample);
    export_protobuf_end(out, series);
    export_protobuf_flush(out, true);
}

// ---- bodies

// What a tick's time has below that is far less than what chance makes of it, and the longest part of a short request.
enum { TICK_PARTS = 128 };

static int write_body(const struct maker *maker, const struct selection *selection, const char *id, struct sink *body,
                      struct base_error *error)
{
    const struct upload_wanted *wanted = maker->wanted;
    const struct export_format *format = wanted->form == UPLOAD_OTLP ? &export_otlp : &export_pprof;
    const struct export_options options = {.weight = (unsigned)selection->measure,
                                           .no_names = wanted->no_names,
                                           .system_root = wanted->system_root,
                                           .halvings = wanted->halvings,
                                           .window_share_percent = wanted->window_share_percent,
                                           .tick_parts = TICK_PARTS,
                                           .labels = wanted->labels};
    if (wanted->form == UPLOAD_OTLP)
        return format->write(selection, maker->names, &options, body, error);
    struct sink *profile = sink_in_memory();
    if (!profile)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    int result = format->write(selection, maker->names, &options, profile, error);
    struct base_bytes bytes = {.data = NULL};
    bytes.data = sink_memory(profile, &bytes.size);
    struct protobuf out = {.sink = body};
    if (result == 0 && !sink_failed(profile))
        write_push(maker, selection, id, bytes, &out);
    if (result == 0 && (out.failed || sink_failed(profile)))
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    export_protobuf_free(&out);
    sink_close(profile, false, NULL);
    return result;
}

static int make_part(const struct maker *maker, uint64_t from_ns, uint64_t to_ns, unsigned splits,
                     struct base_error *error);

static bool is_too_large(const struct upload_wanted *wanted, struct base_bytes body)
{
    return body.size > wanted->max_bytes ||
           (wanted->max_samples && upload_count_samples(wanted->form, body) > wanted->max_samples);
}

// `wanted_to_ns` is UINT64_MAX for the last part: what is at the very end belongs to it.
static int make_body(const struct maker *maker, const struct selection *selection, uint64_t wanted_to_ns,
                     unsigned splits, struct sink *body, struct base_error *error)
{
    const uint64_t from_ns = selection->start_ns - maker->trace->start_ns;
    const uint64_t to_ns = selection->end_ns - maker->trace->start_ns, middle_ns = from_ns + (to_ns - from_ns) / 2;
    struct upload_request request = {.form = maker->wanted->form, .from_ns = from_ns, .to_ns = to_ns};
    make_id(maker, selection, request.id);
    if (write_body(maker, selection, request.id, body, error) != 0)
        return -1;
    if (sink_failed(body))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    request.body.data = sink_memory(body, &request.body.size);
    request.is_too_large = is_too_large(maker->wanted, request.body);
    if (request.is_too_large && splits < SPLITS_MAX && middle_ns > from_ns && selection->trace.sample_count > 1) {
        sink_empty(body); // two of its halves need the room
        const int first = make_part(maker, from_ns, middle_ns, splits + 1, error);
        return first == 0 ? make_part(maker, middle_ns, wanted_to_ns, splits + 1, error) : -1;
    }
    for (size_t i = 0; i < selection->trace.sample_count; i++)
        request.samples += selection->trace.samples[i].count;
    return maker->each(maker->context, &request, error);
}

static int make_part(const struct maker *maker, uint64_t from_ns, uint64_t to_ns, unsigned splits,
                     struct base_error *error)
{
    const struct selection_wanted wanted = {.kind = maker->wanted->kind, .from_ns = from_ns, .to_ns = to_ns};
    struct selection selection;
    if (analysis_selection_make(&selection, maker->trace, &wanted, error) != 0)
        return -1;
    // Of a part in which nothing is, the other ones tell what is missing.
    const bool is_nothing = splits && !selection.trace.sample_count;
    struct sink *body = is_nothing ? NULL : sink_in_memory();
    int result = 0;
    if (body)
        result = make_body(maker, &selection, to_ns, splits, body, error);
    else if (!is_nothing)
        result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    if (body)
        sink_close(body, false, NULL);
    analysis_selection_free(&selection);
    return result;
}

int upload_make(const struct trace *trace, const struct names *names, const struct upload_wanted *wanted,
                upload_each *each, void *context, struct base_error *error)
{
    const struct maker maker = {trace, names, wanted, each, context};
    return make_part(&maker, 0, UINT64_MAX, 0, error);
}

// ---- the file as it is

static int read_file(FILE *file, struct sink *body, struct base_error *error)
{
    char part[16384];
    size_t size;
    while ((size = fread(part, 1, sizeof part, file)) > 0)
        sink_bytes(body, part, size);
    if (ferror(file))
        return base_fail_errno(error, errno);
    return sink_failed(body) ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "file") : 0;
}

int upload_make_file(const char *path, upload_each *each, void *context, struct base_error *error)
{
    struct upload_request request = {.form = UPLOAD_FILE};
    struct id_hash hash = {{3, 4}};
    FILE *file = fopen(path, "re");
    if (!file)
        return base_fail_errno(error, errno);
    struct sink *body = sink_in_memory();
    int result = body ? read_file(file, body, error) : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "file");
    fclose(file);
    if (result == 0) {
        request.body.data = sink_memory(body, &request.body.size);
        add_bytes(&hash, request.body.data, request.body.size);
        print_id(&hash, request.id);
        result = each(context, &request, error);
    }
    if (body)
        sink_close(body, false, NULL);
    return result;
}
