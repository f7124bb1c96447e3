// SPDX-License-Identifier: Apache-2.0
// What the parts of the Perfetto writer share. Numbers of fields and enumerations are those
// of Perfetto's protos/perfetto/trace.
#ifndef TRACER_EXPORT_PERFETTO_INSIDE_H
#define TRACER_EXPORT_PERFETTO_INSIDE_H

#include "base/interner.h"
#include "base/vector.h"
#include "tracer/export/export.h"
#include "tracer/export/protobuf.h"

enum { TRACE_PACKET = 1 };

enum trace_packet_field {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED_DATA = 12,
    PACKET_SEQUENCE_FLAGS = 13,
    PACKET_CLOCK_ID = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK_DESCRIPTOR = 60,
    PACKET_PERF_SAMPLE = 66,
    PACKET_TRACE_UUID = 89,
};
enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3, CLOCK_BOOTTIME_ID = 6 };

enum packet_defaults_field { DEFAULTS_TRACK_EVENT = 11, DEFAULTS_PERF_SAMPLE = 12, DEFAULTS_CLOCK = 58 };

enum interned_field {
    INTERNED_EVENT_NAMES = 2,
    INTERNED_FUNCTION_NAMES = 5,
    INTERNED_FRAMES = 6,
    INTERNED_CALLSTACKS = 7,
    INTERNED_BUILD_IDS = 16,
    INTERNED_MAPPING_PATHS = 17,
    INTERNED_SOURCE_PATHS = 18,
    INTERNED_MAPPINGS = 19,
};

enum track_event_field {
    EVENT_DEBUG_ANNOTATIONS = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK_UUID = 11,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_FLOW_IDS = 47,
    EVENT_TERMINATING_FLOW_IDS = 48,
};
enum track_event_type { EVENT_SLICE_BEGIN = 1, EVENT_SLICE_END = 2, EVENT_INSTANT = 3, EVENT_COUNTER = 4 };

enum annotation_field {
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_TEXT = 6,
    ANNOTATION_POINTER = 7,
    ANNOTATION_NAME = 10,
};

enum counter_unit { UNIT_NONE = 0, UNIT_TIME_NS = 1, UNIT_COUNT = 2, UNIT_BYTES = 3 };

// Packets come on sequences, each with its own interned data: what happened on one, the samples of each kind on one
// more, since Perfetto takes a sequence of samples for one recording, and gives it a name.
enum {
    SEQUENCE_EVENTS = 1,
    SEQUENCE_SAMPLES_FIRST = 2,
    KIND_COUNT = QUT_TRACE_OWN_KIND_FIRST + QUT_TRACE_OWN_KIND_COUNT
};

// Tracks of a thread; those of the process take the place of a thread of their own.
enum track {
    TRACK_THREAD = 0,
    TRACK_SLICES,
    TRACK_BLOCKED,
    TRACK_EVENTS,
    TRACK_MARKS,
    TRACK_LOSSES,
    TRACK_CPU,
    TRACK_METRICS_FIRST = 8,
    TRACK_COUNT = TRACK_METRICS_FIRST + QUT_TRACE_METRIC_COUNT,
};

struct perfetto_frame {
    uint64_t pc;
    uint32_t module, name;
    uint32_t line; // 0: not known
};

// The same in all sequences. Functions have the ids of their names, modules their indices, + 1.
struct perfetto_frames {
    uint32_t *of_node;                  // the id of a node with one function; 0: not known yet
    BASE_VECTOR(struct perfetto_frame); // by id - 1
    struct base_hash_index index;
};

// What of it a sequence has said: a bit each.
struct perfetto_sequence {
    uint64_t *callstacks, *frames, *functions, *modules;
    size_t frame_bits; // there is room for so many
};

struct perfetto {
    const struct selection *selection;
    const struct trace *trace; // the selection's
    const struct names *names;
    const struct export_options *options;
    struct protobuf out;
    uint64_t packets, samples, slices;
    uint64_t uuid; // of the first track; the others' follow
    struct perfetto_frames frames;
    struct perfetto_sequence *sequences[KIND_COUNT];
    uint8_t *errors;               // of each node whose stack was said: Perfetto's unwind error
    BASE_VECTOR(uint32_t) path;    // ids of frames
    uint64_t *event_names;         // bits: said on SEQUENCE_EVENTS
    struct base_interner counters; // names of the process's
};

// ---- perfetto_packet.c

// A packet, which lasts until perfetto_packet_end(what this returns).
size_t perfetto_packet_begin(struct perfetto *perfetto, unsigned sequence, unsigned flags);
size_t perfetto_packet_begin_at(struct perfetto *perfetto, uint64_t time_ns, unsigned sequence);
void perfetto_packet_end(struct perfetto *perfetto, size_t packet);

uint64_t perfetto_track_uuid(const struct perfetto *perfetto, size_t thread, unsigned track); // thread: its index + 1
// The same for tracks of a process, and of all. Processes but the first, and counters, stand behind the threads.
uint64_t perfetto_process_uuid(const struct perfetto *perfetto, uint32_t process);
uint64_t perfetto_counter_uuid(const struct perfetto *perfetto, uint32_t number);
void perfetto_write_head(struct perfetto *perfetto);
void perfetto_write_thread(struct perfetto *perfetto, const struct trace_thread *thread);
// A track below another one.
void perfetto_write_track(struct perfetto *perfetto, uint64_t uuid, uint64_t parent_uuid, const char *name);
void perfetto_write_counter_track(struct perfetto *perfetto, uint64_t uuid, uint64_t parent_uuid, const char *name,
                                  enum counter_unit unit);
// That events belong to this track, when they do not say so.
void perfetto_write_default_track(struct perfetto *perfetto, uint64_t uuid);

// ---- perfetto_intern.c

// Says what is not yet known of the stack, in a packet of its own. Returns 0, or -1 without memory.
int perfetto_intern_stack(struct perfetto *perfetto, unsigned kind, uint32_t node);
// The sequence's first packet, if there was none. NULL: no memory.
struct perfetto_sequence *perfetto_intern_sequence(struct perfetto *perfetto, unsigned kind);
void perfetto_intern_free(struct perfetto *perfetto);

static inline bool perfetto_bit_get(const uint64_t *bits, size_t index)
{
    return bits[index / 64] >> index % 64 & 1;
}
static inline void perfetto_bit_set(uint64_t *bits, size_t index)
{
    bits[index / 64] |= (uint64_t)1 << index % 64;
}
static inline size_t perfetto_bit_words(size_t count)
{
    return count / 64 + 1;
}

// ---- perfetto_samples.c: each sample, those that were merged too. Returns 0, or -1 without memory.
int perfetto_write_sample(struct perfetto *perfetto, const struct trace_thread *thread,
                          const struct trace_sample *sample);
void perfetto_write_lost(struct perfetto *perfetto, uint64_t time_ns, uint64_t count);

// ---- perfetto_events.c: slices, marks, counters, blocked stretches, flows, losses of one thread, and its samples.
int perfetto_write_events(struct perfetto *perfetto, const struct trace_thread *thread);
// The id of a slice's name, which is said before where it was not.
uint64_t perfetto_intern_event_name(struct perfetto *perfetto, const struct name *name);

// ---- perfetto_calls.c: exact calls, on tracks of their own below their threads'. Returns 0, or -1 without memory.
int perfetto_write_calls(struct perfetto *perfetto);

// ---- perfetto_account.c: what was counted, and the end: a file without it was cut off.
void perfetto_write_account(struct perfetto *perfetto);

#endif
