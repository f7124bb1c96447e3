// SPDX-License-Identifier: Apache-2.0
// The file that is mapped comes first: memory of another process is slow to read, and a core does not have what is in
// files. That it is the file which was mapped is proved by the signature in the dex file's header, where memory has it.
#include "tracer/managed/dex_at.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/dex/source.h"

enum { FAILURES_MAX = 16, CHUNK_BYTES = 1 << 20 };
#define MEMORY_BYTES_MAX ((uint64_t)64 << 20)

struct managed_dex_source {
    struct dex_source source;
    uint64_t start; // address of its bytes
    bool is_file;
    uint64_t load_bias; // of a file, what it is mapped as
    char *path;
};

// Where no dex file was found in a module.
struct managed_dex_failures {
    uint64_t start, load_bias;
    unsigned count;
};

// Where in its file a dex pc of an OAT file lies: in Android 7 and before, dex files are in there.
static bool offset_in_elf(const struct managed_dex *dex, const struct qut_module_info *info, uint64_t address,
                          uint64_t *offset)
{
    struct elf_head head;
    if (!managed_head_in_memory(dex->target, info->start, &head))
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

// False: the header in memory is another one than that which was read. Where memory cannot be read (a core file without
// it, a process that has ended), what was read holds.
static bool is_mapped(const struct managed_dex *dex, const struct managed_dex_source *source,
                      const struct dex_found *found)
{
    uint8_t seen[DEX_IDENTITY_BYTES];
    uint64_t header = found->dex->header_offset;
    if (qut_target_read(dex->target, source->start + header, seen, sizeof seen) != sizeof seen)
        return true;
    return memcmp(seen, source->source.bytes.data + header, sizeof seen) == 0;
}

// Behind the mapping of a file something else may be mapped.
static bool is_of(const struct managed_dex_source *source, const struct qut_module_info *module)
{
    return !source->is_file ||
           (module && source->load_bias == module->load_bias && strcmp(source->path, module->path) == 0);
}

static bool find(const struct managed_dex *dex, const struct managed_dex_source *source,
                 const struct qut_module_info *module, uint64_t dex_pc, struct dex_found *found)
{
    return is_of(source, module) && dex_pc >= source->start && dex_pc - source->start < source->source.bytes.size &&
           dex_index_find(source->source.index, dex_pc - source->start, found) && is_mapped(dex, source, found);
}

static void close_source(struct managed_dex_source *source)
{
    dex_source_close(&source->source);
    free(source->path);
}

// Takes the source over. NULL without memory.
static const struct managed_dex_source *keep(struct managed_dex *dex, struct managed_dex_source *source)
{
    struct managed_dex_source *place = BASE_ADD(&dex->sources);
    dex->no_memory |= !place;
    if (place)
        *place = *source;
    else
        close_source(source);
    return place;
}

static bool open_file(struct managed_dex *dex, const struct qut_module_info *info, uint64_t dex_pc,
                      struct managed_dex_source *source, struct base_error *error)
{
    uint64_t offset = dex_pc - info->load_bias;
    if (!*info->file_path || info->deleted || (info->is_elf && !offset_in_elf(dex, info, dex_pc, &offset)) ||
        dex_source_open(&source->source, info->file_path, offset, error) != 0)
        return false;
    source->start = dex_pc - offset + source->source.offset_bytes;
    source->is_file = true;
    source->load_bias = info->load_bias;
    source->path = strdup(info->path);
    if (source->path)
        return true;
    dex->no_memory = true;
    close_source(source);
    return false;
}

// How many bytes from `start` on are mapped as that address is.
static uint64_t mapped_bytes(struct managed_dex *dex, uint64_t start)
{
    struct qut_module_info first, info;
    uint64_t size = 0;
    if (!qut_target_module(dex->target, start, &first))
        return 0;
    while (size < MEMORY_BYTES_MAX && qut_target_module(dex->target, start + size, &info) &&
           info.load_bias == first.load_bias && strcmp(info.path, first.path) == 0)
        size += CHUNK_BYTES;
    return size;
}

// Memory from *start on that is to be copied: of a dex file, what its header says (*start may move to the beginning of
// its container); of a .vdex file what is mapped. 0: there is nothing of the kind.
static uint64_t extent_at(struct managed_dex *dex, uint64_t *start)
{
    uint8_t header[DEX_CONTAINER_HEADER_BYTES];
    if (qut_target_read(dex->target, *start, header, sizeof header) != sizeof header)
        return 0;
    if (memcmp(header, "vdex", 4) == 0)
        return mapped_bytes(dex, *start);
    uint64_t before;
    uint64_t size = dex_extent((struct base_bytes){header, sizeof header}, &before);
    if (size == 0 || before > *start || size > MEMORY_BYTES_MAX)
        return 0;
    *start -= before;
    return size;
}

static bool copy_memory(struct managed_dex *dex, uint64_t start, uint64_t dex_pc, struct managed_dex_source *source,
                        struct base_error *error)
{
    uint64_t size = extent_at(dex, &start);
    if (dex_pc < start || dex_pc - start >= size)
        return false;
    uint8_t *bytes = malloc(size);
    dex->no_memory |= !bytes;
    size_t got = bytes ? qut_target_read(dex->target, start, bytes, size) : 0;
    source->start = start;
    if (got == 0) {
        free(bytes);
        return false;
    }
    return dex_source_open_memory(&source->source, bytes, got, error) == 0;
}

static bool open_memory(struct managed_dex *dex, const struct qut_module_info *module, uint64_t dex_pc,
                        struct managed_dex_source *source, struct base_error *error)
{
    uint64_t start, size;
    if (qut_target_dex_at(dex->target, dex_pc, &start, &size) && copy_memory(dex, start, dex_pc, source, error))
        return true;
    return module && !module->is_elf && copy_memory(dex, module->start, dex_pc, source, error);
}

// A dex file that is not known yet, where it has the dex pc. *error is left as it is where all that is wrong is that
// there is none.
static const struct managed_dex_source *open_source(struct managed_dex *dex, const struct qut_module_info *module,
                                                    uint64_t dex_pc, struct dex_found *found, struct base_error *error)
{
    bool is_open[2] = {false, false};
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        struct managed_dex_source source = {0};
        is_open[in_memory] = in_memory ? open_memory(dex, module, dex_pc, &source, error)
                                       : module && open_file(dex, module, dex_pc, &source, error);
        if (!is_open[in_memory])
            continue;
        if (find(dex, &source, module, dex_pc, found))
            return keep(dex, &source);
        close_source(&source);
    }
    if (is_open[0] || is_open[1])
        base_fail(error, BASE_ERR_MALFORMED, "", 0, "no method's code is at 0x%jx, or another file was mapped",
                  (uintmax_t)dex_pc);
    return NULL;
}

