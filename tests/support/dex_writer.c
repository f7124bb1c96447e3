// SPDX-License-Identifier: Apache-2.0
#include "tests/support/dex_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_BYTES = 0x70,
    CONTAINER_HEADER_BYTES = 0x78,
    COMPACT_HEADER_BYTES = 0x88,
    CLASS_DEF_BYTES = 32,
    FILES_MAX = 4,
};

static void add_u16(struct build_buffer *buffer, uint32_t value)
{
    const uint16_t narrow = (uint16_t)value;
    build_add(buffer, &narrow, sizeof narrow);
}

static void add_u32(struct build_buffer *buffer, uint64_t value)
{
    const uint32_t narrow = (uint32_t)value;
    build_add(buffer, &narrow, sizeof narrow);
}

static void put_u32(struct build_buffer *buffer, size_t at, uint64_t value)
{
    const uint32_t narrow = (uint32_t)value;
    memcpy(buffer->data + at, &narrow, sizeof narrow);
}

static void add_uleb(struct build_buffer *buffer, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        build_add(buffer, &byte, 1);
        value >>= 7;
    } while (value);
}

static uint64_t add_string(struct build_buffer *data, const char *text)
{
    uint64_t at = data->size;
    add_uleb(data, strlen(text));
    build_add(data, text, strlen(text) + 1);
    return at;
}

static void add_units(struct build_buffer *data, uint32_t units)
{
    build_add(data, NULL, (size_t)units * 2);
}

// Returns where the item is; *code where its instructions are.
static uint64_t add_code(struct build_buffer *data, bool is_compact, uint32_t units, uint64_t *code)
{
    if (!is_compact) {
        build_align(data, 4);
        uint64_t at = data->size;
        add_u16(data, 4); // registers
        add_u16(data, 1); // arguments
        add_u16(data, 1);
        add_u16(data, 0); // try blocks
        add_u32(data, 0); // debug information
        add_u32(data, units);
        *code = data->size;
        add_units(data, units);
        return at;
    }
    build_align(data, 2);
    // What does not fit stands in front: of the number of instructions the low half last, and before that the rest of
    // 20 registers.
    uint32_t in_item = units > 2047 ? 2000 : units, more = units - in_item, flags = 1;
    add_u16(data, 20 - 4);
    if (more) {
        flags |= 16;
        add_u16(data, more >> 16);
        add_u16(data, more & 0xffff);
    }
    uint64_t at = data->size;
    add_u16(data, 0x4110);
    add_u16(data, in_item << 5 | flags);
    *code = data->size;
    add_units(data, units);
    return at;
}

static void add_truth(struct dex_truth *truth, uint64_t start, uint32_t units, const char *descriptor, const char *name)
{
    if (truth->count == truth->capacity) {
        truth->capacity = truth->capacity ? 2 * truth->capacity : 16;
        truth->code = realloc(truth->code, truth->capacity * sizeof *truth->code);
        if (!truth->code)
            abort();
    }
    char *text = truth->code[truth->count].name;
    snprintf(text, sizeof truth->code->name, "%.*s.%s", (int)strlen(descriptor) - 2, descriptor + 1, name);
    for (char *slash = text; (slash = strchr(slash, '/'));)
        *slash = '.';
    truth->code[truth->count].start = start;
    truth->code[truth->count++].end = start + (uint64_t)units * 2;
}

// One dex file under construction: what stands behind its header, and its part of the data.
struct parts {
    struct build_buffer strings, types, methods, classes;
    struct build_buffer *data;
    uint64_t data_base; // what offsets into data count from lies this far before it
    bool is_compact;
};

