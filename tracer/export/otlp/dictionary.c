// SPDX-License-Identifier: Apache-2.0
// The tables that all messages of a request point into. Entry 0 of each stands for none; there is no entry twice, and
// none that nobody points to.
#include <stdlib.h>

#include "tracer/export/otlp/inside.h"
#include "tracer/names/file_offset.h"

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8 };

// What of the trace's things is written, with the numbers that they get. Index 0 is nobody's.
struct used {
    uint32_t *places, *modules;
    uint32_t *functions; // by a name's id, the first one that is written in the same way
    uint32_t place_count, module_count, function_count;
};

static void give_number(uint32_t *number, uint32_t *count)
{
    if (!*number)
        *number = ++*count;
}

static void use_place(const struct otlp_writer *writer, struct used *used, uint32_t place)
{
    give_number(&used->places[place], &used->place_count);
    if (place == writer->places.count) {
        give_number(&used->functions[names_id_count(writer->names)], &used->function_count);
        return;
    }
    const uint32_t node = writer->locations.nodes[writer->places.locations[place] - 1];
    const uint32_t module = writer->trace->nodes[node].module;
    if (export_has_mapping(writer->trace, module))
        give_number(&used->modules[module], &used->module_count);
    for (size_t i = 0; export_otlp_has_lines(writer, node) && i < names_count(writer->names, node); i++)
        give_number(&used->functions[writer->places.same[names_at(writer->names, node, i)->id]], &used->function_count);
}

static bool make_used(const struct otlp_writer *writer, struct used *used)
{
    const struct otlp_stack *stacks = writer->stacks.items;
    bool *is_used = calloc((size_t)writer->places.count + 1, sizeof *is_used);
    used->places = calloc((size_t)writer->places.count + 1, sizeof *used->places);
    used->modules = calloc(writer->trace->module_count + 1, sizeof *used->modules);
    used->functions = calloc(names_id_count(writer->names) + 1, sizeof *used->functions);
    const bool is_good = is_used && used->places && used->modules && used->functions;
    for (size_t i = 1; is_good && i < writer->stacks.count; i++)
        for (uint32_t at = stacks[i].number ? (uint32_t)i : 0; at; at = stacks[at].outer)
            is_used[stacks[at].place] = true;
    for (uint32_t place = 1; is_good && place <= writer->places.count; place++)
        if (is_used[place])
            use_place(writer, used, place);
    free(is_used);
    return is_good;
}

// Indices of things, by their number - 1. NULL: no memory.
static uint32_t *by_number(const uint32_t *numbers, size_t count, uint32_t given)
{
    uint32_t *indices = calloc((size_t)given + 1, sizeof *indices);
    for (size_t i = 0; indices && i < count; i++)
        if (numbers[i])
            indices[numbers[i] - 1] = (uint32_t)i;
    return indices;
}

static void write_none(struct otlp_writer *writer, unsigned table)
{
    export_protobuf_end(&writer->out, export_protobuf_begin(&writer->out, table));
}

static void write_attribute_list(struct otlp_writer *writer, unsigned field, uint32_t attribute)
{
    const size_t packed = export_protobuf_begin(&writer->out, field);
    export_protobuf_bare_number(&writer->out, attribute);
    export_protobuf_end(&writer->out, packed);
}

static void write_mapping(struct otlp_writer *writer, uint32_t module)
{
    const struct trace_module *file = &writer->trace->modules[module];
    const struct export_mapping *mapping = &writer->mappings[module];
    const struct names_options options = {.system_root = writer->options->system_root};
    char build_id[EXPORT_BUILD_ID_CHARS];
    const size_t message = export_protobuf_begin(&writer->out, DICTIONARY_MAPPINGS);
    otlp_put(writer, MAPPING_START, mapping->start);
    otlp_put(writer, MAPPING_LIMIT, mapping->limit);
    otlp_put(writer, MAPPING_FILE_OFFSET, names_file_offset(&options, file, mapping->start));
    otlp_put_string(writer, MAPPING_FILE, file->path);
    if (*export_build_id_text(file, build_id))
        write_attribute_list(writer, MAPPING_ATTRIBUTES,
                             export_otlp_attribute_text(&writer->attributes, &writer->strings,
                                                        "process.executable.build_id.gnu", build_id));
    export_protobuf_end(&writer->out, message);
}

static void write_line(struct otlp_writer *writer, uint32_t function, uint32_t number)
{
    const size_t line = export_protobuf_begin(&writer->out, LOCATION_LINES);
    otlp_put(writer, LINE_FUNCTION, function);
    otlp_put(writer, LINE_NUMBER, number);
    export_protobuf_end(&writer->out, line);
}

static void write_location(struct otlp_writer *writer, const struct used *used, uint32_t place)
{
    const size_t message = export_protobuf_begin(&writer->out, DICTIONARY_LOCATIONS);
    if (place == writer->places.count) {
        write_line(writer, used->functions[names_id_count(writer->names)], 0);
    } else {
        const uint32_t node = writer->locations.nodes[writer->places.locations[place] - 1];
        const uint32_t module = writer->trace->nodes[node].module;
        const char *type = export_otlp_frame_type(writer->trace, node);
        otlp_put(writer, LOCATION_MAPPING, export_has_mapping(writer->trace, module) ? used->modules[module] : 0);
        otlp_put(writer, LOCATION_ADDRESS, export_mapping_address(writer->trace, node));
        for (size_t i = 0; export_otlp_has_lines(writer, node) && i < names_count(writer->names, node); i++) {
            const struct name *name = names_at(writer->names, node, i); // the last one has the others inlined
            write_line(writer, used->functions[writer->places.same[name->id]], name->line);
        }
        if (type)
            write_attribute_list(
                writer, LOCATION_ATTRIBUTES,
                export_otlp_attribute_text(&writer->attributes, &writer->strings, "profile.frame.type", type));
    }
    export_protobuf_end(&writer->out, message);
}

