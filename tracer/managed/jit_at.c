// SPDX-License-Identifier: Apache-2.0
// Android's lists count their changes. Where a look finds as many entries come and gone as were counted since the one
// before, none came and went unseen. ART also puts the files of many methods together, and then removes those: the same
// code keeps its name, so that is no change of what is there.
#include "tracer/managed/jit_at.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "tracer/symbols/symbols.h"

enum { RANGES_MAX = 8 };
#define BYTES_MAX ((uint64_t)128 << 20)

struct managed_jit_file {
    struct art_jit_entry entry;
    uint64_t known_ns, gone_ns; // since when it has been registered, as far as is known; when it was found to be gone
    bool is_kept;               // in the look under way
    uint8_t *bytes;
    size_t size;
    struct art_jit_range ranges[RANGES_MAX];
    size_t range_count;
    bool is_read;
    struct symbols *symbols; // once a name is asked for
};

static void free_file(struct managed_jit *jit, struct managed_jit_file *file)
{
    jit->bytes -= file->size;
    symbols_free(file->symbols);
    free(file->bytes);
    free(file);
}

static bool is_same(const struct art_jit_entry *one, const struct art_jit_entry *other)
{
    return one->address == other->address && one->seqlock == other->seqlock && one->timestamp == other->timestamp &&
           one->symfile_address == other->symfile_address && one->symfile_bytes == other->symfile_bytes;
}

void managed_jit_drop_lists(struct managed_jit *jit)
{
    for (unsigned i = 0; i < jit->list_count; i++)
        jit->lists[i].is_current = false;
}

void managed_jit_add_list(struct managed_jit *jit, uint64_t descriptor_address)
{
    for (unsigned i = 0; i < jit->list_count; i++)
        if (jit->lists[i].descriptor_address == descriptor_address) {
            jit->lists[i].is_current = true;
            return;
        }
    if (jit->list_count < MANAGED_JIT_LISTS_MAX)
        jit->lists[jit->list_count++] =
            (struct managed_jit_list){.descriptor_address = descriptor_address, .is_current = true};
}

// ---- a look

static int by_address(const void *a, const void *b)
{
    const struct managed_jit_file *x = *(struct managed_jit_file *const *)a, *y = *(struct managed_jit_file *const *)b;
    return (x->entry.address > y->entry.address) - (x->entry.address < y->entry.address);
}

static struct managed_jit_file *known_file(const struct managed_jit_list *list, size_t count,
                                           const struct art_jit_entry *entry)
{
    struct managed_jit_file key = {.entry = *entry}, *const wanted = &key, **found;
    found = count ? bsearch(&wanted, list->files.items, count, sizeof(struct managed_jit_file *), by_address) : NULL;
    return found && is_same(&(*found)->entry, entry) ? *found : NULL;
}

// False: what there is is not known whole.
static bool add_file(struct managed_jit *jit, const struct elf_art_memory *memory, struct managed_jit_list *list,
                     const struct art_jit_entry *entry)
{
    struct managed_jit_file *file =
        jit->bytes < BYTES_MAX && BASE_RESERVE(&list->files, 1) ? calloc(1, sizeof *file) : NULL;
    if (!file)
        return false;
    *file = (struct managed_jit_file){.entry = *entry, .is_kept = true};
    if (art_jit_copy_symfile(memory, &list->descriptor, entry, &file->bytes, &file->size) != ART_JIT_FINE) {
        free(file);
        return false;
    }
    jit->bytes += file->size;
    art_jit_complete_symfile(memory, file->bytes, file->size);
    file->range_count = art_jit_code_ranges(memory->arch, file->bytes, file->size, file->ranges, RANGES_MAX);
    *BASE_ADD(&list->files) = file;
    return true;
}

// What is forgotten may have been anything.
static void forget_oldest(struct managed_jit *jit, struct managed_jit_list *list)
{
    struct managed_jit_file *oldest = list->gone.items[0];
    list->unsure_ns = oldest->gone_ns > list->unsure_ns ? oldest->gone_ns : list->unsure_ns;
    memmove(&list->gone.items[0], &list->gone.items[1], (list->gone.count - 1) * sizeof(struct managed_jit_file *));
    list->gone.count--;
    free_file(jit, oldest);
}

static void move_to_gone(struct managed_jit *jit, struct managed_jit_list *list, struct managed_jit_file *file,
                         uint64_t now_ns)
{
    if (list->gone.count == MANAGED_JIT_GONE_MAX)
        forget_oldest(jit, list);
    file->gone_ns = now_ns;
    struct managed_jit_file **place = BASE_ADD(&list->gone);
    if (place) {
        *place = file;
        return;
    }
    list->unsure_ns = now_ns;
    jit->no_memory = true;
    free_file(jit, file);
}

// How many are gone.
static size_t sweep(struct managed_jit *jit, struct managed_jit_list *list, uint64_t now_ns)
{
    size_t kept = 0, count = list->files.count;
    for (size_t i = 0; i < count; i++) {
        struct managed_jit_file *file = list->files.items[i];
        if (file->is_kept)
            list->files.items[kept++] = file;
        else
            move_to_gone(jit, list, file, now_ns);
    }
    list->files.count = kept;
    return count - kept;
}

