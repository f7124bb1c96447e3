// SPDX-License-Identifier: Apache-2.0
// A request of OTLP as two, each with half of the samples and with what these need of the dictionary, which may have no
// entry that nobody points to. The bytes are a file's, so nothing in them is believed.
#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "base/vector.h"
#include "tracer/export/otlp/fields.h"
#include "tracer/export/protobuf.h"
#include "tracer/upload/inside.h"

enum { TABLES = DICTIONARY_STACKS + 1, SAMPLE_LINK = 3, ATTRIBUTE_UNIT = 3 };

// ---- what points to what

enum level { LEVEL_REQUEST, LEVEL_RESOURCE, LEVEL_SCOPE, LEVEL_PROFILE };
// What holds samples in the end.
static const unsigned inner[] = {REQUEST_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES, SCOPE_PROFILES_PROFILES,
                                 PROFILE_SAMPLES};

struct link {
    unsigned field;
    unsigned table;           // 0: it is a message
    const struct link *links; // of that
};

static const struct link line_links[] = {{LINE_FUNCTION, DICTIONARY_FUNCTIONS, NULL}, {0, 0, NULL}};
static const struct link type_links[] = {
    {VALUE_TYPE_NAME, DICTIONARY_STRINGS, NULL}, {VALUE_TYPE_UNIT, DICTIONARY_STRINGS, NULL}, {0, 0, NULL}};
static const struct link sample_links[] = {{SAMPLE_STACK, DICTIONARY_STACKS, NULL},
                                           {SAMPLE_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL},
                                           {SAMPLE_LINK, DICTIONARY_LINKS, NULL},
                                           {0, 0, NULL}};
static const struct link profile_links[] = {{PROFILE_SAMPLE_TYPE, 0, type_links},
                                            {PROFILE_SAMPLES, 0, sample_links},
                                            {PROFILE_PERIOD_TYPE, 0, type_links},
                                            {PROFILE_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL},
                                            {0, 0, NULL}};
static const struct link mapping_links[] = {
    {MAPPING_FILE, DICTIONARY_STRINGS, NULL}, {MAPPING_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL}, {0, 0, NULL}};
static const struct link location_links[] = {{LOCATION_MAPPING, DICTIONARY_MAPPINGS, NULL},
                                             {LOCATION_LINES, 0, line_links},
                                             {LOCATION_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL},
                                             {0, 0, NULL}};
static const struct link function_links[] = {{FUNCTION_NAME, DICTIONARY_STRINGS, NULL},
                                             {FUNCTION_SYSTEM_NAME, DICTIONARY_STRINGS, NULL},
                                             {FUNCTION_FILE, DICTIONARY_STRINGS, NULL},
                                             {0, 0, NULL}};
static const struct link attribute_links[] = {
    {ATTRIBUTE_KEY, DICTIONARY_STRINGS, NULL}, {ATTRIBUTE_UNIT, DICTIONARY_STRINGS, NULL}, {0, 0, NULL}};
static const struct link stack_links[] = {{STACK_LOCATIONS, DICTIONARY_LOCATIONS, NULL}, {0, 0, NULL}};
static const struct link no_links[] = {{0, 0, NULL}};

// In an order in which nothing points to what comes before it.
static const struct {
    unsigned table;
    const struct link *links;
} order[] = {{DICTIONARY_STACKS, stack_links},       {DICTIONARY_LOCATIONS, location_links},
             {DICTIONARY_FUNCTIONS, function_links}, {DICTIONARY_MAPPINGS, mapping_links},
             {DICTIONARY_LINKS, no_links},           {DICTIONARY_ATTRIBUTES, attribute_links},
             {DICTIONARY_STRINGS, no_links}};

struct table {
    struct {
        BASE_VECTOR(struct base_bytes);
    } entries;
    struct {
        BASE_VECTOR(uint32_t); // of entries; 0 is each half's, and stands for not yet pointed to
    } place;
    struct {
        BASE_VECTOR(uint32_t); // entries in the order of their new places, from 1 on
    } used;
    struct protobuf out;
};

struct halver {
    struct table tables[TABLES];
    uint64_t from, to; // samples of the half
    uint64_t at;       // how many stand before
    unsigned half;
    bool is_malformed, no_memory;
};

// ---- reading

struct field {
    unsigned number, wire;
    uint64_t value;
    struct base_bytes inside;
};

