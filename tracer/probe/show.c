// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/format.h"
#include "tracer/probe/parts.h"

enum { BAR_CHARACTERS = 40 };

static const struct qut_probe_map *map_of(const struct probe_script *script, uint32_t map)
{
    return &qut_probe_parts(script->image).maps[map];
}

// ---- stacks

static void print_frames(FILE *out, const char *const *frames, size_t count)
{
    fputc('\n', out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "    %s\n", frames[i]);
}

// Whether that ended the line.
static bool print_stack(FILE *out, struct probe_stacks *stacks, uint64_t number)
{
    const char *const *frames;
    const size_t count = probe_stack_frames(stacks, number, &frames);
    if (count)
        print_frames(out, frames, count);
    else
        fputs(probe_stack_name(number).text, out);
    return count != 0;
}

static void add_frames(struct base_json *json, const char *key, const char *const *frames, size_t count)
{
    base_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        base_json_string(json, NULL, frames[i]);
    base_json_close(json, ']');
}

static void add_stack(struct base_json *json, const char *key, struct probe_stacks *stacks, uint64_t number)
{
    const char *const *frames;
    const size_t count = probe_stack_frames(stacks, number, &frames);
    if (count)
        add_frames(json, key, frames, count);
    else
        base_json_string(json, key, probe_stack_name(number).text);
}

void probe_show_stack(FILE *out, struct probe_stacks *stacks, uint64_t number)
{
    const char *const *frames;
    const size_t count = probe_stack_frames(stacks, number, &frames);
    fprintf(out, "%s:", probe_stack_name(number).text);
    if (count)
        print_frames(out, frames, count);
    else
        fputs(" its frames had no room\n", out);
}

void probe_show_stack_json(struct base_json *json, struct probe_stacks *stacks, uint64_t number)
{
    const char *const *frames = NULL;
    const size_t count = probe_stack_frames(stacks, number, &frames);
    base_json_open(json, NULL, '{');
    base_json_string(json, "stack", probe_stack_name(number).text);
    add_frames(json, "frames", frames, count);
    base_json_close(json, '}');
}

// ---- for people

static void print_key(FILE *out, const struct probe_map *known, const uint64_t *key, struct probe_stacks *stacks)
{
    fprintf(out, "@%s", known->name);
    for (uint32_t i = 0; i < known->key.count; i++) {
        const uint64_t *part = probe_part_at(&known->key, key, i);
        fputs(i ? ", " : "[", out);
        if (known->key.items[i].type == PROBE_TEXT)
            fputs(probe_part_text(part, known->key.items[i].words).bytes, out);
        else if (known->key.items[i].type == PROBE_STACK)
            print_stack(out, stacks, *part);
        else
            fprintf(out, "%" PRId64, (int64_t)*part);
    }
    fputs(known->key.count ? "]" : "", out);
}

static bool print_stack_in_line(FILE *out, struct probe_stacks *stacks, uint64_t number)
{
    const char *const *frames;
    const size_t count = probe_stack_frames(stacks, number, &frames);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%s", i ? " <- " : "", frames[i]);
    if (!count)
        fputs(probe_stack_name(number).text, out);
    return count || !number;
}

