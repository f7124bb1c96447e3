// SPDX-License-Identifier: Apache-2.0
// Places that a compiler left for whoever wants to see entries: nops (-fpatchable-function-entry=N,M), which
// `__patchable_function_entries` lists, and XRay's sleds (-fxray-instrument), which `xray_instr_map` does. Where one
// is, a function is entered, whatever else is known of it.
#include <string.h>

#include "qutc/input/image_store.h"
#include "tracer/calls/inside.h"
#include "tracer/symbols/sort.h"

enum { WORD_BYTES = 8, NOP = 0x90, NOPS_MAX = 64, MARK_BYTES = 4 };
// An entry of xray_instr_map: two words, from version 2 on counted from their own places; kind; always; version.
enum { XRAY_BYTES = 32, XRAY_KIND_AT = 16, XRAY_VERSION_AT = 18, XRAY_ENTER = 0, XRAY_ENTER_ARGUMENTS = 3 };

static uint64_t word_at(struct base_bytes bytes, size_t at)
{
    uint64_t word;
    memcpy(&word, bytes.data + at, sizeof word);
    return word;
}

static int add(struct calls_work *work, uint64_t place, uint64_t entry, bool is_xray)
{
    if (!calls_is_code(work, place) || (is_xray && !calls_is_code(work, entry)))
        return 0; // 0: the linker has dropped the function
    struct calls_sled *sled = BASE_ADD(&work->sleds);
    if (!sled)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "places that were left for entries");
    *sled = (struct calls_sled){.place = place, .entry = entry, .is_xray = is_xray};
    return 0;
}

static struct base_bytes bytes_of(const struct calls_work *work, const struct input_elf_section *section)
{
    struct base_bytes bytes = {NULL, 0};
    if (section && input_elf_section_bytes(&work->image->store->elf, section, &bytes, NULL) != 0)
        bytes.size = 0;
    return bytes;
}

// Words that the loader fills in: what it adds its bias to is in the relocation, and in the word itself not always.
static int read_relocated(struct calls_work *work, const Elf64_Rela *relocation, const void *context)
{
    const struct input_elf_section *table = context;
    return ELF64_R_TYPE(relocation->r_info) == R_X86_64_RELATIVE && relocation->r_offset >= table->vaddr &&
                   relocation->r_offset - table->vaddr < table->size_bytes
               ? add(work, (uint64_t)relocation->r_addend, 0, false)
               : 0;
}

static int read_nops(struct calls_work *work)
{
    const struct input_elf_section *table = input_elf_find(&work->image->store->elf, "__patchable_function_entries");
    struct base_bytes bytes = bytes_of(work, table);
    for (size_t at = 0; at + WORD_BYTES <= bytes.size; at += WORD_BYTES)
        if (add(work, word_at(bytes, at), 0, false) != 0)
            return -1;
    return table ? calls_each_relocation(work, read_relocated, table) : 0;
}

static int read_xray(struct calls_work *work)
{
    const struct input_elf_section *table = input_elf_find(&work->image->store->elf, "xray_instr_map");
    struct base_bytes bytes = bytes_of(work, table);
    for (size_t at = 0; at + XRAY_BYTES <= bytes.size; at += XRAY_BYTES) {
        const uint8_t kind = bytes.data[at + XRAY_KIND_AT], version = bytes.data[at + XRAY_VERSION_AT];
        uint64_t place = word_at(bytes, at), entry = word_at(bytes, at + WORD_BYTES);
        if (kind != XRAY_ENTER && kind != XRAY_ENTER_ARGUMENTS)
            continue;
        if (version >= 2) {
            place += table->vaddr + at;
            entry += table->vaddr + at + WORD_BYTES;
        }
        if (add(work, place, entry, true) != 0)
            return -1;
    }
    return 0;
}

