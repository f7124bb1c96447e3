// SPDX-License-Identifier: Apache-2.0
// The file that is mapped comes first: memory of another process is slow to read, and a core does not have what is in
// files. That it is the file which was mapped is proved by the signature in the dex file's header, where memory has it.
#include "tracer/stack/dex_names.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/dex/source.h"

enum { FAILURES_MAX = 16, CHUNK_BYTES = 1 << 20 };
#define MEMORY_BYTES_MAX ((uint64_t)64 << 20)

struct stack_dex_source {
    struct dex_source source;
    uint64_t start;                    // address of its bytes
    const struct stack_module *module; // whose file it is; NULL: it is a copy of memory
};

// Where in its file a dex pc of an OAT file lies: in Android 7 and before, dex files are in there.
static bool offset_in_elf(const struct stack_modules *modules, const struct qut_module_info *info, uint64_t address,
                          uint64_t *offset)
{
    struct elf_head head;
    if (!stack_head_in_memory(modules, info->start, &head))
        return false;
    uint64_t vaddr = address - info->load_bias;
    for (unsigned i = 0; i < head.load_count; i++) {
        const struct elf_segment *load = &head.loads[i];
        if (vaddr >= load->vaddr && vaddr - load->vaddr < load->file_size) {
            *offset = info->file_offset + load->offset + (vaddr - load->vaddr);
            return true;
        }
    }
    return false;
}

// False: the header in memory is another one than that in the file.
static bool is_mapped(const struct stack_modules *modules, const struct stack_dex_source *source,
                      const struct dex_found *found)
{
    uint8_t seen[DEX_IDENTITY_BYTES];
    uint64_t header = found->dex->header_offset;
    if (!source->module || qut_target_read(modules->target, source->start + header, seen, sizeof seen) != sizeof seen)
        return true;
    return memcmp(seen, source->source.bytes.data + header, sizeof seen) == 0;
}

// Behind the mapping of a file something else may be mapped.
static bool is_of(const struct stack_dex_source *source, const struct stack_module *module)
{
    const struct stack_module *own = source->module;
    return !own ||
           (module && own->info.load_bias == module->info.load_bias && strcmp(own->info.path, module->info.path) == 0);
}

static bool find(const struct stack_modules *modules, const struct stack_dex_source *source,
                 const struct stack_module *module, uint64_t dex_pc, struct dex_found *found)
{
    return is_of(source, module) && dex_pc >= source->start && dex_pc - source->start < source->source.bytes.size &&
           dex_index_find(source->source.index, dex_pc - source->start, found) && is_mapped(modules, source, found);
}

// Takes the source over. NULL without memory.
static const struct stack_dex_source *keep(struct stack_modules *modules, struct stack_dex_source *source)
{
    struct stack_dex_source *place = BASE_ADD(&modules->dex_sources);
    modules->no_memory |= !place;
    if (place)
        *place = *source;
    else
        dex_source_close(&source->source);
    return place;
}

static bool open_file(const struct stack_modules *modules, const struct stack_module *module, uint64_t dex_pc,
                      struct stack_dex_source *source, struct base_error *error)
{
    const struct qut_module_info *info = &module->info;
    uint64_t offset = dex_pc - info->load_bias;
    if (!*info->file_path || info->deleted || (info->is_elf && !offset_in_elf(modules, info, dex_pc, &offset)) ||
        dex_source_open(&source->source, info->file_path, offset, error) != 0)
        return false;
    source->start = dex_pc - offset + source->source.offset_bytes;
    source->module = module;
    return true;
}

// How many bytes from `start` on are mapped as that address is.
static uint64_t mapped_bytes(struct stack_modules *modules, uint64_t start)
{
    struct qut_module_info first, info;
    uint64_t size = 0;
    if (!qut_target_module(modules->target, start, &first))
        return 0;
    while (size < MEMORY_BYTES_MAX && qut_target_module(modules->target, start + size, &info) &&
           info.load_bias == first.load_bias && strcmp(info.path, first.path) == 0)
        size += CHUNK_BYTES;
    return size;
}

