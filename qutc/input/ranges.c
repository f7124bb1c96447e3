// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <stdlib.h>

#include "qutc/input/image_store.h"

static int by_start(const void *a, const void *b)
{
    uint64_t x = ((const struct input_range *)a)->start;
    uint64_t y = ((const struct input_range *)b)->start;
    return (x > y) - (x < y);
}

static size_t merge(struct input_range *ranges, size_t count)
{
    size_t merged = 0;
    qsort(ranges, count, sizeof *ranges, by_start);
    for (size_t i = 0; i < count; i++) {
        if (merged && ranges[i].start <= ranges[merged - 1].end) {
            if (ranges[i].end > ranges[merged - 1].end)
                ranges[merged - 1].end = ranges[i].end;
        } else {
            ranges[merged++] = ranges[i];
        }
    }
    return merged;
}

static void add_range(struct input_image *image, struct input_range *ranges, size_t *count, const char *what,
                      uint64_t vaddr, uint64_t size)
{
    uint64_t top = image->is_64 ? UINT64_MAX : UINT32_MAX;
    if (size == 0)
        return;
    if (vaddr > top || size - 1 > top - vaddr || vaddr + size == 0) {
        struct base_error damage = {0};
        base_fail(&damage, BASE_ERR_MALFORMED, what, vaddr, "size 0x%jx: past the end of the address space",
                  (uintmax_t)size);
        input_image_note_damage(image, &damage);
        return;
    }
    ranges[(*count)++] = (struct input_range){vaddr, vaddr + size};
}

int input_image_find_exec(struct input_image *image, struct base_error *error)
{
    const struct input_elf *elf = &image->store->elf;
    struct input_range *ranges = calloc(elf->segment_count + elf->section_count + 1, sizeof *ranges);
    size_t count = 0;
    if (!ranges)
        return base_fail(error, BASE_ERR_NO_MEMORY, "program headers", 0, "%zu of them", elf->segment_count);
    for (size_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].type == PT_LOAD && (elf->segments[i].flags & PF_X))
            add_range(image, ranges, &count, "PT_LOAD", elf->segments[i].vaddr, elf->segments[i].memory_bytes);
    // A JIT's file has no program headers, and its .text has an address but no bytes.
    for (size_t i = 0; i < elf->section_count && elf->segment_count == 0; i++)
        if ((elf->sections[i].flags & SHF_EXECINSTR) && elf->sections[i].type != SHT_NULL)
            add_range(image, ranges, &count, elf->sections[i].name, elf->sections[i].vaddr,
                      elf->sections[i].size_bytes);
    count = merge(ranges, count);
    // An object file may have a section for each function, anywhere.
    if (count > INPUT_EXEC_RANGES_MAX && elf->is_relocatable) {
        ranges[0].end = ranges[count - 1].end;
        count = 1;
    }
    bool fits = count <= INPUT_EXEC_RANGES_MAX;
    if (fits) {
        memcpy(image->exec, ranges, count * sizeof *ranges);
        image->exec_count = (unsigned)count;
    }
    free(ranges);
    return fits ? 0 : base_fail(error, BASE_ERR_LIMIT, "program headers", 0, "%zu executable ranges", count);
}

int input_image_find_code(struct input_image *image, struct base_error *error)
{
    const struct input_elf *elf = &image->store->elf;
    struct input_range *ranges = calloc(elf->section_count + 1, sizeof *ranges);
    size_t count = 0;
    if (!ranges)
        return base_fail(error, BASE_ERR_NO_MEMORY, "section headers", 0, "%zu of them", elf->section_count);
    for (size_t i = 0; i < elf->section_count; i++)
        if (elf->sections[i].flags & SHF_EXECINSTR && elf->sections[i].type == SHT_PROGBITS)
            add_range(image, ranges, &count, elf->sections[i].name, elf->sections[i].vaddr,
                      elf->sections[i].size_bytes);
    count = merge(ranges, count);
    bool is_known = count && count <= INPUT_EXEC_RANGES_MAX;
    image->code_count = is_known ? (unsigned)count : image->exec_count;
    memcpy(image->code, is_known ? ranges : image->exec, image->code_count * sizeof *ranges);
    free(ranges);
    return 0;
}

