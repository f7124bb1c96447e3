// SPDX-License-Identifier: Apache-2.0
// A request as two, each with half of the samples and with what these need of the tables, which may have no entry that
// nobody points to. The bytes are a file's, so nothing in them is believed.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "base/vector.h"
#include "tracer/export/protobuf.h"
#include "tracer/upload/halve_form.h"
#include "tracer/upload/inside.h"

enum level { LEVEL_REQUEST, LEVEL_RESOURCE, LEVEL_HOLDER, LEVEL_PROFILE };
static_assert(LEVEL_PROFILE + 1 == HALVE_LEVELS, "the field of each is known");

enum { KEY_FIELD = 1 };

struct entry {
    struct base_bytes bytes;
    uint64_t key;
    uint32_t place; // 0: not yet pointed to, or of what stands for none
};

struct table {
    const struct halve_table *is; // NULL: the form has none
    struct {
        BASE_VECTOR(struct entry);
    } entries;
    struct base_hash_index keys;
    struct {
        BASE_VECTOR(uint32_t); // entries in the order of their new places, from 1 on
    } used;
    struct protobuf out;
};

struct halver {
    const struct halve_form *form;
    const char *id; // of the half
    struct table tables[HALVE_TABLES];
    uint64_t from, to; // samples of the half
    uint64_t at;       // how many stand before
    unsigned half;
    bool has_tables;
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
        if (field.number == halver->form->inner[level] && field.wire == PROTOBUF_LENGTH)
            count += level == LEVEL_PROFILE ? 1 : count_samples(halver, field.inside, level + 1);
    return count;
}

// What the entry is called; 0: nothing.
static uint64_t key_of(struct halver *halver, struct base_bytes bytes)
{
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    while (next_field(halver, &cursor, &field))
        if (field.number == KEY_FIELD && field.wire == PROTOBUF_VARINT)
            return field.value;
    return 0;
}

static void add_entry(struct halver *halver, struct table *table, struct base_bytes bytes)
{
    const uint64_t key = table->is->is_keyed ? key_of(halver, bytes) : 0;
    struct entry *entry = BASE_ADD(&table->entries);
    halver->no_memory |= !entry;
    if (!entry)
        return;
    *entry = (struct entry){.bytes = bytes, .key = key};
    if (table->is->is_keyed)
        halver->no_memory |= !base_hash_add(&table->keys, base_hash_word(0, key), (uint32_t)(table->entries.count - 1));
}

static struct table *table_at(struct halver *halver, unsigned number)
{
    return number < HALVE_TABLES && halver->tables[number].is ? &halver->tables[number] : NULL;
}

// Of a message that is nothing but tables, or of a profile, which has others beside them.
static void read_tables(struct halver *halver, struct base_bytes message)
{
    struct base_cursor cursor = base_cursor(message);
    struct field field;
    while (next_field(halver, &cursor, &field) && !halver->no_memory) {
        struct table *table = table_at(halver, field.number);
        halver->is_malformed |= table ? field.wire != PROTOBUF_LENGTH : halver->form->dictionary != 0;
        if (halver->is_malformed)
            return;
        if (table)
            add_entry(halver, table, field.inside);
    }
}

static void find_tables(struct halver *halver, struct base_bytes body)
{
    struct base_cursor cursor = base_cursor(body);
    struct field field;
    while (halver->form->dictionary && next_field(halver, &cursor, &field))
        if (field.number == halver->form->dictionary && field.wire == PROTOBUF_LENGTH)
            read_tables(halver, field.inside);
}

// ---- writing

static uint32_t find_entry(const struct table *table, uint64_t name)
{
    if (!table->is->is_keyed)
        return name < table->entries.count ? (uint32_t)name : BASE_HASH_NONE;
    uint32_t step = 0, at;
    do
        at = base_hash_next(&table->keys, base_hash_word(0, name), &step);
    while (at != BASE_HASH_NONE && table->entries.items[at].key != name);
    return at;
}

// What the half calls the entry. Ids stay, places do not.
static uint64_t place_of(struct halver *halver, unsigned number, uint64_t name)
{
    struct table *table = &halver->tables[number];
    if (!name)
        return 0;
    const uint32_t at = find_entry(table, name);
    halver->is_malformed |= at == BASE_HASH_NONE;
    if (halver->is_malformed)
        return 0;
    struct entry *entry = &table->entries.items[at];
    uint32_t *used = entry->place ? NULL : BASE_ADD(&table->used);
    if (used) {
        *used = at;
        entry->place = (uint32_t)table->used.count;
    }
    halver->no_memory |= !entry->place;
    return table->is->is_keyed ? name : entry->place;
}

static const struct halve_link *link_of(const struct halve_link *links, unsigned number)
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

static void copy_message(struct halver *halver, struct base_bytes bytes, const struct halve_link *links,
                         struct protobuf *out);