// Of a module, what has failed. NULL: nothing, or there is no memory (then it is looked for again).
static struct managed_dex_failures *failures_of(struct managed_dex *dex, const struct qut_module_info *module, bool add)
{
    for (size_t i = 0; i < dex->failures.count; i++)
        if (dex->failures.items[i].start == module->start && dex->failures.items[i].load_bias == module->load_bias)
            return &dex->failures.items[i];
    struct managed_dex_failures *added = add ? BASE_ADD(&dex->failures) : NULL;
    dex->no_memory |= add && !added;
    if (added)
        *added = (struct managed_dex_failures){.start = module->start, .load_bias = module->load_bias};
    return added;
}

static void note_failure(struct managed_dex *dex, const struct qut_module_info *module, const struct base_error *error)
{
    struct managed_dex_failures *failures = module ? failures_of(dex, module, true) : NULL;
    dex->no_memory |= error->reason == BASE_ERR_NO_MEMORY;
    if (failures)
        failures->count++;
}

bool managed_dex_at(struct managed_dex *dex, const struct qut_module_info *module, uint64_t dex_pc,
                    struct managed_dex_place *place, struct base_error *error)
{
    const struct managed_dex_source *source = NULL;
    struct dex_found found;
    *place = (struct managed_dex_place){0};
    for (size_t i = 0; i < dex->sources.count && !source; i++)
        if (find(dex, &dex->sources.items[i], module, dex_pc, &found))
            source = &dex->sources.items[i];
    if (!source) {
        const struct managed_dex_failures *failures = module ? failures_of(dex, module, false) : NULL;
        if (failures && failures->count >= FAILURES_MAX)
            return false;
        source = open_source(dex, module, dex_pc, &found, error);
        if (!source)
            note_failure(dex, module, error);
    }
    if (!source)
        return false;
    if (source->source.entry) {
        place->entry = source->source.entry;
        place->entry_offset = source->source.offset_bytes;
        place->entry_start = source->start;
    }
    errno = 0; // a name that is none of a method's is no error
    place->method = dex_found_name(&found);
    dex->no_memory |= errno == ENOMEM;
    place->start = source->start + found.code.start;
    place->end = source->start + found.code.end;
    return true;
}

void managed_dex_free(struct managed_dex *dex)
{
    for (size_t i = 0; i < dex->sources.count; i++)
        close_source(&dex->sources.items[i]);
    base_vector_free(&dex->sources.vector);
    base_vector_free(&dex->failures.vector);
}
