// SPDX-License-Identifier: Apache-2.0
// Maps and records, as struct qut_probe_map_definition and struct qut_probe_record_definition say them.
#include <qut/probe.h>

#include <stdlib.h>

#include "tracer/probe/format.h"
#include "tracer/probe/object_inside.h"

#define SAME(THEIRS, OURS) static_assert((int)(THEIRS) == (int)(OURS), "the public header says what the format does")
SAME(QUT_PROBE_MAP_COUNT, QUT_PROBE_COUNT);
SAME(QUT_PROBE_MAP_SUM, QUT_PROBE_SUM);
SAME(QUT_PROBE_MAP_MIN, QUT_PROBE_MIN);
SAME(QUT_PROBE_MAP_MAX, QUT_PROBE_MAX);
SAME(QUT_PROBE_MAP_AVG, QUT_PROBE_AVG);
SAME(QUT_PROBE_MAP_HIST, QUT_PROBE_HIST);
SAME(QUT_PROBE_MAP_LHIST, QUT_PROBE_LHIST);
SAME(QUT_PROBE_MAP_VALUE, QUT_PROBE_VALUE);
SAME(offsetof(struct qut_probe_context, arg), 8 * QUT_PROBE_ARG0);
SAME(offsetof(struct qut_probe_context, retval), 8 * QUT_PROBE_RETVAL);
SAME(offsetof(struct qut_probe_context, duration), 8 * QUT_PROBE_DURATION);
SAME(offsetof(struct qut_probe_context, time), 8 * QUT_PROBE_TIME);
SAME(offsetof(struct qut_probe_context, tid), 8 * QUT_PROBE_TID);
SAME(offsetof(struct qut_probe_context, pid), 8 * QUT_PROBE_PID);
SAME(offsetof(struct qut_probe_context, error), 8 * QUT_PROBE_ERRNO);
SAME(offsetof(struct qut_probe_context, random), 8 * QUT_PROBE_RANDOM);
SAME(sizeof(struct qut_probe_context), 8 * QUT_PROBE_FIELD_END);
SAME(sizeof(struct qut_probe_map_definition), 64);
SAME(sizeof(struct qut_probe_record_definition), 256);
SAME(sizeof((struct probe_parts){0}.items) / sizeof(struct probe_part), QUT_PROBE_PARTS);

enum { NUMBER = QUT_PROBE_NUMBER >> 16, TEXT = QUT_PROBE_TEXT(8) >> 16, FRAMES = QUT_PROBE_FRAMES >> 16 };
enum { NAME_BYTES_MAX = 63, PART_WORDS_MAX = QUT_PROBE_READ_BYTES_MAX / 8 };

static bool read_parts(struct probe_object *object, struct base_cursor *c, const char *name, uint32_t words_max,
                       struct probe_parts *parts)
{
    bool is_over = false;
    *parts = (struct probe_parts){.is_in_order = true};
    for (uint32_t i = 0; i < QUT_PROBE_PARTS; i++) {
        const uint32_t part = base_read_u32(c), type = part >> 16, words = part & 0xffff;
        if (part == 0) {
            is_over = true;
            continue;
        }
        if (is_over || words == 0 || words > PART_WORDS_MAX || (type != TEXT && words != 1) ||
            (type != NUMBER && type != TEXT && type != FRAMES))
            return probe_object_fail(object,
                                     "%s: part %u is none: QUT_PROBE_NUMBER, QUT_PROBE_TEXT(1 to 256), "
                                     "QUT_PROBE_FRAMES",
                                     name, i + 1);
        parts->items[parts->count++] = (struct probe_part){.type = type == TEXT     ? PROBE_TEXT
                                                                   : type == FRAMES ? PROBE_STACK
                                                                                    : PROBE_INTEGER,
                                                           .words = words};
        parts->words += words;
    }
    return parts->words <= words_max ||
           probe_object_fail(object, "%s: its parts have %u bytes, and at most %u have room", name, parts->words * 8,
                             words_max * 8);
}

// The one symbol of an object at this place; NULL, and the fault: there is none, or another size.
static const char *name_at(struct probe_object *object, uint32_t section, uint64_t at, uint64_t size_bytes)
{
    const char *name = NULL;
    for (size_t i = 0; i < object->symbols.count; i++) {
        const struct probe_symbol *symbol = &object->symbols.items[i];
        if (symbol->section != section || symbol->type != STT_OBJECT || symbol->at / size_bytes != at / size_bytes)
            continue;
        if (name || symbol->at != at || symbol->size_bytes != size_bytes) {
            probe_object_fail(object, "%s: in section \"%s\" only what qut/probe.h defines may stand", symbol->name,
                              object->sections.items[section].name);
            return NULL;
        }
        name = symbol->name;
    }
    if (!name)
        probe_object_fail(object, "section \"%s\" has bytes at 0x%llx that no name stands for",
                          object->sections.items[section].name, (unsigned long long)at);
    return name;
}

static bool is_name(const char *name)
{
    const size_t length = strlen(name);
    return length > 0 && length <= NAME_BYTES_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == length;
}