static void take_list(struct managed_jit *jit, const struct elf_art_memory *memory, struct managed_jit_list *list,
                      const struct art_jit_list *now, bool is_whole)
{
    const uint64_t now_ns = base_clock_now_ns();
    const uint32_t before = list->is_read ? list->descriptor.seqlock : 0;
    const size_t known = list->files.count;
    const bool was_read = list->is_read;
    uint32_t changes = (now->descriptor.seqlock - before) / 2;
    size_t added = 0;
    list->descriptor = now->descriptor;
    list->is_read = true;
    for (size_t i = 0; i < known; i++)
        list->files.items[i]->is_kept = false;
    for (size_t i = 0; i < now->count; i++) {
        struct managed_jit_file *file = known_file(list, known, &now->entries[i]);
        if (file) {
            file->is_kept = true;
            continue;
        }
        added++;
        if (!add_file(jit, memory, list, &now->entries[i])) {
            is_whole = false;
            continue;
        }
        // GDB's lists have no times: what the first look finds has been there, as far as anybody can tell.
        file = list->files.items[list->files.count - 1];
        file->known_ns = now->descriptor.layout != ART_JIT_GDB ? now->entries[i].timestamp : was_read ? now_ns : 0;
    }
    size_t gone = sweep(jit, list, now_ns);
    if (list->files.count)
        qsort(list->files.items, list->files.count, sizeof(struct managed_jit_file *), by_address);
    bool is_counted = now->descriptor.layout == ART_JIT_GDB || added + gone == changes;
    if (!is_whole || !is_counted)
        list->unsure_ns = now_ns;
}

static void look(struct managed_jit *jit, const struct elf_art_memory *memory, struct managed_jit_list *list)
{
    struct art_jit_list now;
    if (list->is_read && list->descriptor.layout != ART_JIT_GDB && art_jit_is_unchanged(memory, &list->descriptor))
        return;
    enum art_jit_fault fault = art_jit_list_read(memory, list->descriptor_address, &now);
    // The process may have ended: what is known then stays.
    if (fault == ART_JIT_FINE)
        take_list(jit, memory, list, &now, true);
    else if (fault != ART_JIT_UNREADABLE)
        list->unsure_ns = base_clock_now_ns();
    art_jit_list_free(&now);
}

// ---- names

static bool covers(const struct managed_jit_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->range_count; i++)
        if (address >= file->ranges[i].start && address < file->ranges[i].end)
            return true;
    return false;
}

static bool find_symbol(struct managed_jit *jit, struct managed_jit_file *file, uint64_t address, struct symbol *symbol)
{
    const struct input_image_options options = {.jit = true};
    struct input_image *image = NULL;
    struct base_error error = {0};
    if (!covers(file, address))
        return false;
    if (!file->is_read) {
        file->is_read = true;
        if (input_image_open_memory((struct base_bytes){file->bytes, file->size}, NULL, &options, &image, &error) == 0)
            file->symbols = symbols_read(image, 0, &error);
        jit->no_memory |= error.reason == BASE_ERR_NO_MEMORY;
    }
    return file->symbols && symbols_find(file->symbols, address, symbol);
}

static bool is_same_name(const struct symbol *one, const struct symbol *other)
{
    return one->start_vaddr == other->start_vaddr && one->end_vaddr == other->end_vaddr &&
           one->name_length == other->name_length && memcmp(one->name, other->name, one->name_length) == 0;
}

// The newest of what is registered; of several files the same code may be in each.
static struct managed_jit_file *newest(struct managed_jit *jit, const struct managed_jit_list *list, uint64_t address,
                                       struct symbol *symbol)
{
    struct managed_jit_file *best = NULL;
    struct symbol found;
    for (size_t i = 0; i < list->files.count; i++) {
        struct managed_jit_file *file = list->files.items[i];
        if ((!best || file->entry.timestamp >= best->entry.timestamp) && find_symbol(jit, file, address, &found)) {
            best = file;
            *symbol = found;
        }
    }
    return best;
}

// Whether there was nothing else since then, of what was registered now or since.
static bool was_there(struct managed_jit *jit, const struct managed_jit_list *list, const struct managed_jit_file *best,
                      const struct symbol *symbol, uint64_t address, uint64_t since_ns)
{
    struct symbol other;
    uint64_t known_ns = best->known_ns;
    for (size_t i = list->gone.count; i-- > 0 && list->gone.items[i]->gone_ns >= since_ns;) {
        struct managed_jit_file *file = list->gone.items[i];
        if (!find_symbol(jit, file, address, &other))
            continue;
        if (!is_same_name(symbol, &other))
            return false;
        known_ns = file->known_ns < known_ns ? file->known_ns : known_ns;
    }
    return known_ns <= since_ns || list->unsure_ns == 0 || list->unsure_ns < since_ns;
}

bool managed_jit_at(struct managed_jit *jit, const struct elf_art_memory *memory, uint64_t address, uint64_t since_ns,
                    struct managed_jit_name *name)
{
    struct symbol symbol = {0};
    for (unsigned i = 0; i < jit->list_count; i++) {
        struct managed_jit_list *list = &jit->lists[i];
        if (!list->is_current)
            continue;
        look(jit, memory, list);
        const struct managed_jit_file *best = newest(jit, list, address, &symbol);
        if (!best || !was_there(jit, list, best, &symbol, address, since_ns))
            continue;
        *name = (struct managed_jit_name){symbol.start_vaddr, symbol.end_vaddr, symbol.name, symbol.name_length};
        return true;
    }
    return false;
}

void managed_jit_free(struct managed_jit *jit)
{
    for (unsigned i = 0; i < jit->list_count; i++) {
        struct managed_jit_list *list = &jit->lists[i];
        for (size_t k = 0; k < list->files.count; k++)
            free_file(jit, list->files.items[k]);
        for (size_t k = 0; k < list->gone.count; k++)
            free_file(jit, list->gone.items[k]);
        base_vector_free(&list->files.vector);
        base_vector_free(&list->gone.vector);
    }
    *jit = (struct managed_jit){0};
}