static void add_class(struct parts *parts, const struct dex_class *class, struct dex_truth *truth)
{
    struct build_buffer class_data = {0};
    uint64_t first = parts->methods.size / 8, before = 0, virtuals = 0;
    uint64_t item = 0;
    for (size_t i = 0; i < class->count; i++)
        virtuals += class->methods[i].is_virtual;
    add_uleb(&class_data, 1); // a static field
    add_uleb(&class_data, 0);
    add_uleb(&class_data, class->count - virtuals);
    add_uleb(&class_data, virtuals);
    add_uleb(&class_data, 0);
    add_uleb(&class_data, 9);
    add_u32(&parts->types, parts->strings.size / 4);
    add_u32(&parts->strings, parts->data_base + add_string(parts->data, class->descriptor));
    uint64_t type = parts->types.size / 4 - 1;
    for (size_t i = 0; i < class->count; i++) {
        const struct dex_method *method = &class->methods[i];
        add_u16(&parts->methods, (uint32_t)type);
        add_u16(&parts->methods, 0);
        add_u32(&parts->methods, parts->strings.size / 4);
        add_u32(&parts->strings, parts->data_base + add_string(parts->data, method->name));
        if (method->units && !method->same_code) {
            uint64_t code;
            item = parts->data_base + add_code(parts->data, parts->is_compact, method->units, &code);
            add_truth(truth, code, method->units, class->descriptor, method->name);
        } else if (method->same_code) {
            strcat(truth->code[truth->count - 1].name, " [DEDUPED]");
        }
        if (method->is_virtual && (i == 0 || !class->methods[i - 1].is_virtual))
            before = 0; // indexes begin anew
        add_uleb(&class_data, first + i - before);
        before = first + i;
        add_uleb(&class_data, 1);
        add_uleb(&class_data, method->units ? item : 0);
    }
    const uint32_t def[CLASS_DEF_BYTES / 4] = {
        (uint32_t)type, 1, 0, 0, UINT32_MAX, 0, (uint32_t)(parts->data_base + parts->data->size), 0};
    build_add(&parts->classes, def, sizeof def);
    build_add(parts->data, class_data.data, class_data.size);
    free(class_data.data);
}

static uint32_t header_bytes(unsigned version)
{
    return version == 0 ? COMPACT_HEADER_BYTES : version == 41 ? CONTAINER_HEADER_BYTES : HEADER_BYTES;
}

static size_t method_count(const struct dex_spec *spec)
{
    size_t count = 0;
    for (size_t i = 0; i < spec->count; i++)
        count += spec->classes[i].count;
    return count;
}

// How many bytes stand behind the header before the data: a string for each class and each method.
static uint64_t ids_bytes(const struct dex_spec *spec)
{
    return 4 * (spec->count + method_count(spec)) + 4 * spec->count + 8 * method_count(spec) +
           CLASS_DEF_BYTES * spec->count;
}

static void add_header(struct build_buffer *file, const struct dex_spec *spec, uint64_t base, uint64_t file_bytes)
{
    static uint32_t signature; // no two files have the same
    char magic[9];
    snprintf(magic, sizeof magic, spec->version ? "dex\n%03u" : "cdex001", spec->version);
    size_t at = file->size, methods = method_count(spec);
    build_add(file, NULL, header_bytes(spec->version));
    memcpy(file->data + at, magic, 8);
    put_u32(file, at + 12, ++signature);
    put_u32(file, at + 32, file_bytes);
    put_u32(file, at + 36, header_bytes(spec->version));
    put_u32(file, at + 40, 0x12345678);
    uint64_t offset = base + header_bytes(spec->version);
    put_u32(file, at + 56, spec->count + methods);
    put_u32(file, at + 60, offset);
    offset += 4 * (spec->count + methods);
    put_u32(file, at + 64, spec->count);
    put_u32(file, at + 68, offset);
    offset += 4 * spec->count;
    put_u32(file, at + 88, methods);
    put_u32(file, at + 92, offset);
    offset += 8 * methods;
    put_u32(file, at + 96, spec->count);
    put_u32(file, at + 100, offset);
}

static void add_parts(struct build_buffer *file, const struct parts *parts)
{
    const struct build_buffer *all[] = {&parts->strings, &parts->types, &parts->methods, &parts->classes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        build_add(file, all[i]->data, all[i]->size);
        free(all[i]->data);
    }
}

// One whose data follows its ids. start: what its offsets count from, in the file.
static void add_plain(struct build_buffer *file, const struct dex_spec *spec, uint64_t start, struct dex_truth *truth)
{
    struct build_buffer data = {0};
    uint64_t header = file->size, data_at = header + header_bytes(spec->version) + ids_bytes(spec);
    struct parts parts = {.data = &data, .data_base = data_at - start};
    size_t first = truth->count;
    for (size_t i = 0; i < spec->count; i++)
        add_class(&parts, &spec->classes[i], truth);
    for (size_t i = first; i < truth->count; i++) {
        truth->code[i].start += data_at;
        truth->code[i].end += data_at;
    }
    add_header(file, spec, header - start, data_at + data.size - header);
    add_parts(file, &parts);
    build_add(file, data.data, data.size);
    free(data.data);
}

