// SPDX-License-Identifier: Apache-2.0
// Firefox Profiler's processed profile, version 46, which it brings up to its own:
// https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md
#include <stdlib.h>
#include <string.h>

#include "tracer/export/firefox/firefox_thread.h"
#include "tracer/export/losses.h"

static void write_loss(void *context, const char *text)
{
    struct firefox *firefox = context;
    sink_text(firefox->sink, ",{\"label\":\"Missing\",\"format\":\"string\",\"value\":");
    sink_json_string(firefox->sink, text);
    sink_text(firefox->sink, "}");
}

static void write_meta(struct firefox *firefox)
{
    const struct selection *selection = firefox->selection;
    struct sink *sink = firefox->sink;
    uint64_t samples = selection->sums[MEASURE_SAMPLES], length_ns = selection->end_ns - selection->start_ns;
    sink_text(sink, "{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":46,\"processType\":0,\"stackwalk\":1,"
                    "\"debug\":false,\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
                    "\"doesNotUseFrameImplementation\":true,\"sourceCodeIsNotOnSearchfox\":true,"
                    "\"importedFrom\":\"qut " QUT_VERSION "\",\"extensions\":{\"length\":0,\"baseURL\":[],\"id\":[],"
                    "\"name\":[]},\n\"categories\":["
                    "{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
                    "{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
                    "{\"name\":\"Native\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},"
                    "{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
                    "{\"name\":\"Java\",\"color\":\"green\",\"subcategories\":[\"Other\"]}],\n"
                    "\"markerSchema\":[{\"name\":\"Wait\",\"display\":[\"marker-chart\",\"marker-table\","
                    "\"timeline-overview\"],\"data\":[{\"key\":\"lock\",\"label\":\"Lock\",\"format\":\"string\"},"
                    "{\"key\":\"ended\",\"label\":\"Ended\",\"format\":\"string\"}]}],\n\"product\":");
    sink_json_string(sink, selection->trace.command && *selection->trace.command ? selection->trace.command : "qut");
    sink_text(sink, ",\"interval\":");
    sink_fixed(sink, (int64_t)(samples && length_ns / samples ? length_ns / samples : 1000000), 6);
    sink_text(sink, ",\"startTime\":");
    sink_fixed(sink, (int64_t)selection->trace.realtime_ns, 6);
    sink_text(sink,
              ",\"extra\":[{\"label\":\"Recording\",\"entries\":[{\"label\":\"Kind\",\"format\":\"string\",\"value\":");
    sink_json_string(sink, analysis_kind_name(selection->kind));
    sink_text(sink, "}");
    export_losses_say(&selection->trace, write_loss, firefox);
    sink_text(sink, "]}]},\n\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\"libs\":[");
}

static void put_member(struct sink *sink, const char *before, const char *text)
{
    sink_text(sink, before);
    sink_json_string(sink, text);
}

// A build-id as Breakpad has it: the first 16 bytes as a GUID, whose first three parts are numbers, and an age.
static void breakpad_id(const struct trace_module *module, char text[34])
{
    static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    static const char digits[] = "0123456789ABCDEF";
    for (unsigned i = 0; i < 16; i++) {
        text[2 * i] = digits[module->build_id[order[i]] >> 4];
        text[2 * i + 1] = digits[module->build_id[order[i]] & 15];
    }
    memcpy(text + 32, "0", 2);
}

static void write_lib(struct sink *sink, const struct trace_module *module)
{
    char id[34];
    const char *slash = strrchr(module->path, '/'), *name = slash ? slash + 1 : module->path;
    breakpad_id(module, id);
    put_member(sink, "{\"arch\":null,\"name\":", name);
    put_member(sink, ",\"path\":", module->path);
    put_member(sink, ",\"debugName\":", name);
    put_member(sink, ",\"debugPath\":", module->path);
    put_member(sink, ",\"breakpadId\":", id);
    sink_text(sink, ",\"codeId\":null}");
}

static int write_libs(struct firefox *firefox)
{
    const struct trace *trace = &firefox->selection->trace;
    uint32_t count = 0;
    firefox->lib_of_module = calloc(trace->module_count + 1, sizeof *firefox->lib_of_module);
    if (!firefox->lib_of_module)
        return -1;
    for (uint32_t i = 0; i < trace->module_count; i++) {
        bool is_file = !(trace->modules[i].flags & QUT_TRACE_MODULE_JIT);
        firefox->lib_of_module[i] = is_file ? count : TRACE_NONE;
        if (!is_file)
            continue;
        sink_text(firefox->sink, count++ ? ",\n" : "\n");
        write_lib(firefox->sink, &trace->modules[i]);
    }
    return 0;
}

static int write_threads(struct firefox *firefox)
{
    const struct trace *trace = &firefox->selection->trace;
    const char *comma = "\n";
    sink_text(firefox->sink, "],\n\"threads\":[");
    for (size_t i = 0; i < trace->thread_count && !sink_failed(firefox->sink); i++) {
        if (trace->threads[i].sample_count) {
            sink_text(firefox->sink, comma);
            comma = ",\n";
            if (export_firefox_thread(firefox, &trace->threads[i]) != 0)
                return -1;
        }
        if (firefox->options->progress)
            firefox->options->progress(firefox->options->progress_context, i + 1, trace->thread_count);
    }
    sink_text(firefox->sink, "]}\n");
    return 0;
}

static int write_firefox(const struct selection *selection, const struct names *names,
                         const struct export_options *options, struct sink *sink, struct base_error *error)
{
    struct firefox firefox = {.selection = selection, .names = names, .options = options, .sink = sink};
    bool is_good = analysis_intervals_make(&firefox.waits, selection->whole) == 0;
    if (is_good) {
        write_meta(&firefox);
        is_good = write_libs(&firefox) == 0 && write_threads(&firefox) == 0;
    }
    analysis_intervals_free(&firefox.waits);
    free(firefox.lib_of_module);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "firefox");
}

const struct export_format export_firefox = {
    .name = "firefox",
    .extension = ".firefox.json",
    .what = "Firefox Profiler's processed profile: samples by thread, waits as markers (profiler.firefox.com)",
    .write = write_firefox,
    .weight = EXPORT_WEIGHT_SAMPLES,
};