char *probe_show_key(const struct probe_map *map, const uint64_t *key, struct probe_stacks *stacks, bool *is_known)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    *is_known = true;
    if (!out)
        return NULL;
    fprintf(out, "@%s", map->name);
    for (uint32_t i = 0; i < map->key.count; i++) {
        const uint64_t *part = probe_part_at(&map->key, key, i);
        fputs(i ? ", " : "[", out);
        if (map->key.items[i].type == PROBE_TEXT)
            fputs(probe_part_text(part, map->key.items[i].words).bytes, out);
        else if (map->key.items[i].type == PROBE_STACK)
            *is_known &= print_stack_in_line(out, stacks, *part);
        else
            fprintf(out, "%" PRId64, (int64_t)*part);
    }
    fputs(map->key.count ? "]" : "", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void print_cell(FILE *out, const struct qut_probe_map *map, uint32_t cell, uint32_t cells)
{
    const int64_t begin = bytecode_maps_cell_begin(map, cell);
    char text[64];
    if (cell == 0)
        snprintf(text, sizeof text, "(..., %" PRId64 ")", bytecode_maps_cell_begin(map, 1));
    else if (cell + 1 == cells || (map->kind == QUT_PROBE_HIST && cell == 64))
        snprintf(text, sizeof text, "[%" PRId64 ", ...)", begin);
    else if (bytecode_maps_cell_begin(map, cell + 1) == begin + 1)
        snprintf(text, sizeof text, "[%" PRId64 "]", begin);
    else
        snprintf(text, sizeof text, "[%" PRId64 ", %" PRId64 ")", begin, bytecode_maps_cell_begin(map, cell + 1));
    fprintf(out, "%-32s", text);
}

// From the first cell that has something to the last one.
static void print_histogram(FILE *out, const struct qut_probe_map *map, const uint64_t *values)
{
    const uint32_t cells = qut_probe_cells(map);
    uint32_t first = cells, last = 0;
    uint64_t most = 1;
    for (uint32_t i = 0; i < cells; i++) {
        if (!values[i])
            continue;
        first = i < first ? i : first;
        last = i;
        most = values[i] > most ? values[i] : most;
    }
    for (uint32_t i = first; i <= last && i < cells; i++) {
        char bar[BAR_CHARACTERS + 1] = "";
        memset(bar, '@', (size_t)((double)values[i] / (double)most * BAR_CHARACTERS));
        print_cell(out, map, i, cells);
        fprintf(out, " %12" PRIu64 " |%-*s|\n", values[i], BAR_CHARACTERS, bar);
    }
}

int probe_show_map(FILE *out, const struct probe_script *script, const struct bytecode_maps *maps, uint32_t number,
                   struct probe_stacks *stacks)
{
    const struct qut_probe_map *map = map_of(script, number);
    const uint64_t lost = bytecode_maps_lost(maps, number);
    const struct probe_map *known = &script->maps.items[number];
    struct probe_rows rows;
    if (probe_rows_read(&rows, script, maps, number) != 0)
        return -1;
    for (size_t i = 0; i < rows.count; i++) {
        const struct probe_row *row = &rows.items[i];
        print_key(out, known, row->key, stacks);
        if (qut_probe_cells(map)) {
            fputs(":\n", out);
            print_histogram(out, map, row->values);
        } else if (map->kind == QUT_PROBE_AVG) {
            fprintf(out, ": %.2f\n", row->weight);
        } else if (known->value == PROBE_STACK) {
            fputs(": ", out);
            if (!print_stack(out, stacks, row->values[0]))
                fputc('\n', out);
        } else {
            fprintf(out, ": %" PRId64 "\n", bytecode_maps_number(map, row->values[0]));
        }
    }
    if (lost)
        fprintf(out, "@%s: %" PRIu64 " more had no room: too many keys\n", known->name, lost);
    probe_rows_free(&rows);
    return 0;
}

// ---- for other programs

static void add_key(struct base_json *json, const struct probe_parts *parts, const uint64_t *key,
                    struct probe_stacks *stacks)
{
    base_json_open(json, "key", '[');
    for (uint32_t i = 0; i < parts->count; i++) {
        const uint64_t *part = probe_part_at(parts, key, i);
        if (parts->items[i].type == PROBE_TEXT)
            base_json_string(json, NULL, probe_part_text(part, parts->items[i].words).bytes);
        else if (parts->items[i].type == PROBE_STACK)
            add_stack(json, NULL, stacks, *part);
        else
            base_json_integer(json, NULL, (int64_t)*part);
    }
    base_json_close(json, ']');
}

static void add_cells(struct base_json *json, const struct qut_probe_map *map, const uint64_t *values)
{
    base_json_open(json, "cells", '[');
    for (uint32_t i = 0; i < qut_probe_cells(map); i++) {
        if (!values[i])
            continue;
        base_json_open(json, NULL, '{');
        if (i == 0)
            base_json_null(json, "from");
        else
            base_json_integer(json, "from", bytecode_maps_cell_begin(map, i));
        base_json_number(json, "count", values[i]);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
}

int probe_show_map_json(struct base_json *json, const struct probe_script *script, const struct bytecode_maps *maps,
                        uint32_t number, struct probe_stacks *stacks)
{
    static const char *const kinds[QUT_PROBE_MAP_KIND_END] = {"count", "sum",  "min",   "max",
                                                              "avg",   "hist", "lhist", "value"};
    const struct qut_probe_map *map = map_of(script, number);
    struct probe_rows rows;
    if (probe_rows_read(&rows, script, maps, number) != 0)
        return -1;
    base_json_open(json, NULL, '{');
    base_json_string(json, "map", script->maps.items[number].name);
    base_json_string(json, "kind", kinds[map->kind]);
    base_json_number(json, "lost", bytecode_maps_lost(maps, number));
    base_json_open(json, "rows", '[');
    for (size_t i = 0; i < rows.count; i++) {
        const struct probe_row *row = &rows.items[i];
        base_json_open(json, NULL, '{');
        add_key(json, &script->maps.items[number].key, row->key, stacks);
        base_json_number(json, "updates", row->updates);
        if (qut_probe_cells(map)) {
            add_cells(json, map, row->values);
            base_json_integer(json, "sum", (int64_t)row->values[qut_probe_cells(map)]);
        } else if (map->kind == QUT_PROBE_AVG) {
            base_json_short_real(json, "value", row->weight);
        } else if (script->maps.items[number].value == PROBE_STACK) {
            add_stack(json, "value", stacks, row->values[0]);
        } else {
            base_json_integer(json, "value", bytecode_maps_number(map, row->values[0]));
        }
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
    base_json_close(json, '}');
    probe_rows_free(&rows);
    return 0;
}

// ---- printf

static void print_plain(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        fputc(text[i], out);
        i += text[i] == '%'; // of two
    }
}

static void print_converted(FILE *out, const struct probe_conversion *how, const struct probe_part *part,
                            const uint64_t *words, struct probe_stacks *stacks)
{
    char format[24];
    if (part->type == PROBE_STACK) {
        print_stack(out, stacks, *words);
    } else if (how->kind == 's') {
        snprintf(format, sizeof format, "%%%s.*s", how->flags);
        const struct probe_part_text text = probe_part_text(words, part->words);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        fprintf(out, format, PROBE_PART_TEXT_MAX, text.bytes);
    } else if (how->kind == 'c') {
        const int character = (int)(*words & 0xff);
        fputc(character >= ' ' && character < 127 ? character : '?', out);
    } else {
        snprintf(format, sizeof format, "%%%sll%c", how->flags, how->kind);
        fprintf(out, format, (long long)*words);
#pragma GCC diagnostic pop
    }
}

void probe_show_record(FILE *out, const struct probe_script *script, uint32_t number, const uint64_t *words,
                       struct probe_stacks *stacks)
{
    const struct probe_record *record = &script->records.items[number];
    struct probe_conversion how;
    size_t plain;
    const char *at = record->format;
    for (uint32_t i = 0;; i++) {
        const char *next = probe_format_next(at, &plain, &how);
        print_plain(out, at, plain);
        if (!next || i >= record->words.count)
            return;
        print_converted(out, &how, &record->words.items[i], probe_part_at(&record->words, words, i), stacks);
        at = next;
    }
}
