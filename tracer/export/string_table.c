// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/string_table.h"

#include <stdlib.h>
#include <string.h>

const char *string_table_get(const struct string_table *table, uint32_t number)
{
    size_t size;
    return (const char *)sink_memory(table->bytes, &size) + table->offsets[number];
}

static size_t place_of(const struct string_table *table, const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    for (const char *at = text; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    size_t place = (size_t)(hash ^ hash >> 32) & (table->place_count - 1);
    while (table->places[place] && strcmp(string_table_get(table, table->places[place] - 1), text) != 0)
        place = (place + 1) & (table->place_count - 1);
    return place;
}

static bool grow(struct string_table *table)
{
    size_t room = table->room ? table->room * 2 : 1024;
    size_t *offsets = reallocarray(table->offsets, room, sizeof *offsets);
    if (!offsets)
        return false;
    table->offsets = offsets;
    uint32_t *places = calloc(room * 2, sizeof *places);
    if (!places)
        return false;
    free(table->places);
    table->places = places;
    table->room = room;
    table->place_count = room * 2;
    for (uint32_t i = 0; i < table->count; i++)
        places[place_of(table, string_table_get(table, i))] = i + 1;
    return true;
}

uint32_t string_table_put(struct string_table *table, const char *text)
{
    if (!table->has_failed && table->count == table->room)
        table->has_failed = !grow(table);
    if (table->has_failed)
        return 0;
    uint32_t *place = &table->places[place_of(table, text)];
    if (!*place) {
        size_t offset;
        sink_memory(table->bytes, &offset);
        sink_bytes(table->bytes, text, strlen(text) + 1);
        if (sink_failed(table->bytes)) {
            table->has_failed = true;
            return 0;
        }
        table->offsets[table->count++] = offset;
        *place = (uint32_t)table->count;
    }
    return *place - 1;
}

bool string_table_begin(struct string_table *table)
{
    *table = (struct string_table){.bytes = sink_in_memory()};
    table->has_failed = !table->bytes;
    string_table_put(table, "");
    return !table->has_failed;
}

void string_table_free(struct string_table *table)
{
    if (table->bytes)
        sink_close(table->bytes, false, NULL);
    free(table->offsets);
    free(table->places);
}