int calls_read_sleds(struct calls_work *work)
{
    // Where calls leave their return addresses in a register, unwind information is needed all the same: it alone says
    // where that register is saved.
    if (!work->image->is_64 || work->image->arch->ra_in_register)
        return 0;
    if (read_nops(work) != 0 || read_xray(work) != 0)
        return -1;
    if (symbols_sort_by_first_u64(work->sleds.items, work->sleds.count, sizeof *work->sleds.items) != 0)
        return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "places that were left for entries");
    size_t kept = 0;
    for (size_t i = 0; i < work->sleds.count; i++)
        if (!kept || work->sleds.items[kept - 1].place != work->sleds.items[i].place)
            work->sleds.items[kept++] = work->sleds.items[i];
    work->sleds.count = kept;
    return 0;
}

static bool is_nops(const struct calls_work *work, uint64_t start, uint64_t end)
{
    struct base_bytes bytes = input_image_some(work->image, start, end - start);
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] != NOP)
            return false;
    return bytes.size == end - start;
}

// The first whose place is not below an address.
static size_t first_from(const struct calls_work *work, uint64_t vaddr)
{
    size_t low = 0, high = work->sleds.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (work->sleds.items[middle].place < vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool calls_is_sled_entry(const struct calls_work *work, uint64_t entry)
{
    for (size_t i = first_from(work, entry > NOPS_MAX ? entry - NOPS_MAX : 0); i < work->sleds.count; i++) {
        const struct calls_sled *sled = &work->sleds.items[i];
        if (sled->place > entry + MARK_BYTES)
            return false;
        struct calls_instruction first;
        if (sled->is_xray) {
            if (sled->entry == entry)
                return true;
        } else if (sled->place <= entry) { // M of the nops are before the function
            if (is_nops(work, sled->place, entry))
                return true;
        } else if (work->decoder->read(input_image_some(work->image, entry, MARK_BYTES), entry, &first) &&
                   first.is_landing_mark && sled->place == entry + first.length) {
            return true;
        }
    }
    return false;
}

bool calls_leads_into_nops(const struct calls_work *work, const struct calls_region *region)
{
    uint64_t vaddr = region->start + region->mark_bytes;
    while (vaddr < region->end && is_nops(work, vaddr, vaddr + 1))
        if (calls_is_marked(&work->targets, ++vaddr))
            return true;
    return false;
}

// The jump over the nops, where it is as the compiler left it.
bool calls_is_sled_jump(const struct calls_work *work, uint64_t vaddr, const struct calls_instruction *in)
{
    enum { SLED_BYTES = 11 };
    size_t i = first_from(work, vaddr);
    return i < work->sleds.count && work->sleds.items[i].place == vaddr && work->sleds.items[i].is_xray &&
           in->flow == CALLS_FLOW_JUMP && in->target == vaddr + SLED_BYTES;
}

int calls_add_sled_regions(struct calls_work *work)
{
    const size_t known = work->regions.count;
    for (size_t i = 0; i < work->sleds.count; i++) {
        const struct calls_sled *sled = &work->sleds.items[i];
        struct calls_instruction first;
        uint64_t entry = sled->is_xray ? sled->entry : sled->place;
        struct base_bytes before = input_image_some(work->image, entry - MARK_BYTES, MARK_BYTES);
        if (!sled->is_xray && work->decoder->read(before, entry - MARK_BYTES, &first) && first.is_landing_mark)
            entry -= first.length;
        // Looked up among those that are sorted. Nops before a function that is known end where that begins.
        const size_t all = work->regions.count;
        work->regions.count = known;
        const struct calls_region *there = calls_region_at(work, entry), *behind = calls_region_behind(work, entry);
        work->regions.count = all;
        if (there || (behind && behind->start - entry <= NOPS_MAX && is_nops(work, entry, behind->start)))
            continue;
        uint64_t end = behind ? behind->start : UINT64_MAX;
        if (i + 1 < work->sleds.count && work->sleds.items[i + 1].place < end)
            end = work->sleds.items[i + 1].place;
        for (unsigned k = 0; k < work->image->exec_count; k++)
            if (entry < work->image->exec[k].end && work->image->exec[k].end < end)
                end = work->image->exec[k].end;
        struct calls_region *region = BASE_ADD(&work->regions);
        if (!region)
            return base_fail(work->error, BASE_ERR_NO_MEMORY, "", 0, "functions");
        *region = (struct calls_region){.start = entry, .end = end, .fde = UINT32_MAX, .is_guessed = !sled->is_xray};
    }
    return 0;
}