// False: there is no more, or it is malformed.
static bool next_field(struct halver *halver, struct base_cursor *cursor, struct field *field)
{
    if (!base_cursor_left(cursor))
        return false;
    const uint64_t tag = base_read_uleb(cursor);
    *field = (struct field){.number = (unsigned)(tag >> 3), .wire = (unsigned)(tag & 7)};
    switch (field->wire) {
    case PROTOBUF_VARINT: field->value = base_read_uleb(cursor); break;
    case PROTOBUF_FIXED64: field->value = base_read_u64(cursor); break;
    case PROTOBUF_LENGTH: field->inside = base_read_bytes(cursor, base_read_uleb(cursor)); break;
    default: cursor->failed = true;
    }
    halver->is_malformed |= cursor->failed || cursor->overlong || !field->number || tag >> 3 > UINT16_MAX;
    return !halver->is_malformed;
}

static uint64_t count_samples(struct halver *halver, struct base_bytes bytes, enum level level) // NOLINT
{
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    uint64_t count = 0;
    while (next_field(halver, &cursor, &field))
        if (field.number == inner[level] && field.wire == PROTOBUF_LENGTH)
            count += level == LEVEL_PROFILE ? 1 : count_samples(halver, field.inside, level + 1);
    return count;
}

static void read_tables(struct halver *halver, struct base_bytes dictionary)
{
    struct base_cursor cursor = base_cursor(dictionary);
    struct field field;
    while (next_field(halver, &cursor, &field) && !halver->no_memory) {
        halver->is_malformed |= field.wire != PROTOBUF_LENGTH || field.number >= TABLES;
        if (halver->is_malformed)
            return;
        struct table *table = &halver->tables[field.number];
        struct base_bytes *entry = BASE_ADD(&table->entries);
        uint32_t *place = entry ? BASE_ADD(&table->place) : NULL;
        halver->no_memory |= !place;
        if (place) {
            *entry = field.inside;
            *place = 0;
        }
    }
}

static void find_tables(struct halver *halver, struct base_bytes body)
{
    struct base_cursor cursor = base_cursor(body);
    struct field field;
    while (next_field(halver, &cursor, &field))
        if (field.number == REQUEST_DICTIONARY && field.wire == PROTOBUF_LENGTH)
            read_tables(halver, field.inside);
}

// ---- writing

static uint64_t place_of(struct halver *halver, unsigned number, uint64_t index)
{
    struct table *table = &halver->tables[number];
    if (!index)
        return 0;
    halver->is_malformed |= index >= table->entries.count || index > UINT32_MAX;
    if (halver->is_malformed)
        return 0;
    uint32_t *place = &table->place.items[index];
    uint32_t *used = *place ? NULL : BASE_ADD(&table->used);
    if (used) {
        *used = (uint32_t)index;
        *place = (uint32_t)table->used.count;
    }
    halver->no_memory |= !*place;
    return *place;
}

static const struct link *link_of(const struct link *links, unsigned number)
{
    while (links->field && links->field != number)
        links++;
    return links->field ? links : NULL;
}

static void copy_packed(struct halver *halver, unsigned table, const struct field *field, struct protobuf *out)
{
    struct base_cursor cursor = base_cursor(field->inside);
    const size_t begin = export_protobuf_begin(out, field->number);
    while (base_cursor_left(&cursor) && !halver->is_malformed) {
        const uint64_t index = base_read_uleb(&cursor);
        halver->is_malformed |= cursor.failed || cursor.overlong;
        export_protobuf_bare_number(out, place_of(halver, table, index));
    }
    export_protobuf_end(out, begin);
}

static void copy_message(struct halver *halver, struct base_bytes bytes, const struct link *links,
                         struct protobuf *out);

// As deep as the links are.
static void copy_field(struct halver *halver, const struct field *field, const struct link *link, struct protobuf *out)
{
    const bool is_table = link && link->table;
    if (field->wire == PROTOBUF_VARINT) {
        export_protobuf_number(out, field->number,
                               is_table ? place_of(halver, link->table, field->value) : field->value);
    } else if (field->wire == PROTOBUF_FIXED64) {
        export_protobuf_fixed64(out, field->number, field->value);
    } else if (is_table) {
        copy_packed(halver, link->table, field, out);
    } else {
        const size_t begin = export_protobuf_begin(out, field->number);
        copy_message(halver, field->inside, link ? link->links : NULL, out);
        export_protobuf_end(out, begin);
    }
}

static void append(struct protobuf *out, const void *bytes, size_t size)
{
    if (!size || !export_protobuf_has_room(out, size))
        return;
    memcpy(out->items + out->count, bytes, size);
    out->count += size;
}