static void write_function(struct otlp_writer *writer, uint32_t id)
{
    const struct name none = {.function = "[no frames]"};
    const struct name *name = id == names_id_count(writer->names) ? &none : names_by_id(writer->names, id);
    const size_t message = export_protobuf_begin(&writer->out, DICTIONARY_FUNCTIONS);
    otlp_put_string(writer, FUNCTION_NAME, name->function);
    if (name->mangled)
        otlp_put_string(writer, FUNCTION_SYSTEM_NAME, name->mangled);
    if (name->file)
        otlp_put_string(writer, FUNCTION_FILE, name->file);
    export_protobuf_end(&writer->out, message);
}

static bool write_stacks(struct otlp_writer *writer, const struct used *used)
{
    uint32_t *stacks = calloc((size_t)writer->stacks.used + 1, sizeof *stacks);
    for (size_t i = 1; stacks && i < writer->stacks.count; i++)
        if (writer->stacks.items[i].number)
            stacks[writer->stacks.items[i].number - 1] = (uint32_t)i;
    write_none(writer, DICTIONARY_STACKS);
    for (uint32_t i = 0; stacks && i < writer->stacks.used; i++) {
        const size_t message = export_protobuf_begin(&writer->out, DICTIONARY_STACKS);
        const size_t packed = export_protobuf_begin(&writer->out, STACK_LOCATIONS);
        for (uint32_t at = stacks[i]; at; at = writer->stacks.items[at].outer)
            export_protobuf_bare_number(&writer->out, used->places[writer->stacks.items[at].place]);
        export_protobuf_end(&writer->out, packed);
        export_protobuf_end(&writer->out, message);
    }
    free(stacks);
    return stacks != NULL;
}

static void write_links(struct otlp_writer *writer)
{
    static const uint8_t zeros[TRACE_ID_BYTES];
    const size_t link = export_protobuf_begin(&writer->out, DICTIONARY_LINKS);
    export_protobuf_bytes(&writer->out, LINK_TRACE_ID, zeros, TRACE_ID_BYTES);
    export_protobuf_bytes(&writer->out, LINK_SPAN_ID, zeros, SPAN_ID_BYTES);
    export_protobuf_end(&writer->out, link);
}

// After all that has attributes, and before the strings, which have their keys.
static void write_attributes(struct otlp_writer *writer)
{
    write_none(writer, DICTIONARY_ATTRIBUTES);
    for (size_t i = 0; i < writer->attributes.count; i++) {
        const struct otlp_attribute *attribute = &writer->attributes.items[i];
        const size_t message = export_protobuf_begin(&writer->out, DICTIONARY_ATTRIBUTES);
        otlp_put(writer, ATTRIBUTE_KEY, attribute->key);
        const size_t value = export_protobuf_begin(&writer->out, ATTRIBUTE_VALUE);
        if (attribute->text)
            export_protobuf_text(&writer->out, ANY_TEXT, attribute->text);
        else
            export_protobuf_number(&writer->out, ANY_NUMBER, attribute->number);
        export_protobuf_end(&writer->out, value);
        export_protobuf_end(&writer->out, message);
    }
}

static bool write_tables(struct otlp_writer *writer, const struct used *used)
{
    const struct trace *trace = writer->trace;
    uint32_t *modules = by_number(used->modules, trace->module_count, used->module_count);
    uint32_t *places = by_number(used->places, (size_t)writer->places.count + 1, used->place_count);
    uint32_t *functions = by_number(used->functions, names_id_count(writer->names) + 1, used->function_count);
    bool is_good = modules && places && functions;
    if (is_good) {
        write_none(writer, DICTIONARY_MAPPINGS);
        for (uint32_t i = 0; i < used->module_count; i++)
            write_mapping(writer, modules[i]);
        write_none(writer, DICTIONARY_LOCATIONS);
        for (uint32_t i = 0; i < used->place_count; i++)
            write_location(writer, used, places[i]);
        write_none(writer, DICTIONARY_FUNCTIONS);
        for (uint32_t i = 0; i < used->function_count; i++)
            write_function(writer, functions[i]);
        write_links(writer);
        is_good = write_stacks(writer, used);
        write_attributes(writer);
        for (uint32_t i = 0; i < writer->strings.count; i++)
            export_protobuf_text(&writer->out, DICTIONARY_STRINGS, base_interner_text(&writer->strings, i));
    }
    free(modules);
    free(places);
    free(functions);
    return is_good;
}

bool export_otlp_write_dictionary(struct otlp_writer *writer)
{
    struct used used = {0};
    const size_t dictionary = export_protobuf_begin(&writer->out, REQUEST_DICTIONARY);
    const bool is_good = make_used(writer, &used) && write_tables(writer, &used);
    export_protobuf_end(&writer->out, dictionary);
    free(used.places);
    free(used.modules);
    free(used.functions);
    return is_good;
}