// Memory from *start on that is to be copied: of a dex file, what its header says (*start may move to the beginning of
// its container); of a .vdex file what is mapped. 0: there is nothing of the kind.
static uint64_t extent_at(struct stack_modules *modules, uint64_t *start)
{
    uint8_t header[DEX_CONTAINER_HEADER_BYTES];
    if (qut_target_read(modules->target, *start, header, sizeof header) != sizeof header)
        return 0;
    if (memcmp(header, "vdex", 4) == 0)
        return mapped_bytes(modules, *start);
    uint64_t before;
    uint64_t size = dex_extent((struct base_bytes){header, sizeof header}, &before);
    if (size == 0 || before > *start || size > MEMORY_BYTES_MAX)
        return 0;
    *start -= before;
    return size;
}

static bool copy_memory(struct stack_modules *modules, uint64_t start, uint64_t dex_pc, struct stack_dex_source *source,
                        struct base_error *error)
{
    uint64_t size = extent_at(modules, &start);
    if (dex_pc < start || dex_pc - start >= size)
        return false;
    uint8_t *bytes = malloc(size);
    modules->no_memory |= !bytes;
    size_t got = bytes ? qut_target_read(modules->target, start, bytes, size) : 0;
    source->start = start;
    source->module = NULL;
    if (got == 0) {
        free(bytes);
        return false;
    }
    return dex_source_open_memory(&source->source, bytes, got, error) == 0;
}

static bool open_memory(struct stack_modules *modules, const struct stack_module *module, uint64_t dex_pc,
                        struct stack_dex_source *source, struct base_error *error)
{
    uint64_t start, size;
    if (qut_target_dex_at(modules->target, dex_pc, &start, &size) && copy_memory(modules, start, dex_pc, source, error))
        return true;
    return module && !module->info.is_elf && copy_memory(modules, module->info.start, dex_pc, source, error);
}

// A dex file that is not known yet, where it has the dex pc. *error is left as it is where all that is wrong is that
// there is none.
static const struct stack_dex_source *open_source(struct stack_modules *modules, const struct stack_module *module,
                                                  uint64_t dex_pc, struct dex_found *found, struct base_error *error)
{
    struct stack_dex_source source;
    bool is_open[2] = {false, false};
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        is_open[in_memory] = in_memory ? open_memory(modules, module, dex_pc, &source, error)
                                       : module && open_file(modules, module, dex_pc, &source, error);
        if (!is_open[in_memory])
            continue;
        if (find(modules, &source, module, dex_pc, found))
            return keep(modules, &source);
        dex_source_close(&source.source);
    }
    if (is_open[0] || is_open[1])
        base_fail(error, BASE_ERR_MALFORMED, "", 0, "no method's code is at 0x%jx, or another file was mapped",
                  (uintmax_t)dex_pc);
    return NULL;
}

static void note_refusal(struct stack_modules *modules, struct stack_module *module, const struct base_error *error)
{
    modules->no_memory |= error->reason == BASE_ERR_NO_MEMORY;
    if (module)
        module->dex_failures++;
    if (modules->dex_refused++ == 0) {
        modules->dex_first = module;
        modules->dex_first_error = *error;
    }
}

void stack_dex_at(struct stack_modules *modules, struct stack_module *module, uint64_t dex_pc,
                  struct stack_dex_place *place)
{
    const struct stack_dex_source *source = NULL;
    struct dex_found found;
    *place = (struct stack_dex_place){0};
    for (size_t i = 0; i < modules->dex_sources.count && !source; i++)
        if (find(modules, &modules->dex_sources.items[i], module, dex_pc, &found))
            source = &modules->dex_sources.items[i];
    if (!source && (!module || module->dex_failures < FAILURES_MAX)) {
        struct base_error error = {0};
        source = open_source(modules, module, dex_pc, &found, &error);
        if (!source)
            note_refusal(modules, module, &error);
    }
    if (!source)
        return;
    if (source->source.entry) {
        place->entry = source->source.entry;
        place->entry_offset = source->source.offset_bytes;
        place->entry_start = source->start;
    }
    errno = 0; // a name that is none of a method's is no error
    place->method = dex_found_name(&found);
    modules->no_memory |= errno == ENOMEM;
    place->code_offset = dex_pc - source->start - found.code.start;
}

void stack_dex_free(struct stack_modules *modules)
{
    for (size_t i = 0; i < modules->dex_sources.count; i++)
        dex_source_close(&modules->dex_sources.items[i].source);
    base_vector_free(&modules->dex_sources.vector);
}
