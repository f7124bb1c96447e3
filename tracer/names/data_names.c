// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/data_names.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/image_store.h"
#include "tracer/names/locate.h"
#include "tracer/names/names_store.h"

struct data_file {
    bool is_opened;
    struct input_range *segments; // that are mapped, zero-fill included
    size_t segment_count;
    struct symbols *symbols, *debug_symbols; // NULL: none
};

struct names_data {
    const struct trace *trace;
    struct names_options options;
    struct data_file *files; // by module
    bool no_memory;
};

struct names_data *names_data_open(const struct trace *trace, const struct names *names)
{
    struct names_data *data = calloc(1, sizeof *data);
    if (!data)
        return NULL;
    data->trace = trace;
    data->options = names->options;
    if (!data->options.debug_root)
        data->options.debug_root = "/usr/lib/debug";
    data->files = calloc(trace->module_count + 1, sizeof *data->files);
    if (data->files)
        return data;
    free(data);
    return NULL;
}

void names_data_close(struct names_data *data)
{
    if (!data)
        return;
    for (size_t i = 0; i < data->trace->module_count; i++) {
        symbols_free(data->files[i].symbols);
        symbols_free(data->files[i].debug_symbols);
        free(data->files[i].segments);
    }
    free(data->files);
    free(data);
}

bool names_data_no_memory(const struct names_data *data)
{
    return data->no_memory;
}

static void note_segments(struct data_file *file, const struct input_elf *elf)
{
    file->segments = calloc(elf->segment_count + 1, sizeof *file->segments);
    for (size_t i = 0; i < elf->segment_count && file->segments; i++) {
        const struct input_elf_segment *segment = &elf->segments[i];
        uint64_t end = segment->vaddr + segment->memory_bytes;
        if (segment->type == PT_LOAD && end > segment->vaddr)
            file->segments[file->segment_count++] = (struct input_range){segment->vaddr, end};
    }
}

static struct symbols *take_symbols(struct names_data *data, struct input_image *image)
{
    struct symbols *symbols = image ? symbols_read_data(image, 0, NULL) : NULL; // which closes the image
    data->no_memory |= image && !symbols;
    return symbols;
}

static void open_file(struct names_data *data, size_t module)
{
    struct data_file *file = &data->files[module];
    struct names_file located = {.options = &data->options, .module = &data->trace->modules[module]};
    file->is_opened = true;
    struct input_image *image = names_locate_image(&located);
    if (image) {
        note_segments(file, &image->store->elf);
        data->no_memory |= !file->segments;
        bool has_all = input_elf_find(&image->store->elf, ".symtab") || image->store->debug_elf.section_count;
        file->symbols = take_symbols(data, image);
        if (!has_all)
            file->debug_symbols = take_symbols(data, names_locate_debug_image(&located));
    }
    data->no_memory |= located.no_memory;
}

// A module's data lies behind its code, and in front of the next module's.
static size_t module_before(const struct trace *trace, uint64_t address)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < trace->module_count; i++) {
        const struct trace_module *module = &trace->modules[i];
        if (!(module->flags & (QUT_TRACE_MODULE_JIT | QUT_TRACE_MODULE_FILE)) && module->start <= address &&
            (found == SIZE_MAX || module->start > trace->modules[found].start))
            found = i;
    }
    return found;
}

static bool is_mapped(const struct data_file *file, uint64_t vaddr)
{
    for (size_t i = 0; i < file->segment_count; i++)
        if (vaddr >= file->segments[i].start && vaddr < file->segments[i].end)
            return true;
    return false;
}

static void print_place(const char *name, size_t length, uint64_t offset, char text[NAMES_DATA_TEXT_BYTES])
{
    int shown = (int)(length < NAMES_DATA_TEXT_BYTES - 24 ? length : NAMES_DATA_TEXT_BYTES - 24);
    if (offset)
        snprintf(text, NAMES_DATA_TEXT_BYTES, "%.*s+0x%" PRIx64, shown, name, offset);
    else
        snprintf(text, NAMES_DATA_TEXT_BYTES, "%.*s", shown, name);
}

const char *names_data_at(struct names_data *data, uint32_t process, uint64_t address, char text[NAMES_DATA_TEXT_BYTES])
{
    text[0] = 0;
    size_t index = process == 0 ? module_before(data->trace, address) : SIZE_MAX;
    if (index == SIZE_MAX)
        return text;
    const struct trace_module *module = &data->trace->modules[index];
    struct data_file *file = &data->files[index];
    if (!file->is_opened)
        open_file(data, index);
    uint64_t vaddr = address - module->start + module->start_vaddr;
    struct symbol symbol;
    if (!is_mapped(file, vaddr))
        return text;
    if ((file->debug_symbols && symbols_find(file->debug_symbols, vaddr, &symbol)) ||
        (file->symbols && symbols_find(file->symbols, vaddr, &symbol))) {
        print_place(symbol.name, symbol.name_length, vaddr - symbol.start_vaddr, text);
        return text;
    }
    const char *slash = strrchr(module->path, '/'), *base = slash ? slash + 1 : module->path;
    print_place(base, strlen(base), vaddr, text);
    return text;
}
