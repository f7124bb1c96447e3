// SPDX-License-Identifier: Apache-2.0
// Packets, tracks, and what stands before them.
#include <string.h>

#include "tracer/export/clean.h"
#include "tracer/export/perfetto/inside.h"

enum track_descriptor_field {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_OF_THREAD = 4,
    TRACK_PARENT_UUID = 5,
    TRACK_COUNTER = 8,
};
enum { PROCESS_PID = 1, PROCESS_COMMAND = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3 };
enum { CLOCK_ID = 1, CLOCK_TIME = 2, SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2 };
enum { UUID_HIGH = 1, UUID_LOW = 2 };
enum { TRACK_EVENT_DEFAULT_UUID = 11 };

size_t perfetto_packet_begin(struct perfetto *perfetto, unsigned sequence, unsigned flags)
{
    size_t packet = export_protobuf_begin(&perfetto->out, TRACE_PACKET);
    export_protobuf_number(&perfetto->out, PACKET_SEQUENCE, sequence);
    if (flags)
        export_protobuf_number(&perfetto->out, PACKET_SEQUENCE_FLAGS, flags);
    return packet;
}

size_t perfetto_packet_begin_at(struct perfetto *perfetto, uint64_t time_ns, unsigned sequence)
{
    size_t packet = perfetto_packet_begin(perfetto, sequence, FLAG_NEEDS_STATE);
    export_protobuf_number(&perfetto->out, PACKET_TIMESTAMP, time_ns);
    return packet;
}

void perfetto_packet_end(struct perfetto *perfetto, size_t packet)
{
    export_protobuf_end(&perfetto->out, packet);
    export_protobuf_flush(&perfetto->out, false);
    perfetto->packets++;
}

uint64_t perfetto_track_uuid(const struct perfetto *perfetto, size_t thread, unsigned track)
{
    return perfetto->uuid + thread * TRACK_COUNT + track;
}

uint64_t perfetto_process_uuid(const struct perfetto *perfetto, uint32_t process)
{
    return perfetto_track_uuid(perfetto, process ? perfetto->trace->thread_count + process : 0, TRACK_THREAD);
}

uint64_t perfetto_counter_uuid(const struct perfetto *perfetto, uint32_t number)
{
    const struct trace *trace = perfetto->trace;
    size_t processes = trace->process_count ? trace->process_count : 1;
    return perfetto_track_uuid(perfetto, trace->thread_count + processes, number);
}

static void write_clock(struct protobuf *out, unsigned id, uint64_t time_ns)
{
    if (!time_ns)
        return;
    size_t clock = export_protobuf_begin(out, SNAPSHOT_CLOCKS);
    export_protobuf_number(out, CLOCK_ID, id);
    export_protobuf_number(out, CLOCK_TIME, time_ns);
    export_protobuf_end(out, clock);
}

// The first packet of its sequence: times are of CLOCK_MONOTONIC, and Perfetto shows them as such.
static void write_clocks(struct perfetto *perfetto)
{
    struct protobuf *out = &perfetto->out;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, FLAG_STATE_CLEARED);
    export_protobuf_number(out, PACKET_TIMESTAMP, perfetto->trace->start_ns);
    export_protobuf_number(out, PACKET_CLOCK_ID, CLOCK_MONOTONIC_ID);
    size_t defaults = export_protobuf_begin(out, PACKET_DEFAULTS);
    export_protobuf_number(out, DEFAULTS_CLOCK, CLOCK_MONOTONIC_ID);
    export_protobuf_end(out, defaults);
    size_t snapshot = export_protobuf_begin(out, PACKET_CLOCK_SNAPSHOT);
    export_protobuf_number(out, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
    write_clock(out, CLOCK_MONOTONIC_ID, perfetto->trace->start_ns);
    write_clock(out, CLOCK_BOOTTIME_ID, perfetto->trace->boottime_ns);
    write_clock(out, CLOCK_REALTIME_ID, perfetto->trace->realtime_ns);
    export_protobuf_end(out, snapshot);
    perfetto_packet_end(perfetto, packet);
}

static void write_identity(struct perfetto *perfetto)
{
    uint64_t halves[2];
    memcpy(halves, perfetto->trace->identity, sizeof halves);
    // Ids of tracks are unique among traces that are looked at together: 28 bits of them are the trace's. Small enough
    // for 7 bytes.
    perfetto->uuid = ((halves[0] ^ halves[0] >> 32) & 0x7ffffff) << 21 | (uint64_t)1 << 48;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, 0);
    size_t uuid = export_protobuf_begin(&perfetto->out, PACKET_TRACE_UUID);
    export_protobuf_number(&perfetto->out, UUID_HIGH, halves[1]);
    export_protobuf_number(&perfetto->out, UUID_LOW, halves[0]);
    export_protobuf_end(&perfetto->out, uuid);
    perfetto_packet_end(perfetto, packet);
}