static bool is_plt(const char *name)
{
    static const char *const names[] = {".plt", ".iplt", ".plt.got", ".plt.sec", ".plt.bnd"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

void input_image_find_plt(struct input_image *image)
{
    const struct input_elf *elf = &image->store->elf;
    size_t count = 0;
    for (size_t i = 0; i < elf->section_count && count < INPUT_PLT_RANGES_MAX; i++)
        if (is_plt(elf->sections[i].name) && (elf->sections[i].flags & SHF_EXECINSTR))
            add_range(image, image->plt, &count, elf->sections[i].name, elf->sections[i].vaddr,
                      elf->sections[i].size_bytes);
    image->plt_count = (unsigned)count;
}

static int by_vaddr(const void *a, const void *b)
{
    uint64_t x = ((const struct input_mapped_range *)a)->vaddr;
    uint64_t y = ((const struct input_mapped_range *)b)->vaddr;
    return (x > y) - (x < y);
}

static void add_mapped(struct input_image_store *store, uint64_t vaddr, struct base_bytes bytes)
{
    if (bytes.size)
        store->mapped[store->mapped_count++] = (struct input_mapped_range){vaddr, bytes, false};
}

int input_image_map(struct input_image *image, struct base_error *error)
{
    struct input_image_store *store = image->store;
    const struct input_elf *elf = &store->elf;
    store->mapped = calloc(elf->segment_count + elf->section_count + 1, sizeof *store->mapped);
    if (!store->mapped)
        return base_fail(error, BASE_ERR_NO_MEMORY, "program headers", 0, "%zu of them", elf->segment_count);
    for (size_t i = 0; i < elf->segment_count; i++)
        if (elf->segments[i].type == PT_LOAD)
            add_mapped(store, elf->segments[i].vaddr, input_elf_segment_extent(elf, &elf->segments[i]));
    struct base_bytes bytes;
    for (size_t i = 0; i < elf->section_count && elf->segment_count == 0; i++)
        if ((elf->sections[i].flags & SHF_ALLOC) && !input_elf_section_bytes(elf, &elf->sections[i], &bytes, NULL))
            add_mapped(store, elf->sections[i].vaddr, bytes);
    qsort(store->mapped, store->mapped_count, sizeof *store->mapped, by_vaddr);
    return 0;
}

static struct input_mapped_range *range_of(const struct input_image_store *store, uint64_t vaddr)
{
    size_t low = 0;
    size_t high = store->mapped_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (store->mapped[middle].vaddr <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    bool inside = low && vaddr - store->mapped[low - 1].vaddr < store->mapped[low - 1].bytes.size;
    return inside ? &store->mapped[low - 1] : NULL;
}

struct base_bytes input_image_some(const struct input_image *image, uint64_t vaddr, uint64_t size_max)
{
    const struct input_image_store *store = image->store;
    const struct input_mapped_range *range = range_of(store, vaddr);
    if (!range)
        return (struct base_bytes){store->elf.bytes.data, 0};
    uint64_t offset = vaddr - range->vaddr;
    uint64_t left = range->bytes.size - offset;
    struct base_bytes bytes = {range->bytes.data + offset, (size_t)(left < size_max ? left : size_max)};
    if (!range->is_read)
        input_elf_need(&store->elf, (uint64_t)(bytes.data - store->elf.bytes.data), bytes.size);
    return bytes;
}

struct base_bytes input_image_at(const struct input_image *image, uint64_t vaddr)
{
    struct input_mapped_range *range = range_of(image->store, vaddr);
    if (range && !range->is_read) {
        input_image_some(image, range->vaddr, UINT64_MAX);
        range->is_read = true;
    }
    return input_image_some(image, vaddr, UINT64_MAX);
}
