// SPDX-License-Identifier: Apache-2.0
// What every Perfetto trace of ours keeps to, whatever the trace is like: read back by a reader that knows no more than
// the format. (What Perfetto itself makes of it: tests/proof/consumers.)
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor_inline.h"
#include "tests/support/golden/golden.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/export/random_trace.h"
#include "tracer/export/export.h"
#include "tracer/export/sink/sink.h"

enum { SEQUENCES = 256, TRACKS = 1 << 12, IDS = 1 << 20 };

// What a sequence has said: a bit for each id.
struct said {
    bool is_begun;
    uint8_t *ids[32]; // by field of InternedData
};

struct track {
    uint64_t uuid;
    uint64_t begun, ended;
};

static struct said sequences[SEQUENCES];
static struct track tracks[TRACKS];
static size_t track_count, sample_count, lost_count, packet_count;
static uint64_t default_track;

static void must(bool is_true, int line)
{
    if (!is_true)
        ck_abort_msg("line %d, packet %zu", line, packet_count);
}

struct field {
    unsigned number;
    uint64_t value;
    struct base_cursor message;
};

static bool next_field(struct base_cursor *cursor, struct field *field)
{
    if (!base_cursor_left(cursor))
        return false;
    uint64_t tag = base_read_uleb(cursor);
    *field = (struct field){.number = (unsigned)(tag >> 3)};
    if ((tag & 7) == 0)
        field->value = base_read_uleb(cursor);
    else if ((tag & 7) == 1)
        field->value = base_read_u64(cursor);
    else if ((tag & 7) == 2)
        field->message = base_cursor(base_read_bytes(cursor, base_read_uleb(cursor)));
    else
        must(false, __LINE__);
    must(!cursor->failed && field->number > 0, __LINE__);
    return true;
}

// The value of a field of a message; 0: it is not there.
static uint64_t value_of(struct base_cursor message, unsigned number)
{
    struct field field;
    uint64_t value = 0;
    while (next_field(&message, &field))
        if (field.number == number)
            value = field.value;
    return value;
}

static bool has_id(struct said *said, unsigned field, uint64_t id)
{
    return id < IDS && said->ids[field] && said->ids[field][id];
}

enum {
    EVENT_NAMES = 2,
    FUNCTIONS = 5,
    FRAMES = 6,
    CALLSTACKS = 7,
    BUILD_IDS = 16,
    PATHS = 17,
    FILES = 18,
    MAPPINGS = 19
};

static void read_interned(struct said *said, struct base_cursor data)
{
    struct field entry, field;
    while (next_field(&data, &entry)) {
        must(entry.number < 32, __LINE__);
        uint64_t id = value_of(entry.message, 1);
        must(id > 0 && id < IDS && !has_id(said, entry.number, id), __LINE__); // once only
        if (!said->ids[entry.number])
            said->ids[entry.number] = calloc(IDS, 1);
        said->ids[entry.number][id] = 1;
        while (next_field(&entry.message, &field)) {
            if (entry.number == FRAMES && field.number == 2)
                must(has_id(said, FUNCTIONS, field.value), __LINE__);
            if (entry.number == FRAMES && field.number == 3)
                must(has_id(said, MAPPINGS, field.value), __LINE__);
            if (entry.number == FRAMES && field.number == 5)
                must(has_id(said, FILES, field.value), __LINE__);
            if (entry.number == CALLSTACKS && field.number == 2)
                must(has_id(said, FRAMES, field.value), __LINE__);
            if (entry.number == MAPPINGS && field.number == 2)
                must(has_id(said, BUILD_IDS, field.value), __LINE__);
            if (entry.number == MAPPINGS && field.number == 7)
                must(has_id(said, PATHS, field.value), __LINE__);
        }
    }
}

static struct track *track_of(uint64_t uuid)
{
    for (size_t i = 0; i < track_count; i++)
        if (tracks[i].uuid == uuid)
            return &tracks[i];
    return NULL;
}

static void read_track(struct base_cursor descriptor)
{
    uint64_t uuid = value_of(descriptor, 1), parent = value_of(descriptor, 5);
    must(uuid != 0 && !track_of(uuid) && track_count < TRACKS, __LINE__);
    must(!parent || track_of(parent), __LINE__);
    tracks[track_count++] = (struct track){.uuid = uuid};
}

static void read_event(struct said *said, struct base_cursor event)
{
    uint64_t type = value_of(event, 9), uuid = value_of(event, 11), name = value_of(event, 10);
    struct track *track = track_of(uuid ? uuid : default_track);
    must(type >= 1 && type <= 4 && track, __LINE__);
    must(!name || has_id(said, EVENT_NAMES, name), __LINE__);
    track->begun += type == 1;
    track->ended += type == 2;
    must(track->ended <= track->begun, __LINE__);
}