static void write_process(struct perfetto *perfetto, uint64_t uuid, uint32_t pid, const char *command)
{
    struct protobuf *out = &perfetto->out;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, FLAG_NEEDS_STATE);
    size_t descriptor = export_protobuf_begin(out, PACKET_TRACK_DESCRIPTOR);
    export_protobuf_number(out, TRACK_UUID, uuid);
    size_t process = export_protobuf_begin(out, TRACK_PROCESS);
    export_protobuf_number(out, PROCESS_PID, pid);
    if (command) {
        export_protobuf_text(out, PROCESS_COMMAND, command);
        export_protobuf_text(out, PROCESS_NAME, command);
    }
    export_protobuf_end(out, process);
    export_protobuf_end(out, descriptor);
    perfetto_packet_end(perfetto, packet);
}

void perfetto_write_head(struct perfetto *perfetto)
{
    const struct trace *trace = perfetto->trace;
    write_clocks(perfetto);
    write_identity(perfetto);
    if (!trace->process_count)
        write_process(perfetto, perfetto_process_uuid(perfetto, 0), trace->pid, trace->command);
    for (uint32_t i = 0; i < trace->process_count; i++)
        write_process(perfetto, perfetto_process_uuid(perfetto, i), trace->processes[i].pid,
                      trace->processes[i].command);
}

void perfetto_write_thread(struct perfetto *perfetto, const struct trace_thread *thread)
{
    struct protobuf *out = &perfetto->out;
    size_t index = (size_t)(thread - perfetto->trace->threads) + 1;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, FLAG_NEEDS_STATE);
    size_t descriptor = export_protobuf_begin(out, PACKET_TRACK_DESCRIPTOR);
    export_protobuf_number(out, TRACK_UUID, perfetto_track_uuid(perfetto, index, TRACK_THREAD));
    size_t message = export_protobuf_begin(out, TRACK_OF_THREAD);
    export_protobuf_number(out, THREAD_PID, trace_pid_of(perfetto->trace, thread));
    export_protobuf_number(out, THREAD_TID, thread->tid);
    char name[CLEAN_THREAD_NAME_BYTES];
    export_protobuf_text(out, THREAD_NAME, export_clean_thread_name(thread, name));
    export_protobuf_end(out, message);
    export_protobuf_end(out, descriptor);
    perfetto_packet_end(perfetto, packet);
}

static void write_descriptor(struct perfetto *perfetto, uint64_t uuid, uint64_t parent_uuid, const char *name,
                             bool is_counter, enum counter_unit unit)
{
    struct protobuf *out = &perfetto->out;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, FLAG_NEEDS_STATE);
    size_t descriptor = export_protobuf_begin(out, PACKET_TRACK_DESCRIPTOR);
    export_protobuf_number(out, TRACK_UUID, uuid);
    export_protobuf_text(out, TRACK_NAME, name);
    export_protobuf_number(out, TRACK_PARENT_UUID, parent_uuid);
    if (is_counter) {
        size_t counter = export_protobuf_begin(out, TRACK_COUNTER);
        if (unit)
            export_protobuf_number(out, COUNTER_UNIT, unit);
        export_protobuf_end(out, counter);
    }
    export_protobuf_end(out, descriptor);
    perfetto_packet_end(perfetto, packet);
}

void perfetto_write_track(struct perfetto *perfetto, uint64_t uuid, uint64_t parent_uuid, const char *name)
{
    write_descriptor(perfetto, uuid, parent_uuid, name, false, UNIT_NONE);
}

void perfetto_write_counter_track(struct perfetto *perfetto, uint64_t uuid, uint64_t parent_uuid, const char *name,
                                  enum counter_unit unit)
{
    write_descriptor(perfetto, uuid, parent_uuid, name, true, unit);
}

void perfetto_write_default_track(struct perfetto *perfetto, uint64_t uuid)
{
    struct protobuf *out = &perfetto->out;
    size_t packet = perfetto_packet_begin(perfetto, SEQUENCE_EVENTS, FLAG_NEEDS_STATE);
    size_t defaults = export_protobuf_begin(out, PACKET_DEFAULTS);
    export_protobuf_number(out, DEFAULTS_CLOCK, CLOCK_MONOTONIC_ID);
    size_t event = export_protobuf_begin(out, DEFAULTS_TRACK_EVENT);
    export_protobuf_number(out, TRACK_EVENT_DEFAULT_UUID, uuid);
    export_protobuf_end(out, event);
    export_protobuf_end(out, defaults);
    perfetto_packet_end(perfetto, packet);
}