// As deep as the links are.
static void copy_field(struct halver *halver, const struct field *field, const struct halve_link *link,
                       struct protobuf *out)
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
static void copy_message(struct halver *halver, struct base_bytes bytes, const struct halve_link *links, // NOLINT
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

static void copy_table(struct halver *halver, struct table *table)
{
    const bool is_keyed = table->is->is_keyed;
    for (size_t i = is_keyed; i <= table->used.count && table->entries.count; i++) {
        const uint32_t index = i ? table->used.items[i - 1] : 0; // 0: what stands for none
        const size_t begin = export_protobuf_begin(&table->out, table->is->table);
        copy_message(halver, table->entries.items[index].bytes, i ? table->is->links : NULL, &table->out);
        export_protobuf_end(&table->out, begin);
    }
}

// All that samples, and what these led to, have pointed to.
static void copy_tables(struct halver *halver, struct protobuf *out)
{
    const struct halve_table *tables = halver->form->tables;
    for (size_t i = 0; i < HALVE_TABLES && tables[i].table; i++)
        copy_table(halver, &halver->tables[tables[i].table]);
    for (unsigned i = 1; i < HALVE_TABLES; i++) {
        append(out, halver->tables[i].out.items, halver->tables[i].out.count);
        out->failed |= halver->tables[i].out.failed;
    }
}

// A profile that has tables of its own is the only one in its request.
static void begin_tables(struct halver *halver, struct base_bytes profile)
{
    halver->is_malformed |= halver->has_tables;
    halver->has_tables = true;
    if (!halver->is_malformed)
        read_tables(halver, profile);
}

static void copy_profile(struct halver *halver, struct base_bytes bytes, uint64_t samples, struct protobuf *out)
{
    const struct halve_form *form = halver->form;
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    const bool is_cut = halver->at < halver->from || halver->at + samples > halver->to;
    if (!form->dictionary)
        begin_tables(halver, bytes);
    while (next_field(halver, &cursor, &field)) {
        const bool is_sample = field.number == form->inner[LEVEL_PROFILE] && field.wire == PROTOBUF_LENGTH;
        const bool is_entry = !form->dictionary && table_at(halver, field.number);
        const bool is_here = !is_entry && (!is_sample || (halver->at >= halver->from && halver->at < halver->to));
        halver->at += is_sample;
        if (!is_here)
            continue;
        if (is_cut && field.number == form->profile_id && field.wire == PROTOBUF_LENGTH)
            copy_id(halver, &field, out);
        else
            copy_field(halver, &field, link_of(form->profile_links, field.number), out);
    }
    if (!form->dictionary)
        copy_tables(halver, out);
}

// What stands beside that which holds samples. The request's own tables come later.
static void copy_other(struct halver *halver, const struct field *field, enum level level, struct protobuf *out)
{
    char uuid[UPLOAD_UUID_CHARS];
    if (level == LEVEL_HOLDER && field->number == halver->form->holder_id && field->wire == PROTOBUF_LENGTH)
        export_protobuf_text(out, field->number, upload_uuid(halver->id, uuid));
    else if (level != LEVEL_REQUEST)
        copy_field(halver, field, NULL, out);
}

// Of what holds profiles that which has samples of the half; what has none at all is the first one's.
static void copy_level(struct halver *halver, struct base_bytes bytes, enum level level, struct protobuf *out) // NOLINT
{
    struct base_cursor cursor = base_cursor(bytes);
    struct field field;
    while (next_field(halver, &cursor, &field)) {
        if (field.number != halver->form->inner[level] || field.wire != PROTOBUF_LENGTH) {
            copy_other(halver, &field, level, out);
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

static void copy_dictionary(struct halver *halver, struct protobuf *out)
{
    const size_t begin = export_protobuf_begin(out, halver->form->dictionary);
    copy_tables(halver, out);
    export_protobuf_end(out, begin);
}

static void free_tables(struct halver *halver)
{
    for (unsigned i = 0; i < HALVE_TABLES; i++) {
        base_vector_free(&halver->tables[i].entries.vector);
        base_hash_free(&halver->tables[i].keys);
        base_vector_free(&halver->tables[i].used.vector);
        export_protobuf_free(&halver->tables[i].out);
    }
}

static const struct halve_form *form_of(enum upload_form form)
{
    return form == UPLOAD_OTLP ? &halve_otlp : form == UPLOAD_PPROF ? &halve_push : NULL;
}

uint64_t upload_count_samples(enum upload_form form, struct base_bytes body)
{
    struct halver halver = {.form = form_of(form)};
    const uint64_t samples = halver.form ? count_samples(&halver, body, LEVEL_REQUEST) : 0;
    return halver.is_malformed ? 0 : samples;
}

int upload_halve(enum upload_form form, struct base_bytes body, unsigned half, const char *id, struct sink *into,
                 struct base_error *error)
{
    struct halver halver = {.form = form_of(form), .half = half, .id = id};
    struct protobuf out = {.sink = into};
    if (!halver.form)
        return 1;
    const struct halve_table *tables = halver.form->tables;
    for (size_t i = 0; i < HALVE_TABLES && tables[i].table; i++)
        halver.tables[tables[i].table].is = &tables[i];
    const uint64_t samples = count_samples(&halver, body, LEVEL_REQUEST);
    halver.from = half ? samples / 2 : 0;
    halver.to = half ? samples : samples / 2;
    if (samples > 1 && !halver.is_malformed) {
        find_tables(&halver, body);
        copy_level(&halver, body, LEVEL_REQUEST, &out);
        if (halver.form->dictionary)
            copy_dictionary(&halver, &out);
        export_protobuf_flush(&out, true);
    }
    const bool no_memory = halver.no_memory || out.failed || sink_failed(into);
    export_protobuf_free(&out);
    free_tables(&halver);
    if (no_memory)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    if (halver.is_malformed)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "%s", halver.form->refusal);
    return samples > 1 ? 0 : 1;
}
