// SPDX-License-Identifier: Apache-2.0
// Locations by what is written of them: those that differ in nothing are one place, and places stand file by file, by
// their addresses. So neighbours have most of their bytes in common, and so have stacks that are ordered by them.
#include <stdlib.h>
#include <string.h>

#include "tracer/export/otlp/inside.h"

// ---- functions that are written in the same way

static bool are_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return text ? base_hash_bytes(hash, text, strlen(text)) : base_hash_word(hash, 1);
}

static bool find_same(const struct names *names, uint32_t *same)
{
    const uint32_t count = (uint32_t)names_id_count(names);
    struct base_hash_index index = {0};
    bool is_good = true;
    for (uint32_t id = 0; id < count && is_good; id++) {
        const struct name *name = names_by_id(names, id);
        const uint64_t hash = hash_text(hash_text(hash_text(0, name->function), name->mangled), name->file);
        uint32_t step = 0, other;
        while ((other = base_hash_next(&index, hash, &step)) != BASE_HASH_NONE) {
            const struct name *first = names_by_id(names, other);
            if (are_equal(first->function, name->function) && are_equal(first->mangled, name->mangled) &&
                are_equal(first->file, name->file))
                break;
        }
        same[id] = other == BASE_HASH_NONE ? id : other;
        is_good = other != BASE_HASH_NONE || base_hash_add(&index, hash, id);
    }
    same[count] = count;
    base_hash_free(&index);
    return is_good;
}

// ---- places

bool export_otlp_has_lines(const struct otlp_writer *writer, uint32_t node)
{
    return !writer->options->no_names || !export_has_mapping(writer->trace, writer->trace->nodes[node].module);
}

const char *export_otlp_frame_type(const struct trace *trace, uint32_t node)
{
    const struct trace_node *at = &trace->nodes[node];
    if (at->class_ == QUT_TRACE_CLASS_KERNEL)
        return "kernel";
    return at->class_ == QUT_TRACE_CLASS_CODE && export_has_mapping(trace, at->module) ? "native" : NULL;
}

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_lines(const struct otlp_writer *writer, uint32_t a, uint32_t b)
{
    const size_t count_a = export_otlp_has_lines(writer, a) ? names_count(writer->names, a) : 0;
    const size_t count_b = export_otlp_has_lines(writer, b) ? names_count(writer->names, b) : 0;
    int order = order_of(count_a, count_b);
    for (size_t i = 0; i < count_a && order == 0; i++) {
        const struct name *left = names_at(writer->names, a, i), *right = names_at(writer->names, b, i);
        order = order_of(writer->places.same[left->id], writer->places.same[right->id]);
        order = order ? order : order_of(left->line, right->line);
    }
    return order;
}

// Of numbers of locations; equal ones are written alike.
static int compare(const void *left, const void *right, void *context)
{
    const struct otlp_writer *writer = context;
    const struct trace *trace = writer->trace;
    const uint32_t a = writer->locations.nodes[*(const uint32_t *)left - 1];
    const uint32_t b = writer->locations.nodes[*(const uint32_t *)right - 1];
    const uint32_t module_a = export_has_mapping(trace, trace->nodes[a].module) ? trace->nodes[a].module : TRACE_NONE;
    const uint32_t module_b = export_has_mapping(trace, trace->nodes[b].module) ? trace->nodes[b].module : TRACE_NONE;
    int order = order_of(module_a, module_b);
    order = order ? order : order_of(export_mapping_address(trace, a), export_mapping_address(trace, b));
    const char *type_a = export_otlp_frame_type(trace, a), *type_b = export_otlp_frame_type(trace, b);
    order = order ? order : strcmp(type_a ? type_a : "", type_b ? type_b : "");
    return order ? order : compare_lines(writer, a, b);
}

int export_otlp_places_make(struct otlp_writer *writer)
{
    struct otlp_places *places = &writer->places;
    const uint32_t count = (uint32_t)writer->locations.count;
    uint32_t *sorted = calloc((size_t)count + 1, sizeof *sorted);
    places->same = calloc(names_id_count(writer->names) + 1, sizeof *places->same);
    places->of_location = calloc((size_t)count + 2, sizeof *places->of_location);
    places->locations = calloc((size_t)count + 2, sizeof *places->locations);
    const bool is_good =
        sorted && places->same && places->of_location && places->locations && find_same(writer->names, places->same);
    if (is_good) {
        for (uint32_t i = 0; i < count; i++)
            sorted[i] = i + 1;
        qsort_r(sorted, count, sizeof *sorted, compare, writer);
        for (uint32_t i = 0; i < count; i++) {
            if (!i || compare(&sorted[i - 1], &sorted[i], writer) != 0)
                places->locations[++places->count] = sorted[i];
            places->of_location[sorted[i]] = places->count;
        }
        // Of stacks without frames, behind the trace's own.
        places->locations[++places->count] = count + 1;
        places->of_location[count + 1] = places->count;
    }
    free(sorted);
    return is_good ? 0 : -1;
}

void export_otlp_places_free(struct otlp_places *places)
{
    free(places->same);
    free(places->of_location);
    free(places->locations);
}
