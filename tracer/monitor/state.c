// SPDX-License-Identifier: Apache-2.0
// What is remembered of segments, as text: a line for each thing. It is our own, and read as if it were not.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/export/sink/sink.h"
#include "tracer/monitor/inside.h"

static const char first_line[] = "qut-monitor 1\n", last_line[] = "end\n";
enum { LINE_BYTES = 256 };

// The sums by name.
static uint64_t *sum_at(struct monitor_state *state, size_t index, const char **name)
{
    struct monitor_balance *sums = &state->sums;
    const struct {
        const char *name;
        uint64_t *value;
    } all[] = {{"windows", &sums->windows},         {"ended", &sums->ended},
               {"vanished", &sums->vanished},       {"told", &sums->told},
               {"in-windows", &sums->in_windows},   {"left-out", &sums->left_out},
               {"overwritten", &sums->overwritten}, {"unreadable", &sums->unreadable},
               {"cut-off", &sums->cut_off},         {"lost", &sums->lost},
               {"from-ns", &state->from_ns}};
    if (index >= sizeof all / sizeof *all)
        return NULL;
    *name = all[index].name;
    return all[index].value;
}

void monitor_state_free(struct monitor_state *state)
{
    for (size_t i = 0; i < state->count; i++)
        newer_seen_free(&state->items[i].seen);
    base_vector_free(&state->vector);
    base_vector_free(&state->requests.vector);
    *state = (struct monitor_state){.from_ns = 0};
}

bool monitor_state_copy(struct monitor_state *to, const struct monitor_state *from)
{
    *to = (struct monitor_state){.sums = from->sums, .from_ns = from->from_ns};
    bool is_good = BASE_RESERVE(to, from->count);
    for (size_t i = 0; i < from->count && is_good; i++) {
        struct monitor_segment *segment = BASE_ADD(to);
        *segment = from->items[i];
        segment->is_there = false;
        segment->seen = (struct newer_seen){.items = NULL};
        for (size_t w = 0; w < from->items[i].seen.count && is_good; w++)
            is_good = newer_seen_add(&segment->seen, &from->items[i].seen.items[w]);
    }
    if (!is_good)
        monitor_state_free(to);
    return is_good;
}

struct monitor_segment *monitor_state_find(struct monitor_state *state, const uint8_t identity[16])
{
    for (size_t i = 0; i < state->count; i++)
        if (memcmp(state->items[i].identity, identity, sizeof state->items[i].identity) == 0)
            return &state->items[i];
    return NULL;
}

// ---- sums

static void add_segment(struct monitor_balance *sums, const struct monitor_segment *segment)
{
    const uint64_t missing = segment->told > segment->taken ? segment->told - segment->taken : 0;
    sums->told += segment->told > segment->taken ? segment->told : segment->taken;
    sums->lost += segment->lost;
    *(segment->is_damaged ? &sums->unreadable : &sums->overwritten) += missing;
}

void monitor_state_fold(struct monitor_state *state, bool is_all)
{
    size_t kept = 0;
    for (size_t i = 0; i < state->count; i++) {
        struct monitor_segment *segment = &state->items[i];
        if (segment->is_there || (!segment->is_ended && !is_all)) {
            state->items[kept++] = *segment;
            continue;
        }
        add_segment(&state->sums, segment);
        *(segment->is_ended ? &state->sums.ended : &state->sums.vanished) += 1;
        newer_seen_free(&segment->seen);
    }
    state->count = kept;
}

void monitor_state_add_up(const struct monitor_state *state, struct monitor_balance *balance)
{
    *balance = state->sums;
    for (size_t i = 0; i < state->count; i++) {
        add_segment(balance, &state->items[i]);
        *(state->items[i].is_ended ? &balance->ended : &balance->processes) += 1;
    }
}

// ---- written

static void write_line(struct sink *sink, const char *word, const char *text, const uint64_t *numbers, size_t count)
{
    sink_text(sink, word);
    if (text) {
        sink_text(sink, " ");
        sink_text(sink, text);
    }
    for (size_t i = 0; i < count; i++) {
        sink_text(sink, " ");
        sink_number(sink, numbers[i]);
    }
    sink_text(sink, "\n");
}

static void write_segment(struct sink *sink, const struct monitor_segment *segment)
{
    char identity[2 * sizeof segment->identity + 1];
    for (size_t i = 0; i < sizeof segment->identity; i++)
        snprintf(identity + 2 * i, 3, "%02x", segment->identity[i]);
    const uint64_t numbers[] = {segment->told, segment->lost, segment->taken, segment->is_ended, segment->is_damaged};
    write_line(sink, "segment", identity, numbers, sizeof numbers / sizeof *numbers);
    for (size_t i = 0; i < segment->seen.count; i++) {
        const struct newer_writer *writer = &segment->seen.items[i];
        const uint64_t of_writer[] = {writer->uid, writer->level, writer->seq, writer->samples, writer->cpu_ns};
        write_line(sink, "writer", NULL, of_writer, sizeof of_writer / sizeof *of_writer);
    }
}

