// SPDX-License-Identifier: Apache-2.0
// Code that data leads to: jump tables, relocations, words that are addresses. A mark too many costs a function its
// 5-byte jump at most; one too few would break the program.
#include <stdlib.h>
#include <string.h>

#include "formats/elf_wide_inline.h"
#include "qutc/input/image_store.h"
#include "tracer/calls/inside.h"
#include "tracer/symbols/sort.h"

enum { TABLE_ENTRIES_MAX = 65536 };

bool calls_is_code(const struct calls_work *work, uint64_t vaddr)
{
    for (unsigned i = 0; i < work->image->exec_count; i++)
        if (vaddr >= work->image->exec[i].start && vaddr < work->image->exec[i].end)
            return true;
    return false;
}

// A table of distances from its own start, as compilers make them of `switch`. It ends where an entry leads to no code,
// or where the next thing begins that has its address taken.
static void read_table(struct calls_work *work, uint64_t table, uint64_t next)
{
    struct base_bytes bytes = input_image_at(work->image, table);
    uint64_t room = next - table < bytes.size ? next - table : bytes.size;
    for (size_t i = 0; i < TABLE_ENTRIES_MAX && (i + 1) * 4 <= room; i++) {
        int32_t distance;
        memcpy(&distance, bytes.data + i * 4, 4);
        uint64_t target = table + (uint64_t)(int64_t)distance;
        if (!calls_is_code(work, target))
            break;
        calls_mark(&work->targets, target);
    }
}

static int read_jump_tables(struct calls_work *work)
{
    if (symbols_sort_by_first_u64(work->leas.items, work->leas.count, sizeof *work->leas.items) != 0)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "jump tables");
    for (size_t i = 0; i < work->leas.count; i++) {
        size_t next = i + 1;
        if (next < work->leas.count && work->leas.items[next] == work->leas.items[i])
            continue;
        read_table(work, work->leas.items[i], next < work->leas.count ? work->leas.items[next] : UINT64_MAX);
    }
    return 0;
}

// Pointers in data: where the loader adds a bias to what is there, or the file is not relocated.
static void read_words(struct calls_work *work)
{
    const struct input_image_store *store = work->image->store;
    for (size_t i = 0; i < store->mapped_count; i++) {
        uint64_t vaddr = store->mapped[i].vaddr;
        if (calls_is_code(work, vaddr))
            continue;
        struct base_bytes bytes = input_image_at(work->image, vaddr);
        for (size_t at = (size_t)(-vaddr & 7); at + 8 <= bytes.size; at += 8) {
            uint64_t word;
            memcpy(&word, bytes.data + at, 8);
            if (word >= work->text_start && word < work->text_end)
                calls_mark(&work->targets, word);
        }
    }
}

static int add_resolver(struct calls_work *work, uint64_t vaddr)
{
    uint64_t *resolver = BASE_ADD(&work->resolvers);
    if (!resolver)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "relocations");
    *resolver = vaddr;
    return 0;
}

int calls_each_relocation(struct calls_work *work, calls_relocation_fn each, const void *context)
{
    const struct input_elf *elf = &work->image->store->elf;
    for (size_t i = 0; i < elf->section_count; i++) {
        struct base_bytes bytes;
        if (elf->sections[i].type != SHT_RELA || !(elf->sections[i].flags & SHF_ALLOC) ||
            input_elf_section_bytes(elf, &elf->sections[i], &bytes, NULL) != 0)
            continue;
        for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes.size; at += sizeof(Elf64_Rela)) {
            Elf64_Rela relocation;
            memcpy(&relocation, bytes.data + at, sizeof relocation);
            if (each(work, &relocation, context) != 0)
                return -1;
        }
    }
    return 0;
}

static int read_relocation(struct calls_work *work, const Elf64_Rela *relocation, const void *unused)
{
    (void)unused;
    const uint64_t type = ELF64_R_TYPE(relocation->r_info), target = (uint64_t)relocation->r_addend;
    if (type == work->decoder->relative || type == work->decoder->irelative)
        calls_mark(&work->targets, target);
    return type == work->decoder->irelative ? add_resolver(work, target) : 0;
}

static int find_resolvers(struct calls_work *work)
{
    struct symbol symbol;
    for (size_t i = 0; i < symbols_count(work->symbols); i++) {
        symbols_at(work->symbols, i, &symbol);
        if (symbol.is_resolver && add_resolver(work, symbol.start_vaddr) != 0)
            return -1;
    }
    return 0;
}

int calls_read_tables(struct calls_work *work)
{
    if (read_jump_tables(work) != 0 || find_resolvers(work) != 0)
        return -1;
    read_words(work);
    if (calls_each_relocation(work, read_relocation, NULL) != 0)
        return -1;
    if (symbols_sort_by_first_u64(work->resolvers.items, work->resolvers.count, sizeof *work->resolvers.items) != 0)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "relocations");
    return 0;
}
