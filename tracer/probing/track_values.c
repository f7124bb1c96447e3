// SPDX-License-Identifier: Apache-2.0
// Maps as counters: a key that has been among the greatest has one from then on, so that none stays at a value that is
// no more.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "tracer/probing/track.h"

enum { GREATEST = 16, COUNTERS_MAX = 128 }; // of a map; at the end the greatest have one in any case

struct look { // at one map
    struct track *track;
    const struct probe_map *known;
    const struct qut_probe_map *map;
    struct probe_stacks *stacks;
    uint64_t now_ns;
    bool is_end;
};

static bool has_mean(const struct qut_probe_map *map)
{
    return map->kind == QUT_PROBE_AVG || map->kind == QUT_PROBE_HIST || map->kind == QUT_PROBE_LHIST;
}

static int64_t rounded(double number)
{
    return (int64_t)(number < 0 ? number - 0.5 : number + 0.5);
}

static int64_t mean_of(const struct qut_probe_map *map, const struct probe_row *row)
{
    if (map->kind == QUT_PROBE_AVG)
        return rounded(row->weight);
    return row->updates ? rounded((double)(int64_t)row->values[qut_probe_cells(map)] / (double)row->updates) : 0;
}

// ---- keys that have counters

// Where it is, or would be.
static size_t find(const struct track_map *counters, const uint64_t *key, size_t bytes)
{
    size_t low = 0, high = counters->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (memcmp(counters->items[middle].key, key, bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct track_map *counters, size_t at, const uint64_t *key, size_t bytes)
{
    return at < counters->count && memcmp(counters->items[at].key, key, bytes) == 0;
}

static uint32_t name_with(struct track *track, const char *name, const char *what)
{
    char *text = NULL;
    const int length = asprintf(&text, "%s: %s", name, what);
    const uint32_t string = length < 0 ? 0 : probing_track_name(track, text);
    if (length >= 0)
        free(text);
    return string;
}

// False: its stack has no frames yet; or there is no memory, which is noted.
static bool name_key(const struct look *look, struct track_key *counter, const uint64_t *key)
{
    bool is_known;
    char *name = probe_show_key(look->known, key, look->stacks, &is_known);
    look->track->is_short |= !name;
    const bool is_named = name && (is_known || look->is_end);
    if (is_named && has_mean(look->map)) {
        counter->name = name_with(look->track, name, "count");
        counter->mean_name = name_with(look->track, name, "mean");
    } else if (is_named) {
        counter->name = probing_track_name(look->track, name);
    }
    free(name);
    return is_named;
}

static struct track_key *add_key(const struct look *look, struct track_map *counters, size_t at, const uint64_t *key)
{
    struct track_key counter = {.name = 0};
    const size_t bytes = look->map->key_words * sizeof *key;
    if (!name_key(look, &counter, key))
        return NULL;
    counter.key = malloc(bytes + 1);
    if (!counter.key || !BASE_ADD(counters)) {
        look->track->is_short = true;
        free(counter.key);
        return NULL;
    }
    memcpy(counter.key, key, bytes);
    memmove(&counters->items[at + 1], &counters->items[at], (counters->count - 1 - at) * sizeof *counters->items);
    counters->items[at] = counter;
    return &counters->items[at];
}

// ---- values

static void put_value(const struct look *look, struct track_key *counter, int64_t value, int64_t mean, bool is_new)
{
    const bool is_all = look->is_end || is_new;
    if (is_all || counter->value != value)
        probing_track_count(look->track, look->now_ns, counter->name, value);
    if (counter->mean_name && (is_all || counter->mean != mean))
        probing_track_count(look->track, look->now_ns, counter->mean_name, mean);
    counter->value = value;
    counter->mean = mean;
}

// Whether it has a counter, or is to have one when its name is known.
static bool put_row(const struct look *look, struct track_map *counters, const struct probe_row *row, bool is_great)
{
    const size_t bytes = look->map->key_words * sizeof *row->key, at = find(counters, row->key, bytes);
    struct track_key *counter = is_at(counters, at, row->key, bytes) ? &counters->items[at] : NULL;
    const bool is_new = !counter;
    if (is_new && (!is_great || (counters->count >= COUNTERS_MAX && !look->is_end)))
        return false;
    if (is_new)
        counter = add_key(look, counters, at, row->key);
    if (!counter)
        return true;
    counter->is_there = true;
    if (has_mean(look->map))
        put_value(look, counter, (int64_t)row->updates, mean_of(look->map, row), is_new);
    else
        put_value(look, counter, bytecode_maps_number(look->map, row->values[0]), 0, is_new);
    return true;
}

// Since the map was cleared.
static void put_gone(const struct look *look, struct track_map *counters)
{
    for (size_t i = 0; i < counters->count; i++)
        if (!counters->items[i].is_there)
            put_value(look, &counters->items[i], 0, 0, false);
}

static void put_aside(const struct look *look, struct track_aside *aside, const char *what, uint64_t value)
{
    char name[256];
    if (value == aside->value && !(look->is_end && aside->name))
        return;
    if (!aside->name) {
        snprintf(name, sizeof name, "@%s: %s", look->known->name, what);
        aside->name = probing_track_name(look->track, name);
    }
    probing_track_count(look->track, look->now_ns, aside->name, (int64_t)value);
    aside->value = value;
}

static void put_rows(const struct look *look, struct track_map *counters, const struct probe_rows *rows)
{
    uint64_t others = 0;
    for (size_t i = 0; i < counters->count; i++)
        counters->items[i].is_there = false;
    for (size_t i = 0; i < rows->count; i++)
        others += !put_row(look, counters, &rows->items[i], i + GREATEST >= rows->count);
    put_gone(look, counters);
    put_aside(look, &counters->others, "other keys", others);
}

void probing_track_values(struct track *track, const struct probe_script *script, const struct bytecode_maps *maps,
                          struct probe_stacks *stacks, bool is_end)
{
    const struct qut_probe_image image = qut_probe_parts(script->image);
    const uint64_t now_ns = base_clock_now_ns();
    for (uint32_t i = 0; i < image.header->map_count; i++) {
        const struct look look = {.track = track,
                                  .known = &script->maps.items[i],
                                  .map = &image.maps[i],
                                  .stacks = stacks,
                                  .now_ns = now_ns,
                                  .is_end = is_end};
        struct probe_rows rows;
        if (probe_map_is_hidden(look.known) || look.known->value == PROBE_STACK)
            continue;
        if (probe_rows_read(&rows, script, maps, i) != 0) {
            track->is_short = true;
            continue;
        }
        put_rows(&look, &track->maps[i], &rows);
        put_aside(&look, &track->maps[i].lost, "updates without room", bytecode_maps_lost(maps, i));
        probe_rows_free(&rows);
    }
    probing_track_lost(track);
}