int monitor_state_write(const struct monitor_state *state, const char *path, struct base_error *error)
{
    struct sink *sink = sink_file(path, error);
    if (!sink)
        return -1;
    sink_sync(sink);
    sink_text(sink, first_line);
    const char *name;
    struct monitor_state sums = *state;
    const uint64_t *value;
    for (size_t i = 0; (value = sum_at(&sums, i, &name)) != NULL; i++)
        write_line(sink, "sum", name, value, 1);
    for (uint64_t why = 0; why < AGENT_LEFT_COUNT; why++)
        if (state->sums.left[why])
            write_line(sink, "left", NULL, (const uint64_t[]){why, state->sums.left[why]}, 2);
    if (state->sums.failed_error)
        write_line(sink, "failed", NULL, (const uint64_t[]){state->sums.failed_call, state->sums.failed_error}, 2);
    for (size_t i = 0; i < state->count; i++)
        write_segment(sink, &state->items[i]);
    for (size_t i = 0; i < state->requests.count; i++)
        write_line(sink, "request", state->requests.items[i].id, &state->requests.items[i].samples, 1);
    sink_text(sink, last_line);
    return sink_close(sink, true, error);
}

// ---- read

static bool take_identity(const char *text, uint8_t identity[16])
{
    for (size_t i = 0; i < 16; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            return false;
        identity[i] = (uint8_t)byte;
    }
    return true;
}

static bool take_sum(struct monitor_state *state, const char *line)
{
    char word[24];
    const char *name;
    uint64_t value, *place;
    if (sscanf(line, "sum %23s %" SCNu64, word, &value) != 2)
        return false;
    for (size_t i = 0; (place = sum_at(state, i, &name)) != NULL; i++) {
        if (strcmp(name, word) == 0) {
            *place = value;
            return true;
        }
    }
    return false;
}

static bool take_left(struct monitor_state *state, const char *line)
{
    unsigned why;
    uint64_t count;
    if (sscanf(line, "left %2u %" SCNu64, &why, &count) != 2 || why >= AGENT_LEFT_COUNT)
        return false;
    state->sums.left[why] = count;
    return true;
}

static bool take_failed(struct monitor_state *state, const char *line)
{
    return sscanf(line, "failed %5" SCNu16 " %5" SCNu16, &state->sums.failed_call, &state->sums.failed_error) == 2;
}

static bool take_segment(struct monitor_state *state, const char *line)
{
    struct monitor_segment segment = {.told = 0};
    char identity[33];
    unsigned is_ended, is_damaged;
    if (sscanf(line, "segment %32[0-9a-f] %" SCNu64 " %" SCNu64 " %" SCNu64 " %u %u", identity, &segment.told,
               &segment.lost, &segment.taken, &is_ended, &is_damaged) != 6 ||
        strlen(identity) != 32 || !take_identity(identity, segment.identity))
        return false;
    segment.is_ended = is_ended;
    segment.is_damaged = is_damaged;
    struct monitor_segment *place = BASE_ADD(state);
    if (place)
        *place = segment;
    return place;
}

static bool take_writer(struct monitor_state *state, const char *line)
{
    struct newer_writer writer;
    return state->count &&
           sscanf(line, "writer %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64, &writer.uid, &writer.level,
                  &writer.seq, &writer.samples, &writer.cpu_ns) == 5 &&
           newer_seen_add(&state->items[state->count - 1].seen, &writer);
}

static bool take_request(struct monitor_state *state, const char *line)
{
    struct monitor_request request = {.id = ""};
    if (sscanf(line, "request %32[0-9a-f] %" SCNu64, request.id, &request.samples) != 2)
        return false;
    struct monitor_request *place = BASE_ADD(&state->requests);
    if (place)
        *place = request;
    return place;
}

static bool take_line(struct monitor_state *state, const char *line)
{
    switch (line[0]) {
    case 's': return line[1] == 'u' ? take_sum(state, line) : take_segment(state, line);
    case 'w': return take_writer(state, line);
    case 'l': return take_left(state, line);
    case 'f': return take_failed(state, line);
    case 'r': return take_request(state, line);
    default: return false;
    }
}

int monitor_state_read(struct monitor_state *state, const char *path, struct base_error *error)
{
    char line[LINE_BYTES];
    *state = (struct monitor_state){.from_ns = 0};
    FILE *file = fopen(path, "re");
    if (!file)
        return errno == ENOENT ? 1 : base_fail_errno(error, errno);
    bool is_good = fgets(line, sizeof line, file) && strcmp(line, first_line) == 0, is_whole = false;
    while (is_good && !is_whole && fgets(line, sizeof line, file)) {
        is_whole = strcmp(line, last_line) == 0;
        is_good = is_whole || take_line(state, line);
    }
    fclose(file);
    if (is_good && is_whole)
        return 0;
    monitor_state_free(state);
    return base_fail(error, BASE_ERR_MALFORMED, "", 0, "what was remembered of windows cannot be read");
}