static void add_compact(struct build_buffer *file, const struct dex_spec *specs, size_t count, uint32_t prefix_bytes,
                        uint64_t *offsets, struct dex_truth *truth)
{
    struct build_buffer data = {0};
    size_t first = truth->count;
    add_u32(&data, 0); // nothing is at offset 0
    for (size_t i = 0; i < count; i++) {
        struct parts parts = {.data = &data, .is_compact = true};
        for (size_t k = 0; k < specs[i].count; k++)
            add_class(&parts, &specs[i].classes[k], truth);
        build_align(file, 4);
        build_add(file, NULL, prefix_bytes);
        offsets[i] = file->size;
        add_header(file, &specs[i], 0, header_bytes(0) + ids_bytes(&specs[i]));
        add_parts(file, &parts);
    }
    build_align(file, 4);
    for (size_t i = first; i < truth->count; i++) {
        truth->code[i].start += file->size;
        truth->code[i].end += file->size;
    }
    for (size_t i = 0; i < count; i++) {
        put_u32(file, offsets[i] + 104, data.size);
        put_u32(file, offsets[i] + 108, file->size - offsets[i]);
    }
    build_add(file, data.data, data.size);
    free(data.data);
}

void dex_add(struct build_buffer *file, const struct dex_spec *specs, size_t count, uint32_t prefix_bytes,
             uint64_t *offsets, struct dex_truth *truth)
{
    struct dex_truth ignored = {0};
    struct dex_truth *kept = truth ? truth : &ignored;
    if (specs[0].version == 0) {
        add_compact(file, specs, count, prefix_bytes, offsets, kept);
    } else {
        for (size_t i = 0; i < count; i++) {
            build_align(file, 4);
            build_add(file, NULL, prefix_bytes);
            offsets[i] = file->size;
            add_plain(file, &specs[i], specs[0].version == 41 ? offsets[0] : offsets[i], kept);
        }
        for (size_t i = 0; i < count && specs[0].version == 41; i++) {
            put_u32(file, offsets[i] + 112, file->size - offsets[0]);
            put_u32(file, offsets[i] + 116, offsets[i] - offsets[0]);
        }
    }
    dex_truth_free(&ignored);
}

struct build_buffer dex_vdex(unsigned version, const struct dex_spec *specs, size_t count, struct dex_truth *truth)
{
    struct build_buffer file = {0};
    uint64_t offsets[FILES_MAX];
    char magic[9];
    snprintf(magic, sizeof magic, "vdex%03u", version);
    build_add(&file, magic, 8);
    if (version == 27) {
        const uint32_t sections[] = {4, 0, 60, 4 * (uint32_t)count, 1, 0, 0, 2, 0, 0, 3, 0, 0};
        build_add(&file, sections, sizeof sections);
    } else if (version >= 19) {
        build_add(&file, count ? "002" : "000", 4);
        add_u32(&file, count);
        add_u32(&file, 100); // verifier dependencies
        if (version == 21) {
            add_u32(&file, 3);
            add_u32(&file, 5);
        }
    } else {
        add_u32(&file, count);
        add_u32(&file, 0);
        add_u32(&file, 100);
        add_u32(&file, 0);
    }
    for (size_t i = 0; i < count; i++)
        add_u32(&file, 0xc0ffee00 + i); // checksums
    size_t sizes_at = version == 27 ? 32 : version >= 19 ? file.size : 12;
    if ((version == 19 || version == 21) && count)
        build_add(&file, (const uint32_t[]){0, 0, 16}, 12);
    size_t start = file.size;
    if (count)
        dex_add(&file, specs, count, version == 19 || version == 21 ? 4 : 0, offsets, truth);
    if (version == 27)
        put_u32(&file, sizes_at - 4, start); // offset, then size
    if (count)
        put_u32(&file, sizes_at, file.size - start);
    for (int i = 0; i < 30; i++)
        add_u32(&file, 0x5a5a5a5a); // verifier dependencies and quickening information
    return file;
}

void dex_truth_free(struct dex_truth *truth)
{
    free(truth->code);
    *truth = (struct dex_truth){0};
}
