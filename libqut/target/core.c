// SPDX-License-Identifier: Apache-2.0
// A core file: its headers and its memory.
#include "libqut/target/core.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/elf_wide_inline.h"
#include "libqut/os/file.h"

enum { SEGMENTS_MAX = 1 << 20, NOTES_BYTES_MAX = 256 << 20 };

static const struct target_core_load *find_load(const struct target_core *core, uint64_t address)
{
    size_t low = 0, high = core->load_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (core->loads[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < core->load_count && core->loads[low].start <= address ? &core->loads[low] : NULL;
}

static size_t read_memory(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    const struct target_core *core = target->source;
    const struct target_core_load *load = find_load(core, address);
    if (!load || address - load->start >= load->stored_bytes)
        return 0;
    uint64_t into = address - load->start, left = load->stored_bytes - into;
    return os_read_at(core->fd, load->offset + into, bytes, left < size ? (size_t)left : size);
}

static bool mapped_file(struct qut_target *target, const struct target_map *map, unsigned n, char *path)
{
    const struct target_core *core = target->source;
    if (n > 0 || map->path[0] != '/')
        return false;
    if (core->exe_path && core->program_map && strcmp(map->path, core->program_map) == 0)
        return snprintf(path, PATH_MAX, "%s", core->exe_path) < PATH_MAX;
    return snprintf(path, PATH_MAX, "%s%s", target->sysroot ? target->sysroot : "", map->path) < PATH_MAX;
}

static void close_core(struct qut_target *target)
{
    struct target_core *core = target->source;
    if (!core)
        return;
    if (core->fd >= 0)
        os_close_file(core->fd);
    free(core->exe_path);
    free(core->program_map);
    free(core->loads);
    free(core->files);
    free(core->notes);
    free(core);
}

static const struct target_kind core_kind = {
    .read = read_memory,
    .file = mapped_file,
    .close = close_core,
};

struct core_header {
    uint64_t segment_table;
    unsigned segment_bytes;
    uint64_t segment_count;
    bool is_64;
};

static int read_header(struct qut_target *target, struct core_header *out, struct qut_target_error *error)
{
    const struct target_core *core = target->source;
    uint8_t bytes[sizeof(Elf64_Ehdr)] = {0};
    size_t got = os_read_at(core->fd, 0, bytes, sizeof bytes);
    if (got < sizeof(Elf32_Ehdr) || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return target_fail(error, "%.150s: not an ELF file", core->path);
    out->is_64 = bytes[EI_CLASS] == ELFCLASS64;
    if (bytes[EI_DATA] != ELFDATA2LSB || (!out->is_64 && bytes[EI_CLASS] != ELFCLASS32) ||
        (out->is_64 && got < sizeof bytes))
        return target_fail(error, "%.150s: not a little-endian ELF file, or cut off", core->path);
    const Elf64_Ehdr header = elf_wide_header(bytes, out->is_64);
    if (header.e_type != ET_CORE)
        return target_fail(error, "%.150s: not a core file (ELF type %u)", core->path, header.e_type);
    target->arch = arch_by_elf_machine(header.e_machine);
    if (!target->arch)
        return target_fail(error, "%.150s: not of a supported architecture (ELF machine %u)", core->path,
                           header.e_machine);
    if (out->is_64 != (target->arch->word_bytes == 8))
        return target_fail(error, "%.150s: %s with %d-bit pointers is not supported", core->path, target->arch->name,
                           out->is_64 ? 64 : 32);
    out->segment_table = header.e_phoff;
    out->segment_bytes = header.e_phentsize;
    out->segment_count = header.e_phnum;
    if (out->segment_bytes != elf_segment_bytes(out->is_64))
        return target_fail(error, "%.150s: program headers of %u bytes", core->path, out->segment_bytes);
    if (out->segment_count == PN_XNUM) { // more than fit: the first section header says how many
        size_t size = elf_section_bytes(out->is_64);
        if (os_read_at(core->fd, header.e_shoff, bytes, size) != size)
            return target_fail(error, "%.150s: the number of segments cannot be read", core->path);
        out->segment_count = elf_wide_section(bytes, out->is_64).sh_info;
    }
    return 0;
}

// What of [offset, offset + size) is in the file.
static uint64_t stored(struct target_core *core, uint64_t offset, uint64_t size)
{
    uint64_t left = offset < core->size ? core->size - offset : 0;
    core->truncated |= size > left;
    return size < left ? size : left;
}

static void add_load(struct target_core *core, const struct elf_segment *segment)
{
    uint64_t size = segment->memory_size > segment->file_size ? segment->memory_size : segment->file_size;
    if (size == 0 || segment->vaddr > UINT64_MAX - size)
        return;
    core->loads[core->load_count++] = (struct target_core_load){
        .start = segment->vaddr,
        .end = segment->vaddr + size,
        .offset = segment->offset,
        .stored_bytes = stored(core, segment->offset, segment->file_size),
        .readable = segment->flags & PF_R,
        .writable = segment->flags & PF_W,
        .executable = segment->flags & PF_X,
    };
}

static int add_notes(struct target_core *core, const struct elf_segment *segment)
{
    // Each segment of notes begins aligned.
    size_t start = (core->notes_size + 7) & ~(size_t)7;
    if (start >= NOTES_BYTES_MAX)
        return 0;
    uint64_t size = stored(core, segment->offset, segment->file_size);
    if (size > NOTES_BYTES_MAX - start)
        size = NOTES_BYTES_MAX - start;
    uint8_t *notes = realloc(core->notes, start + (size_t)size + 1);
    if (!notes)
        return -1;
    memset(notes + core->notes_size, 0, start - core->notes_size);
    core->notes = notes;
    core->notes_size = start + os_read_at(core->fd, segment->offset, notes + start, (size_t)size);
    notes[core->notes_size] = 0;
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct target_core_load *x = a, *y = b;
    return x->start < y->start ? -1 : x->start > y->start;
}

static int read_segments(struct qut_target *target, const struct core_header *header, struct qut_target_error *error)
{
    struct target_core *core = target->source;
    uint64_t room = stored(core, header->segment_table, header->segment_count * header->segment_bytes);
    uint64_t count = room / header->segment_bytes;
    if (count == 0 || count > SEGMENTS_MAX)
        return target_fail(error, "%.150s: cut off, or no segments", core->path);
    uint8_t *table = malloc((size_t)room);
    core->loads = calloc((size_t)count, sizeof *core->loads);
    if (!table || !core->loads) {
        free(table);
        return target_fail(error, "%.150s: out of memory", core->path);
    }
    size_t got = os_read_at(core->fd, header->segment_table, table, (size_t)room) / header->segment_bytes;
    int result = 0;
    for (size_t i = 0; result == 0 && i < got; i++) {
        const struct elf_segment segment = elf_segment_of(table + i * header->segment_bytes, header->is_64);
        if (segment.type == PT_LOAD)
            add_load(core, &segment);
        else if (segment.type == PT_NOTE)
            result = add_notes(core, &segment);
    }
    free(table);
    if (result != 0)
        return target_fail(error, "%.150s: out of memory", core->path);
    qsort(core->loads, core->load_count, sizeof *core->loads, by_start);
    size_t kept = 0; // hostile ones overlap
    for (size_t i = 0; i < core->load_count; i++)
        if (!kept || core->loads[i].start >= core->loads[kept - 1].end)
            core->loads[kept++] = core->loads[i];
    core->load_count = kept;
    return 0;
}

static int open_core(struct qut_target *target, struct qut_target_error *error)
{
    struct target_core *core = target->source;
    struct core_header header = {0};
    core->fd = os_open_file(core->path, &core->size);
    if (core->fd < 0)
        return target_fail(error, "%.150s: %s", core->path, strerror(-core->fd));
    if (read_header(target, &header, error) != 0 || read_segments(target, &header, error) != 0 ||
        target_core_take_notes(target, error) != 0 || target_core_take_maps(target, error) != 0)
        return -1;
    target->files_are_memory = true;
    target->stopped = true;
    if (target->pac_mask == 0)
        target->pac_mask = target_pac_mask_of_maps(target);
    return 0;
}

struct qut_target *qut_target_core(const char *core_path, const char *exe_path,
                                   const struct qut_target_options *options, struct qut_target_error *error)
{
    struct target_core *core = calloc(1, sizeof *core);
    struct qut_target *target = core ? target_new(&core_kind, options) : NULL;
    if (!target) {
        free(core);
        target_fail(error, "%.150s: out of memory", core_path);
        return NULL;
    }
    target->source = core;
    core->fd = -1;
    core->path = core_path;
    core->exe_path = exe_path ? strdup(exe_path) : NULL;
    if ((exe_path && !core->exe_path) || open_core(target, error) != 0) {
        if (exe_path && !core->exe_path)
            target_fail(error, "%.150s: out of memory", core_path);
        qut_target_close(target);
        return NULL;
    }
    core->path = NULL;
    return target;
}
