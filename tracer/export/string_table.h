// SPDX-License-Identifier: Apache-2.0
// Each text once, by its number. Number 0 is "".
#ifndef TRACER_EXPORT_STRING_TABLE_H
#define TRACER_EXPORT_STRING_TABLE_H

#include "tracer/export/sink.h"

struct string_table {
    struct sink *bytes; // each with its NUL
    size_t *offsets;    // of each number's text
    size_t count, room;
    uint32_t *places; // hashed: number + 1; a power of two of them, at most half full
    size_t place_count;
    bool has_failed; // no memory: numbers are 0 from then on
};

bool string_table_begin(struct string_table *table);
uint32_t string_table_put(struct string_table *table, const char *text);
const char *string_table_get(const struct string_table *table, uint32_t number);
void string_table_free(struct string_table *table);

#endif
