// SPDX-License-Identifier: Apache-2.0
// HotSpot's interpreter is made of codelets in assembly when the machine starts. Its frames all are alike, and fp leads
// from one to the next: but for the instructions at which one is made, and those behind where it was given up. They are
// found by their bytes, once.
#include <stdlib.h>
#include <string.h>

#include "libqut/hotspot/machine.h"

enum {
    PLACES_MAX = 4096, // OpenJDK 17 has 214
};

struct finder {
    const struct hotspot_arch *arch;
    const uint8_t *code;
    size_t size;
    struct hotspot_place *places;
    size_t count;
    bool is_full;
};

static void add(struct finder *f, size_t start, size_t end, struct hotspot_place place)
{
    place.start = (uint32_t)start;
    place.end = (uint32_t)end;
    if (f->count < PLACES_MAX && start < end)
        f->places[f->count++] = place;
    else
        f->is_full = f->is_full || start < end;
}

// From the codelet's first byte: no pc stands in its header.
static size_t find_entry(struct finder *f, size_t begin, size_t at)
{
    const struct hotspot_arch *arch = f->arch;
    static const uint8_t shapes[] = {HOTSPOT_RA_IN_REGISTER, HOTSPOT_RA_ON_TOP, HOTSPOT_FP_ON_TOP,
                                     HOTSPOT_FRAME_WITHOUT_SP};
    static_assert(sizeof shapes == sizeof arch->entry_sizes, "one each");
    struct hotspot_place place = {.shape = HOTSPOT_RA_ON_TOP, .sp_reg = arch->sender_sp_reg};
    // The instruction that pops ra is the last of its kind; behind it follow room for locals, and a loop of zeros.
    size_t popped = at;
    while (popped > begin && f->code[popped - 1] != arch->entry_pop)
        popped--;
    add(f, begin, popped > begin ? popped : at, place);
    place.ra_reg = arch->entry_ra_reg;
    place.shape = HOTSPOT_RA_IN_REGISTER;
    if (popped > begin)
        add(f, popped, at, place);
    for (unsigned i = 0; i < sizeof shapes; i++) {
        place.shape = shapes[i];
        add(f, at, at + arch->entry_sizes[i], place);
        at += arch->entry_sizes[i];
    }
    return at;
}

static size_t find_take_down(struct finder *f, size_t at)
{
    const struct hotspot_arch *arch = f->arch;
    size_t pop = at + 1;
    if (f->size - pop > arch->store_size && memcmp(f->code + pop, arch->store_bytes, sizeof arch->store_bytes) == 0)
        pop += arch->store_size;
    for (unsigned i = 0; i < arch->take_down_count; i++) {
        const struct hotspot_take_down *down = &arch->take_downs[i];
        if (f->size - pop < down->size_bytes || memcmp(f->code + pop, down->bytes, down->size_bytes) != 0)
            continue;
        size_t moved = pop + down->pop_bytes, end = pop + down->size_bytes;
        add(f, at + 1, moved, (struct hotspot_place){.shape = HOTSPOT_RA_ON_TOP, .sp_reg = down->sp_reg});
        add(f, moved, end,
            (struct hotspot_place){.shape = HOTSPOT_RA_IN_REGISTER, .ra_reg = down->ra_reg, .sp_reg = down->sp_reg});
        return end;
    }
    return at + 1;
}

// Where the entry's sequence or an instruction that gives a frame up begins, from a byte on.
static void find_in_codelet(struct finder *f, size_t begin, size_t end)
{
    const struct hotspot_arch *arch = f->arch;
    size_t sequence_bytes = 0;
    for (unsigned i = 0; i < sizeof arch->entry_sizes; i++)
        sequence_bytes += arch->entry_sizes[i];
    size_t free_from = begin;
    for (size_t at = begin; at < end;) {
        if (end - at >= sequence_bytes && memcmp(f->code + at, arch->entry_bytes, sequence_bytes) == 0)
            at = free_from = find_entry(f, free_from, at);
        else if (f->code[at] == arch->leave)
            at = free_from = find_take_down(f, at);
        else
            at++;
    }
}

// A codelet says how long it is.
static enum hotspot_fault find_all(struct finder *f, size_t size_at)
{
    for (size_t begin = 0; begin < f->size;) {
        int32_t size;
        if (f->size - begin < size_at + sizeof size)
            return HOTSPOT_UNKNOWN_LAYOUT;
        memcpy(&size, f->code + begin + size_at, sizeof size);
        if (size <= 0 || (size_t)size > f->size - begin)
            return HOTSPOT_UNKNOWN_LAYOUT;
        find_in_codelet(f, begin, begin + (size_t)size);
        begin += (size_t)size;
    }
    return f->is_full ? HOTSPOT_UNKNOWN_LAYOUT : HOTSPOT_FINE;
}

enum hotspot_fault hotspot_find_places(const struct elf_art_memory *memory, unsigned codelet_size_at,
                                       struct hotspot_machine *machine)
{
    size_t size = (size_t)(machine->interpreter_end - machine->interpreter_start);
    uint8_t *code = malloc(size);
    struct finder f = {machine->arch, code, size, malloc(PLACES_MAX * sizeof *f.places), 0, false};
    enum hotspot_fault fault = code && f.places ? HOTSPOT_FINE : HOTSPOT_NO_MEMORY;
    if (fault == HOTSPOT_FINE && !elf_art_read(memory, machine->interpreter_start, code, size))
        fault = HOTSPOT_UNREADABLE;
    if (fault == HOTSPOT_FINE)
        fault = find_all(&f, codelet_size_at);
    free(code);
    if (fault != HOTSPOT_FINE) {
        free(f.places);
        return fault;
    }
    struct hotspot_place *fitting = realloc(f.places, (f.count + 1) * sizeof *fitting);
    machine->places = fitting ? fitting : f.places;
    machine->place_count = f.count;
    return HOTSPOT_FINE;
}

const struct hotspot_place *hotspot_place_at(const struct hotspot_machine *machine, uint64_t pc)
{
    uint32_t offset = (uint32_t)(pc - machine->interpreter_start);
    size_t low = 0, high = machine->place_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (machine->places[middle].end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < machine->place_count && machine->places[low].start <= offset ? &machine->places[low] : NULL;
}
