// SPDX-License-Identifier: Apache-2.0
// What samples name by numbers: functions, modules, frames, stacks; said once on each sequence, when first needed.
#include <stdlib.h>
#include <string.h>

#include "tracer/export/perfetto/inside.h"
#include <qut/frame.h>

enum { STRING_ID = 1, STRING_BYTES = 2 };
enum { MAPPING_ID = 1, MAPPING_BUILD_ID = 2, MAPPING_START = 4, MAPPING_END = 5, MAPPING_PATHS = 7 };
enum { FRAME_ID = 1, FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_PC = 4, FRAME_FILE = 5, FRAME_LINE = 6 };
enum { CALLSTACK_ID = 1, CALLSTACK_FRAMES = 2 };
enum { DEFAULTS_TIMEBASE = 1, TIMEBASE_NAME = 10 };

enum { // Profiling.StackUnwindError
    UNWIND_UNKNOWN = 0,
    UNWIND_NONE = 1,
    UNWIND_MEMORY_INVALID = 2,
    UNWIND_NO_INFO = 3,
    UNWIND_UNSUPPORTED = 4,
    UNWIND_INVALID_MAP = 5,
    UNWIND_MAX_FRAMES = 6,
    UNWIND_REPEATED_FRAME = 7,
};

// What has no module stands in one of these instead. Their numbers follow those of the modules.
enum { NO_MODULE_LABEL, NO_MODULE_RAW, NO_MODULE_JIT, NO_MODULE_COUNT };
static const char *const no_module_paths[NO_MODULE_COUNT] = {"[label]", "[unknown]", "[jit]"};

static size_t module_count(const struct perfetto *perfetto)
{
    return perfetto->trace->module_count + NO_MODULE_COUNT;
}

static uint32_t module_of(const struct perfetto *perfetto, const struct trace_node *node)
{
    const struct trace *trace = perfetto->trace;
    uint32_t first = (uint32_t)trace->module_count;
    if (node->label)
        return first + NO_MODULE_LABEL;
    if (node->module == TRACE_NONE)
        return first + (node->class_ == QUT_TRACE_CLASS_JIT ? NO_MODULE_JIT : NO_MODULE_RAW);
    // Functions that a JIT made are modules of their own: their names are the functions'.
    return trace->modules[node->module].flags & QUT_TRACE_MODULE_JIT ? first + NO_MODULE_JIT : node->module;
}

static uint8_t unwind_error(const struct trace_node *node)
{
    if (node->class_ != QUT_TRACE_CLASS_END)
        return UNWIND_NONE;
    switch ((int)(node->pc & 0xff) - 1) {
    case QUT_END_LIMIT: return UNWIND_MAX_FRAMES;
    case QUT_END_NOT_CODE:
    case QUT_END_NO_MODULE: return UNWIND_INVALID_MAP;
    case QUT_END_TABLE_PENDING:
    case QUT_END_NO_TABLE:
    case QUT_END_NO_ROW:
    case QUT_END_NO_REGISTER: return UNWIND_NO_INFO;
    case QUT_END_REFUSED: return UNWIND_UNSUPPORTED;
    case QUT_END_BAD_MEMORY: return UNWIND_MEMORY_INVALID;
    case QUT_END_NO_PROGRESS: return UNWIND_REPEATED_FRAME;
    default: return UNWIND_UNKNOWN;
    }
}

// ---- frames: the same place in the code is one frame, wherever it stands in the tree

// Its id; 0: no memory.
static uint32_t frame_id(struct perfetto_frames *frames, const struct perfetto_frame *frame)
{
    uint64_t hash = base_hash_word(base_hash_word(0, frame->pc), (uint64_t)frame->module << 32 | frame->name);
    for (uint32_t step = 0, i; (i = base_hash_next(&frames->index, hash, &step)) != BASE_HASH_NONE;) {
        const struct perfetto_frame *there = &frames->items[i];
        if (there->pc == frame->pc && there->module == frame->module && there->name == frame->name)
            return i + 1;
    }
    struct perfetto_frame *added = BASE_ADD(frames);
    if (!added || !base_hash_add(&frames->index, hash, (uint32_t)frames->count - 1))
        return 0;
    *added = *frame;
    return (uint32_t)frames->count;
}