// How many definitions a section has; false: it is none of such.
static bool count_in(struct probe_object *object, const char *name, uint32_t bytes, uint32_t most, uint32_t *section,
                     uint32_t *count)
{
    *section = *count = 0;
    for (uint32_t i = 1; i < object->sections.count; i++)
        if (strcmp(object->sections.items[i].name, name) == 0) {
            if (*section || object->sections.items[i].bytes.size % bytes)
                return probe_object_fail(object, "section \"%s\": there are two, or it is not as qut/probe.h makes it",
                                         name);
            *section = i;
            *count = (uint32_t)(object->sections.items[i].bytes.size / bytes);
        }
    for (size_t i = 0; *section && i < object->sections.count; i++) {
        const struct probe_section *other = &object->sections.items[i];
        if ((other->type == SHT_REL || other->type == SHT_RELA) && other->info == *section)
            return probe_object_fail(object, "section \"%s\" has addresses in it: it may have numbers and texts only",
                                     name);
    }
    return *count <= most ||
           probe_object_fail(object, "section \"%s\" has %u definitions, and at most %u have room", name, *count, most);
}

static bool add_map(struct probe_object *object, const char *name, struct base_cursor *c)
{
    const uint32_t kind = base_read_u32(c), zero = base_read_u32(c);
    struct probe_parts key;
    if (!is_name(name))
        return probe_object_fail(object, "%s: a map's name has at most %d letters, digits and underscores", name,
                                 NAME_BYTES_MAX);
    for (size_t i = 0; i < object->c.script->maps.count; i++)
        if (strcmp(object->c.script->maps.items[i].name, name) == 0)
            return probe_object_fail(object, "%s: two maps have this name", name);
    if (kind >= QUT_PROBE_MAP_KIND_END || zero)
        return probe_object_fail(object, "%s: there is no such kind of map", name);
    if (!read_parts(object, c, name, QUT_PROBE_KEY_WORDS_MAX, &key))
        return false;
    struct qut_probe_map *map = BASE_ADD(&object->c.maps);
    struct probe_map *known = map ? BASE_ADD(&object->c.script->maps) : NULL;
    if (!known)
        return probe_object_no_memory(object);
    *map = (struct qut_probe_map){.kind = kind, .key_words = key.words};
    map->low = (int64_t)base_read_u64(c);
    map->step = (int64_t)base_read_u64(c);
    map->steps = base_read_u64(c);
    *known = (struct probe_map){.name = strdup(name), .key = key};
    return known->name || probe_object_no_memory(object);
}

bool probe_object_maps(struct probe_object *object)
{
    enum { BYTES = sizeof(struct qut_probe_map_definition) };
    uint32_t count;
    if (!count_in(object, "qut.maps", BYTES, QUT_PROBE_MAPS_MAX, &object->maps_section, &count))
        return false;
    struct base_cursor c = base_cursor(object->sections.items[object->maps_section].bytes);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = name_at(object, object->maps_section, (uint64_t)i * BYTES, BYTES);
        if (!name || !add_map(object, name, &c))
            return false;
    }
    return true;
}

// As probe_format_fits says it of scripts.
static bool format_fits(struct probe_object *object, const char *name, const char *format,
                        const struct probe_parts *parts)
{
    struct probe_conversion conversion;
    uint32_t count = 0;
    size_t plain;
    for (const char *next = format; (next = probe_format_next(next, &plain, &conversion)); count++) {
        if (!conversion.kind)
            return probe_object_fail(object, "%s: conversion %u is none of %%d %%u %%x %%X %%c %%s", name, count + 1);
        if (count < parts->count && (conversion.kind == 's') != (parts->items[count].type != PROBE_INTEGER))
            return probe_object_fail(object, "%s: %%%c stands for %s, and part %u is none", name, conversion.kind,
                                     conversion.kind == 's' ? "a text or frames" : "a number", count + 1);
    }
    return count == parts->count ||
           probe_object_fail(object, "%s: %u conversions for %u parts", name, count, parts->count);
}

static bool add_record(struct probe_object *object, const char *name, struct base_cursor *c)
{
    struct probe_parts words;
    if (!read_parts(object, c, name, QUT_PROBE_RECORD_WORDS_MAX, &words))
        return false;
    const struct base_bytes text = base_read_bytes(c, QUT_PROBE_FORMAT_BYTES);
    if (!text.size || !memchr(text.data, 0, text.size))
        return probe_object_fail(object, "%s: its format does not end within %d bytes", name, QUT_PROBE_FORMAT_BYTES);
    if (!format_fits(object, name, (const char *)text.data, &words))
        return false;
    struct probe_record *record = BASE_ADD(&object->c.script->records);
    if (!record)
        return probe_object_no_memory(object);
    *record = (struct probe_record){.format = strdup((const char *)text.data), .words = words};
    return record->format || probe_object_no_memory(object);
}

bool probe_object_records(struct probe_object *object)
{
    enum { BYTES = sizeof(struct qut_probe_record_definition) };
    uint32_t count;
    if (!count_in(object, "qut.records", BYTES, QUT_PROBE_RECORDS_MAX, &object->records_section, &count))
        return false;
    struct base_cursor c = base_cursor(object->sections.items[object->records_section].bytes);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = name_at(object, object->records_section, (uint64_t)i * BYTES, BYTES);
        if (!name || !add_record(object, name, &c))
            return false;
    }
    return true;
}
