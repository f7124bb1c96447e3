// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/named_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/input/image_store.h"
#include "tracer/names/dex_methods.h"
#include "tracer/names/locate.h"

// Whether all functions are named somewhere, not just those that others may call.
static bool has_all_symbols(const struct input_image *image)
{
    const struct input_image_store *store = image->store;
    return input_elf_find(&store->elf, ".symtab") || input_elf_find(&store->debug_elf, ".symtab") ||
           input_elf_find(&store->debugdata_elf, ".symtab") || symbols_has_go_functions(image);
}

static struct symbols *read_symbols(struct names_file *file, struct input_image **image)
{
    // Without memory the image is closed, too.
    struct symbols *symbols = *image ? symbols_read(*image, 0, NULL) : NULL;
    file->no_memory |= *image && !symbols;
    if (!symbols)
        *image = NULL;
    return symbols;
}

static void open_file(struct names_file *file)
{
    file->is_opened = true;
    file->image = names_locate_image(file);
    bool is_enough = file->image && has_all_symbols(file->image);
    file->symbols = read_symbols(file, &file->image);
    if (!is_enough)
        file->debug_image = names_locate_debug_image(file);
    is_enough = is_enough || file->debug_image;
    file->debug_symbols = read_symbols(file, &file->debug_image);
    if (*file->why || is_enough || !file->symbols)
        return;
    snprintf(file->why, sizeof file->why, "%s",
             symbols_count(file->symbols) ? "stripped: only exported functions have names" : "stripped: no symbols");
}

// Many files never need them.
static const struct names_starts *starts_of(struct names_file *file)
{
    if (!file->starts_are_read) {
        file->starts_are_read = true;
        names_starts_add(&file->starts, file->image);
        names_starts_add(&file->starts, file->debug_image);
        names_starts_sort(&file->starts);
    }
    return &file->starts;
}

static bool find_symbol(struct names_file *file, const struct symbols *symbols, uint64_t vaddr, struct symbol *symbol)
{
    return symbols && symbols_find(symbols, vaddr, symbol) &&
           (symbol->has_size || !names_starts_between(starts_of(file), symbol->start_vaddr, vaddr));
}

// Java code of an OAT file without symbols.
static bool find_compiled(struct names_file *file, uint64_t vaddr, struct symbol *symbol)
{
    if (!file->image || !file->image->oat.present)
        return false;
    if (!file->oat_is_read) {
        struct base_error error = {0};
        const char *entry;
        char *path = names_locate_path(file->options, file->module->path, &entry);
        file->oat_is_read = true;
        file->oat = path && !*entry ? dex_oat_open(file->image, path, file->options->system_root, &error) : NULL;
        file->no_memory |= !path || error.reason == BASE_ERR_NO_MEMORY;
        free(path);
    }
    return file->oat && dex_oat_find(file->oat, vaddr, symbol);
}

bool names_file_symbol(struct names_file *file, uint64_t vaddr, struct symbol *symbol)
{
    if (file->module->flags & QUT_TRACE_MODULE_FILE) {
        snprintf(file->why, sizeof file->why, "a mapped file, not a loaded one");
        return false;
    }
    if (!file->is_opened)
        open_file(file);
    return find_symbol(file, file->debug_symbols, vaddr, symbol) || find_symbol(file, file->symbols, vaddr, symbol) ||
           find_compiled(file, vaddr, symbol);
}

bool names_file_start(struct names_file *file, uint64_t vaddr, uint64_t *start_vaddr)
{
    return !(file->module->flags & QUT_TRACE_MODULE_FILE) && names_starts_find(starts_of(file), vaddr, start_vaddr);
}

bool names_file_is_plt(struct names_file *file, uint64_t vaddr, struct base_bytes *target)
{
    if (!names_plt_is(file->image, vaddr))
        return false;
    if (!file->plt_is_read) {
        file->plt_is_read = true;
        names_plt_read(&file->plt, file->image);
    }
    *target = names_plt_find(&file->plt, file->image, vaddr);
    return true;
}

static struct names_inlines *inlines_of(struct names_file *file, const struct input_image *image)
{
    errno = 0; // libdw does not say why it gives up
    struct names_inlines *inlines = image ? names_inlines_open(image) : NULL;
    file->no_memory |= errno == ENOMEM;
    return inlines;
}

static void open_inlines(struct names_file *file)
{
    file->inlines_are_opened = true;
    file->inlines = inlines_of(file, file->image);
    // A file may have all symbols and no debug information.
    if (!file->inlines && !file->debug_image) {
        size_t said = strlen(file->why); // that lines are missing is not why names are
        file->debug_image = names_locate_debug_image(file);
        file->debug_symbols = read_symbols(file, &file->debug_image);
        file->why[said] = '\0';
    }
    if (!file->inlines)
        file->inlines = inlines_of(file, file->debug_image);
}

size_t names_file_inlines(struct names_file *file, uint64_t vaddr,
                          struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX])
{
    if (file->module->flags & QUT_TRACE_MODULE_FILE)
        return 0;
    if (!file->is_opened)
        open_file(file);
    if (!file->inlines_are_opened)
        open_inlines(file);
    return file->inlines ? names_inlines_at(file->inlines, vaddr, functions) : 0;
}

// Android 7 and older have dex files inside OAT files.
static bool offset_of(struct names_file *file, uint64_t vaddr, uint64_t *offset)
{
    if (!file->is_opened)
        open_file(file);
    struct base_bytes at = {0};
    if (file->image)
        at = input_image_some(file->image, vaddr, 1);
    const struct base_bytes whole = file->image ? file->image->store->elf.bytes : (struct base_bytes){0};
    if (!at.size || (uintptr_t)at.data < (uintptr_t)whole.data)
        return false;
    *offset = (uint64_t)(at.data - whole.data);
    return *offset < whole.size;
}

char *names_file_method(struct names_file *file, uint64_t pc)
{
    uint64_t offset = pc;
    if (!(file->module->flags & QUT_TRACE_MODULE_FILE) && !offset_of(file, pc, &offset))
        return NULL;
    return names_dex_method(file, offset);
}

void names_file_close(struct names_file *file)
{
    names_inlines_close(file->inlines);
    names_starts_free(&file->starts);
    names_plt_free(&file->plt);
    symbols_free(file->symbols);
    symbols_free(file->debug_symbols);
    names_dex_free(file->dex);
    dex_oat_free(file->oat);
    *file = (struct names_file){0};
}
