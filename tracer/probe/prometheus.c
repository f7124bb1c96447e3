// SPDX-License-Identifier: Apache-2.0
// Prometheus's text format. What is counted is a counter; a sum may fall, and is a gauge; an average is a summary
// without quantiles, since its sum and its count are known; a histogram has the same buckets for all keys of its map,
// since it is added up over them.
#include "tracer/probe/prometheus.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_inline.h"
#include "tracer/probe/parts.h"

static const char lost[] = "qut_probes_lost_updates_total"; // no map is called so: theirs begin with "qut_probe_"

static const struct family {
    const char *type, *suffix, *kind;
} families[QUT_PROBE_MAP_KIND_END] = {
    [QUT_PROBE_COUNT] = {"counter", "_total", "count()"},
    [QUT_PROBE_SUM] = {"gauge", "", "sum()"},
    [QUT_PROBE_MIN] = {"gauge", "", "min()"},
    [QUT_PROBE_MAX] = {"gauge", "", "max()"},
    [QUT_PROBE_AVG] = {"summary", "", "avg()"},
    [QUT_PROBE_HIST] = {"histogram", "", "hist()"},
    [QUT_PROBE_LHIST] = {"histogram", "", "lhist()"},
    [QUT_PROBE_VALUE] = {"gauge", "", "the last value"},
};

struct shown {
    FILE *out;
    const struct probe_map *known;
    const struct qut_probe_map *map;
    struct probe_stacks *stacks;
    char *name;      // of its metric; malloc's
    bool have_names; // the parts of its key
};

// ---- names

// Behind "qut_probe".
static char *name_of(const char *map, unsigned underscores)
{
    static const char many[QUT_PROBE_MAPS_MAX + 1] = "________________________________";
    char *name;
    return asprintf(&name, "%s%s%.*s", *map ? "_" : "", map, (int)underscores, many) < 0 ? NULL : name;
}

// Whether it is, with or without an ending, what another map is called that nothing was added to.
static bool is_taken(const struct probe_script *script, uint32_t map, const char *name)
{
    static const char *const endings[] = {"", "_total", "_sum", "_count", "_bucket"};
    for (uint32_t i = 0; i < script->maps.count; i++) {
        const char *other = script->maps.items[i].name;
        const size_t lead = *other ? 1 : 0, length = lead + strlen(other);
        if (i == map || strncmp(name, "_", lead) != 0 || strlen(name) < length ||
            strncmp(name + lead, other, length - lead) != 0)
            continue;
        for (size_t k = 0; k < sizeof endings / sizeof *endings; k++)
            if (strcmp(name + length, endings[k]) == 0)
                return true;
    }
    return false;
}

static int name_metric(struct shown *shown, const struct probe_script *script, uint32_t map)
{
    char *name = NULL;
    for (unsigned underscores = 0; underscores <= script->maps.count; underscores++) {
        free(name);
        name = name_of(shown->known->name, underscores);
        if (!name || !is_taken(script, map, name))
            break;
    }
    const int length = name ? asprintf(&shown->name, "qut_probe%s%s", name, families[shown->map->kind].suffix) : -1;
    free(name);
    return length < 0 ? -1 : 0;
}

// ---- labels

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        const size_t plain = base_utf8_plain(text, "\"\\");
        fwrite(text, 1, plain, out);
        text += plain;
        const size_t length = base_utf8_sequence(text);
        if (!*text)
            return;
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (*text == '\n')
            fputs("\\n", out);
        else if (length)
            fwrite(text, 1, length, out);
        else
            fputs(UTF8_REPLACEMENT, out);
        text += length > 1 ? length - 1 : 0;
    }
}

// The outermost frame first, as folded stacks have them.
static void put_stack(const struct shown *shown, uint64_t number)
{
    const char *const *frames;
    size_t count = probe_stack_frames(shown->stacks, number, &frames);
    if (!count)
        fputs(probe_stack_name(number).text, shown->out);
    while (count-- > 0) {
        put_text(shown->out, frames[count]);
        fputs(count ? ";" : "", shown->out);
    }
}

// Parts have the names that the script has for them, where these are names and differ. "le" and "quantile" are the
// format's own, and so is what begins with two underscores.
static bool have_names(const struct shown *shown)
{
    const struct probe_parts *key = &shown->known->key;
    for (uint32_t i = 0; i < key->count; i++) {
        const char *name = key->items[i].name;
        if (!*name || strncmp(name, "__", 2) == 0 || strcmp(name, "le") == 0 || strcmp(name, "quantile") == 0 ||
            (shown->known->value == PROBE_STACK && strcmp(name, "value") == 0))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(key->items[k].name, name) == 0)
                return false;
    }
    return true;
}

// With the one that is the format's, or a stack that is the map's value; NULL: without.
static void put_labels(const struct shown *shown, const uint64_t *key, const char *le, const uint64_t *stack)
{
    const struct probe_parts *parts = &shown->known->key;
    const char *between = "{";
    for (uint32_t i = 0; i < parts->count; i++) {
        const uint64_t *part = probe_part_at(parts, key, i);
        if (shown->have_names)
            fprintf(shown->out, "%s%s=\"", between, parts->items[i].name);
        else
            fprintf(shown->out, "%skey%" PRIu32 "=\"", between, i + 1);
        if (parts->items[i].type == PROBE_TEXT)
            put_text(shown->out, probe_part_text(part, parts->items[i].words).bytes);
        else if (parts->items[i].type == PROBE_STACK)
            put_stack(shown, *part);
        else
            fprintf(shown->out, "%" PRId64, (int64_t)*part);
        fputc('"', shown->out);
        between = ",";
    }
    if (le)
        fprintf(shown->out, "%sle=\"%s\"", between, le);
    if (stack) {
        fprintf(shown->out, "%svalue=\"", between);
        put_stack(shown, *stack);
        fputc('"', shown->out);
    }
    fputs(parts->count || le || stack ? "} " : " ", shown->out);
}