static void read_sample(struct said *said, struct base_cursor sample)
{
    uint64_t lost = value_of(sample, 17), callstack = value_of(sample, 4);
    lost_count += lost;
    if (lost) {
        must(!value_of(sample, 2), __LINE__); // no process: Perfetto insists
        return;
    }
    must(value_of(sample, 2) && value_of(sample, 3), __LINE__);
    must(!callstack || has_id(said, CALLSTACKS, callstack), __LINE__);
    sample_count++;
}

static void read_packet(struct base_cursor packet)
{
    uint64_t sequence = value_of(packet, 10), flags = value_of(packet, 13);
    must(sequence > 0 && sequence < SEQUENCES, __LINE__);
    struct said *said = &sequences[sequence];
    must(said->is_begun == (flags != 1), __LINE__); // its first packet, and no other, clears its state
    said->is_begun = true;
    packet_count++;
    struct field field;
    while (next_field(&packet, &field)) {
        if (field.number == 12)
            read_interned(said, field.message);
        else if (field.number == 60)
            read_track(field.message);
        else if (field.number == 66)
            read_sample(said, field.message);
        else if (field.number == 11)
            read_event(said, field.message);
        else if (field.number == 59) {
            struct field defaults;
            while (next_field(&field.message, &defaults))
                if (defaults.number == 11)
                    default_track = value_of(defaults.message, 11);
        }
    }
}

static void forget(void)
{
    for (unsigned i = 0; i < SEQUENCES; i++)
        for (unsigned field = 0; field < 32; field++)
            free(sequences[i].ids[field]);
    memset(sequences, 0, sizeof sequences);
    track_count = sample_count = lost_count = packet_count = 0;
    default_track = 0;
}

// Of one thread (uid), or of all (0).
static void check_thread(const struct trace *trace, bool no_slices, uint32_t uid)
{
    struct base_error error = {0};
    struct names *names = names_of(trace, &(struct names_options){0}, &error);
    struct sink *sink = sink_in_memory();
    struct export_options options = {.no_slices = no_slices};
    struct selection selection;
    char tid[16] = "";
    for (size_t t = 0; uid && t < trace->thread_count; t++)
        if (trace->threads[t].uid == uid)
            snprintf(tid, sizeof tid, "%u", trace->threads[t].tid);
    const struct selection_wanted wanted = {
        .kind = SELECTION_ALL, .thread = uid ? tid : NULL, .to_ns = UINT64_MAX, .show_agent = true};
    ck_assert_int_eq(analysis_selection_make(&selection, trace, &wanted, &error), 0);
    ck_assert_int_eq(export_perfetto.write(&selection, names, &options, sink, &error), 0);
    analysis_selection_free(&selection);
    size_t size;
    const uint8_t *bytes = sink_memory(sink, &size);
    struct base_cursor cursor = base_cursor((struct base_bytes){bytes, size});
    struct field packet;
    while (next_field(&cursor, &packet)) {
        must(packet.number == 1, __LINE__);
        read_packet(packet.message);
    }
    for (size_t i = 0; i < track_count; i++)
        must(tracks[i].begun == tracks[i].ended, __LINE__);
    uint64_t samples = 0, lost = trace->damaged_samples;
    for (size_t t = 0; t < trace->thread_count; t++) {
        const struct trace_thread *thread = &trace->threads[t];
        for (size_t i = 0; (!uid || uid == thread->uid) && i < thread->sample_count; i++)
            samples += trace->samples[thread->first_sample + i].count;
    }
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        lost += trace->counts.lost[i];
    ck_assert_uint_eq(sample_count, samples);
    ck_assert_uint_eq(lost_count, lost);
    forget();
    sink_close(sink, true, &error);
    names_free(names);
}

static void check_trace(const struct trace *trace, bool no_slices)
{
    check_thread(trace, no_slices, 0);
}

START_TEST(golden)
{
    struct trace trace;
    golden_trace(&trace);
    check_trace(&trace, false);
    check_trace(&trace, true);
    for (size_t i = 0; i < trace.thread_count; i++)
        check_thread(&trace, false, trace.threads[i].uid);
    golden_damage(&trace);
    check_trace(&trace, false);
    golden_free(&trace);
}
END_TEST

START_TEST(large)
{
    struct trace trace;
    golden_large(&trace, 20000, 5, 60);
    check_trace(&trace, false);
    golden_free(&trace);
}
END_TEST

START_TEST(any_trace)
{
    for (unsigned i = 0; i < 10; i++) {
        struct trace trace;
        random_trace(&trace, (unsigned)_i * 10 + i + 1);
        check_trace(&trace, i % 4 == 3);
        build_free(&trace);
    }
}
END_TEST

START_TEST(empty)
{
    struct trace trace;
    struct build_trace build;
    build_begin(&build, &trace);
    build_end(&build);
    check_trace(&trace, false);
    build_free(&trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("Perfetto");
    TCase *tests = tcase_create("Perfetto");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, golden);
    tcase_add_test(tests, large);
    tcase_add_test(tests, empty);
    tcase_add_loop_test(tests, any_trace, 0, 20);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