static uint32_t frame_of(struct perfetto *perfetto, uint32_t index, size_t function, size_t function_count)
{
    uint32_t *known = &perfetto->frames.of_node[index];
    if (*known && function_count == 1)
        return *known;
    const struct trace_node *node = &perfetto->trace->nodes[index];
    const struct name *name = names_at(perfetto->names, index, function);
    struct perfetto_frame frame = {node->pc, module_of(perfetto, node), name->id, name->line};
    *known = frame_id(&perfetto->frames, &frame);
    return *known;
}

// ---- what a sequence says

static void write_string(struct protobuf *out, unsigned field, uint64_t id, const char *text)
{
    size_t string = export_protobuf_begin(out, field);
    export_protobuf_number(out, STRING_ID, id);
    export_protobuf_text(out, STRING_BYTES, text);
    export_protobuf_end(out, string);
}

static void write_module(struct perfetto *perfetto, uint32_t index)
{
    struct protobuf *out = &perfetto->out;
    size_t known = perfetto->trace->module_count;
    const struct trace_module *module = index < known ? &perfetto->trace->modules[index] : NULL;
    uint64_t id = (uint64_t)index + 1;
    write_string(out, INTERNED_MAPPING_PATHS, id, module ? module->path : no_module_paths[index - known]);
    size_t build_id = export_protobuf_begin(out, INTERNED_BUILD_IDS);
    export_protobuf_number(out, STRING_ID, id);
    if (module)
        export_protobuf_bytes(out, STRING_BYTES, module->build_id, module->build_id_bytes);
    else
        export_protobuf_bytes(out, STRING_BYTES, "", 0);
    export_protobuf_end(out, build_id);
    size_t mapping = export_protobuf_begin(out, INTERNED_MAPPINGS);
    export_protobuf_number(out, MAPPING_ID, id);
    export_protobuf_number(out, MAPPING_BUILD_ID, id);
    if (module) {
        export_protobuf_number(out, MAPPING_START, module->start);
        export_protobuf_number(out, MAPPING_END, module->start + module->code_bytes);
    }
    export_protobuf_number(out, MAPPING_PATHS, id);
    export_protobuf_end(out, mapping);
}

static bool set_frame_bit(struct perfetto_sequence *sequence, uint32_t id, bool *was_set)
{
    if (id >= sequence->frame_bits) {
        size_t words = perfetto_bit_words(sequence->frame_bits), more = perfetto_bit_words((size_t)id * 2 + 1024);
        uint64_t *grown = realloc(sequence->frames, more * sizeof *grown);
        if (!grown)
            return false;
        memset(grown + (sequence->frames ? words : 0), 0, (more - (sequence->frames ? words : 0)) * sizeof *grown);
        sequence->frames = grown;
        sequence->frame_bits = more * 64 - 1;
    }
    *was_set = perfetto_bit_get(sequence->frames, id);
    perfetto_bit_set(sequence->frames, id);
    return true;
}

// A frame and what it needs, if they were not said yet.
static bool write_frame(struct perfetto *perfetto, struct perfetto_sequence *sequence, uint32_t id)
{
    struct protobuf *out = &perfetto->out;
    const struct perfetto_frame *frame = &perfetto->frames.items[id - 1];
    const struct name *name = names_by_id(perfetto->names, frame->name);
    bool was_said;
    if (!set_frame_bit(sequence, id, &was_said))
        return false;
    if (was_said)
        return true;
    if (!perfetto_bit_get(sequence->functions, frame->name)) {
        perfetto_bit_set(sequence->functions, frame->name);
        write_string(out, INTERNED_FUNCTION_NAMES, (uint64_t)frame->name + 1, name->function);
        if (name->file)
            write_string(out, INTERNED_SOURCE_PATHS, (uint64_t)frame->name + 1, name->file);
    }
    if (!perfetto_bit_get(sequence->modules, frame->module)) {
        perfetto_bit_set(sequence->modules, frame->module);
        write_module(perfetto, frame->module);
    }
    size_t message = export_protobuf_begin(out, INTERNED_FRAMES);
    export_protobuf_number(out, FRAME_ID, id);
    export_protobuf_number(out, FRAME_FUNCTION, (uint64_t)frame->name + 1);
    export_protobuf_number(out, FRAME_MAPPING, (uint64_t)frame->module + 1);
    export_protobuf_number(out, FRAME_PC, frame->pc);
    if (name->file)
        export_protobuf_number(out, FRAME_FILE, (uint64_t)frame->name + 1);
    if (frame->line)
        export_protobuf_number(out, FRAME_LINE, frame->line);
    export_protobuf_end(out, message);
    return true;
}

static bool add_to_path(struct perfetto *perfetto, uint32_t id)
{
    uint32_t *place = id ? BASE_ADD(&perfetto->path) : NULL;
    if (place)
        *place = id;
    return place;
}