// ---- rows

static void put_number(const struct shown *shown, const char *ending, const uint64_t *key, int64_t number)
{
    fprintf(shown->out, "%s%s", shown->name, ending);
    put_labels(shown, key, NULL, NULL);
    fprintf(shown->out, "%" PRId64 "\n", number);
}

static void put_bucket(const struct shown *shown, const uint64_t *key, const char *le, uint64_t count)
{
    fprintf(shown->out, "%s_bucket", shown->name);
    put_labels(shown, key, le, NULL);
    fprintf(shown->out, "%" PRIu64 "\n", count);
}

struct range {
    uint32_t begin, end; // cells
};

// From the first to the last cell in which any key has something. What is in the last one of all is beyond all bounds.
static struct range used_cells(const struct probe_rows *rows, uint32_t cells)
{
    struct range range = {cells, 0};
    for (size_t i = 0; i < rows->count; i++)
        for (uint32_t cell = 0; cell + 1 < cells; cell++)
            if (rows->items[i].values[cell]) {
                range.begin = cell < range.begin ? cell : range.begin;
                range.end = cell + 1 > range.end ? cell + 1 : range.end;
            }
    return range;
}

// Values are whole numbers: one below the next cell's begin is the greatest that a cell has.
static void put_histogram(const struct shown *shown, const struct probe_row *row, struct range range)
{
    const uint32_t cells = qut_probe_cells(shown->map);
    const bool has_powers = shown->map->kind == QUT_PROBE_HIST;
    uint64_t count = 0;
    for (uint32_t cell = range.begin; cell < range.end; cell++) {
        char le[32];
        count += row->values[cell];
        if (has_powers && cell == 64) // up to the greatest number of all
            break;
        snprintf(le, sizeof le, "%" PRId64, bytecode_maps_cell_begin(shown->map, cell + 1) - 1);
        put_bucket(shown, row->key, le, count);
    }
    count = 0;
    for (uint32_t cell = 0; cell < cells; cell++)
        count += row->values[cell];
    put_bucket(shown, row->key, "+Inf", count);
    put_number(shown, "_sum", row->key, (int64_t)row->values[cells]);
    put_number(shown, "_count", row->key, (int64_t)count);
}

// A stack is no number: it is a label, and the number is 1.
static void put_stack_value(const struct shown *shown, const struct probe_row *row)
{
    fputs(shown->name, shown->out);
    put_labels(shown, row->key, NULL, row->values);
    fputs("1\n", shown->out);
}

static void put_row(const struct shown *shown, const struct probe_row *row, struct range range)
{
    if (qut_probe_cells(shown->map)) {
        put_histogram(shown, row, range);
    } else if (shown->map->kind == QUT_PROBE_AVG) {
        put_number(shown, "_sum", row->key, bytecode_maps_number(shown->map, row->values[0]));
        put_number(shown, "_count", row->key, (int64_t)row->updates);
    } else if (shown->known->value == PROBE_STACK) {
        put_stack_value(shown, row);
    } else {
        put_number(shown, "", row->key, bytecode_maps_number(shown->map, row->values[0]));
    }
}

// ---- the document

static int show_map(FILE *out, const struct probe_script *script, const struct bytecode_maps *maps, uint32_t map,
                    struct probe_stacks *stacks)
{
    struct shown shown = {.out = out,
                          .known = &script->maps.items[map],
                          .map = &qut_probe_parts(script->image).maps[map],
                          .stacks = stacks};
    const struct family *family = &families[shown.map->kind];
    struct probe_rows rows;
    shown.have_names = have_names(&shown);
    if (name_metric(&shown, script, map) != 0)
        return -1;
    const int status = probe_rows_read(&rows, script, maps, map);
    if (status == 0) {
        fprintf(out, "# HELP %s @%s of the script: %s.\n# TYPE %s %s\n", shown.name, shown.known->name, family->kind,
                shown.name, family->type);
        const struct range range = used_cells(&rows, qut_probe_cells(shown.map));
        for (size_t i = 0; i < rows.count; i++)
            put_row(&shown, &rows.items[i], range);
        probe_rows_free(&rows);
    }
    free(shown.name);
    return status;
}

int probe_show_prometheus(FILE *out, const struct probe_script *script, const struct bytecode_maps *maps,
                          struct probe_stacks *stacks)
{
    for (uint32_t i = 0; i < script->maps.count; i++)
        if (!probe_map_is_hidden(&script->maps.items[i]) && show_map(out, script, maps, i, stacks) != 0)
            return -1;
    fprintf(out, "# HELP %s What had no room: too many keys.\n# TYPE %s counter\n", lost, lost);
    for (uint32_t i = 0; i < script->maps.count; i++)
        fprintf(out, "%s{map=\"%s\"} %" PRIu64 "\n", lost, script->maps.items[i].name, bytecode_maps_lost(maps, i));
    return 0;
}