// `links` NULL: as it is.
static void copy_message(struct halver *halver, struct base_bytes bytes, const struct link *links, // NOLINT
                         struct protobuf *out)
{
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    if (!links || !links->field)
        append(out, bytes.data, bytes.size);
    while (links && links->field && next_field(halver, &cursor, &field))
        copy_field(halver, &field, link_of(links, field.number), out);
}

// Each half of a profile that is cut is another one.
static void copy_id(const struct halver *halver, const struct field *field, struct protobuf *out)
{
    uint64_t halves[2];
    for (unsigned i = 0; i < 2; i++)
        halves[i] = base_hash_bytes(base_hash_word(1 + i, halver->half), field->inside.data, field->inside.size);
    export_protobuf_bytes(out, field->number, halves, sizeof halves);
}

static void copy_profile(struct halver *halver, struct base_bytes bytes, uint64_t samples, struct protobuf *out)
{
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    const bool is_cut = halver->at < halver->from || halver->at + samples > halver->to;
    while (next_field(halver, &cursor, &field)) {
        const bool is_sample = field.number == PROFILE_SAMPLES && field.wire == PROTOBUF_LENGTH;
        const bool is_here = !is_sample || (halver->at >= halver->from && halver->at < halver->to);
        halver->at += is_sample;
        if (!is_here)
            continue;
        if (is_cut && field.number == PROFILE_ID && field.wire == PROTOBUF_LENGTH)
            copy_id(halver, &field, out);
        else
            copy_field(halver, &field, link_of(profile_links, field.number), out);
    }
}

// Of what holds profiles that which has samples of the half; what has none at all is the first one's.
static void copy_level(struct halver *halver, struct base_bytes bytes, enum level level, struct protobuf *out) // NOLINT
{
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    while (next_field(halver, &cursor, &field)) {
        if (field.number != inner[level] || field.wire != PROTOBUF_LENGTH) {
            if (level != LEVEL_REQUEST)
                copy_field(halver, &field, NULL, out);
            continue;
        }
        const uint64_t samples = count_samples(halver, field.inside, level + 1);
        const bool is_here = samples ? halver->at < halver->to && halver->at + samples > halver->from : !halver->half;
        if (!is_here) {
            halver->at += samples;
            continue;
        }
        const size_t begin = export_protobuf_begin(out, field.number);
        if (level + 1 == LEVEL_PROFILE)
            copy_profile(halver, field.inside, samples, out);
        else
            copy_level(halver, field.inside, level + 1, out);
        export_protobuf_end(out, begin);
    }
}

static void copy_table(struct halver *halver, unsigned number, const struct link *links)
{
    struct table *table = &halver->tables[number];
    for (size_t i = 0; i <= table->used.count && table->entries.count; i++) {
        const uint32_t index = i ? table->used.items[i - 1] : 0; // 0: what stands for none
        const size_t begin = export_protobuf_begin(&table->out, number);
        copy_message(halver, table->entries.items[index], i ? links : NULL, &table->out);
        export_protobuf_end(&table->out, begin);
    }
}

static void copy_dictionary(struct halver *halver, struct protobuf *out)
{
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        copy_table(halver, order[i].table, order[i].links);
    const size_t begin = export_protobuf_begin(out, REQUEST_DICTIONARY);
    for (unsigned i = 1; i < TABLES; i++) {
        append(out, halver->tables[i].out.items, halver->tables[i].out.count);
        out->failed |= halver->tables[i].out.failed;
    }
    export_protobuf_end(out, begin);
}

static void free_tables(struct halver *halver)
{
    for (unsigned i = 0; i < TABLES; i++) {
        base_vector_free(&halver->tables[i].entries.vector);
        base_vector_free(&halver->tables[i].place.vector);
        base_vector_free(&halver->tables[i].used.vector);
        export_protobuf_free(&halver->tables[i].out);
    }
}

int upload_halve(struct base_bytes body, unsigned half, struct sink *into, struct base_error *error)
{
    struct halver halver = {.half = half};
    struct protobuf out = {.sink = into};
    const uint64_t samples = count_samples(&halver, body, LEVEL_REQUEST);
    halver.from = half ? samples / 2 : 0;
    halver.to = half ? samples : samples / 2;
    if (samples > 1 && !halver.is_malformed) {
        find_tables(&halver, body);
        copy_level(&halver, body, LEVEL_REQUEST, &out);
        copy_dictionary(&halver, &out);
        export_protobuf_flush(&out, true);
    }
    const bool no_memory = halver.no_memory || out.failed || sink_failed(into);
    export_protobuf_free(&out);
    free_tables(&halver);
    if (no_memory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    if (halver.is_malformed)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "it is no request of OTLP");
    return samples > 1 ? 0 : 1;
}