// The frames of a stack, innermost first, in perfetto->path. False: no memory.
static bool find_path(struct perfetto *perfetto, uint32_t node)
{
    const struct trace_node *nodes = perfetto->trace->nodes;
    perfetto->path.count = 0;
    for (; node; node = nodes[node].parent) {
        size_t functions = names_count(perfetto->names, node);
        for (size_t i = 0; i < functions; i++)
            if (!add_to_path(perfetto, frame_of(perfetto, node, i, functions)))
                return false;
    }
    return true;
}

static uint8_t error_of_stack(const struct trace *trace, uint32_t node)
{
    while (node && trace->nodes[node].parent)
        node = trace->nodes[node].parent;
    return unwind_error(&trace->nodes[node]);
}

static bool begin_sequence(struct perfetto *perfetto, struct perfetto_sequence *sequence, unsigned kind)
{
    sequence->callstacks = calloc(perfetto_bit_words(perfetto->trace->node_count), sizeof *sequence->callstacks);
    sequence->functions = calloc(perfetto_bit_words(names_id_count(perfetto->names)), sizeof *sequence->functions);
    sequence->modules = calloc(perfetto_bit_words(module_count(perfetto)), sizeof *sequence->modules);
    if (!sequence->callstacks || !sequence->functions || !sequence->modules)
        return false;
    struct protobuf *out = &perfetto->out;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_SAMPLES_FIRST + kind, FLAG_STATE_CLEARED);
    size_t defaults = export_protobuf_begin(out, PACKET_DEFAULTS);
    export_protobuf_number(out, DEFAULTS_CLOCK, CLOCK_MONOTONIC_ID);
    size_t sample = export_protobuf_begin(out, DEFAULTS_PERF_SAMPLE);
    size_t timebase = export_protobuf_begin(out, DEFAULTS_TIMEBASE);
    export_protobuf_text(out, TIMEBASE_NAME, trace_kind_name(perfetto->trace, kind));
    export_protobuf_end(out, timebase);
    export_protobuf_end(out, sample);
    export_protobuf_end(out, defaults);
    perfetto_packet_end(perfetto, packet);
    return true;
}

struct perfetto_sequence *perfetto_intern_sequence(struct perfetto *perfetto, unsigned kind)
{
    struct perfetto_sequence **sequence = &perfetto->sequences[kind];
    if (*sequence)
        return *sequence;
    *sequence = calloc(1, sizeof **sequence);
    return *sequence && begin_sequence(perfetto, *sequence, kind) ? *sequence : NULL;
}

int perfetto_intern_stack(struct perfetto *perfetto, unsigned kind, uint32_t node)
{
    struct protobuf *out = &perfetto->out;
    struct perfetto_sequence *sequence = perfetto_intern_sequence(perfetto, kind);
    if (!sequence)
        return -1;
    if (!node || perfetto_bit_get(sequence->callstacks, node))
        return 0;
    if (!find_path(perfetto, node))
        return -1;
    perfetto_bit_set(sequence->callstacks, node);
    perfetto->errors[node] = error_of_stack(perfetto->trace, node);
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_SAMPLES_FIRST + kind, FLAG_NEEDS_STATE);
    size_t data = export_protobuf_begin(out, PACKET_INTERNED_DATA);
    for (size_t i = 0; i < perfetto->path.count; i++)
        if (!write_frame(perfetto, sequence, perfetto->path.items[i]))
            return -1;
    size_t callstack = export_protobuf_begin(out, INTERNED_CALLSTACKS);
    export_protobuf_number(out, CALLSTACK_ID, node);
    for (size_t i = perfetto->path.count; i-- > 0;)
        export_protobuf_number(out, CALLSTACK_FRAMES, perfetto->path.items[i]);
    export_protobuf_end(out, callstack);
    export_protobuf_end(out, data);
    perfetto_packet_end(perfetto, packet);
    return 0;
}

void perfetto_intern_free(struct perfetto *perfetto)
{
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        struct perfetto_sequence *sequence = perfetto->sequences[kind];
        if (!sequence)
            continue;
        free(sequence->callstacks);
        free(sequence->frames);
        free(sequence->functions);
        free(sequence->modules);
        free(sequence);
    }
    free(perfetto->frames.of_node);
    base_vector_free(&perfetto->frames.vector);
    base_hash_free(&perfetto->frames.index);
    base_vector_free(&perfetto->path.vector);
}
