// SPDX-License-Identifier: Apache-2.0
// pc -> symbol file. A process can have a hundred thousand of them: where the code of each lies is read of all, once,
// the rest of those that a walk meets.
#include <stdlib.h>

#include "libqut/target/machine.h"

enum { RANGES_MAX = 64 };

// Of all symbol files together, what is read to find out where their code lies.
#define LOOK_BYTES_MAX ((uint64_t)1 << 30)

// ---- where the code of each lies

bool target_machine_text(struct target_machine *machine, uint64_t address, uint64_t size, uint64_t *start,
                         uint64_t *end)
{
    struct art_jit_range ranges[RANGES_MAX];
    *start = *end = 0;
    if (size == 0 || size > ART_JIT_SYMFILE_BYTES_MAX || machine->looked_bytes > LOOK_BYTES_MAX)
        return false;
    if (size > machine->scratch_bytes) {
        uint8_t *scratch = realloc(machine->scratch, (size_t)size);
        if (!scratch)
            return false;
        machine->scratch = scratch;
        machine->scratch_bytes = (size_t)size;
    }
    machine->looked_bytes += size;
    if (!elf_art_read(&machine->memory, address, machine->scratch, (size_t)size))
        return false;
    size_t count = art_jit_code_ranges(machine->target->arch, machine->scratch, (size_t)size, ranges, RANGES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].start == 0)
            continue; // not loaded
        *start = *end == 0 || ranges[i].start < *start ? ranges[i].start : *start;
        *end = ranges[i].end > *end ? ranges[i].end : *end;
    }
    return *start < *end;
}

static int by_start(const void *a, const void *b)
{
    const struct target_machine_code *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int by_entry(const void *a, const void *b)
{
    const struct target_machine_code *x = a, *y = b;
    return x->entry.address < y->entry.address ? -1 : x->entry.address > y->entry.address;
}

static bool is_same_entry(const struct art_jit_entry *a, const struct art_jit_entry *b)
{
    return a->seqlock == b->seqlock && a->timestamp == b->timestamp && a->symfile_address == b->symfile_address &&
           a->symfile_bytes == b->symfile_bytes;
}

static void read_text(struct target_machine *machine, enum art_jit_layout layout, struct target_machine_code *old,
                      struct target_machine_code *code)
{
    if (old && is_same_entry(&old->entry, &code->entry)) {
        code->blob = old->blob; // looked at again before it is used
        old->blob = NULL;       // two lists may have one tail
        if (layout != ART_JIT_GDB) {
            code->start = old->start;
            code->end = old->end;
            return;
        }
    }
    if (!target_machine_text(machine, code->entry.symfile_address, code->entry.symfile_bytes, &code->start, &code->end))
        code->start = code->end = 0;
}

// False: no memory.
static bool list_code(struct target_machine *machine)
{
    size_t most = 0, count = 0, old_count = machine->code_count;
    for (unsigned l = 0; l < machine->list_count[TARGET_MACHINE_CODE]; l++)
        most += machine->lists[TARGET_MACHINE_CODE][l].list.count;
    struct target_machine_code *all = most ? malloc(most * sizeof *all) : NULL, *old = machine->code;
    if (most && !all)
        return false;
    if (old_count)
        qsort(old, old_count, sizeof *old, by_entry);
    for (unsigned l = 0; l < machine->list_count[TARGET_MACHINE_CODE]; l++) {
        const struct art_jit_list *list = &machine->lists[TARGET_MACHINE_CODE][l].list;
        for (size_t i = 0; i < list->count; i++) {
            struct target_machine_code *code = &all[count];
            *code = (struct target_machine_code){.order = count, .list = l, .entry = list->entries[i]};
            struct target_machine_code *known = old_count ? bsearch(code, old, old_count, sizeof *old, by_entry) : NULL;
            read_text(machine, list->descriptor.layout, known, code);
            count++;
        }
    }
    machine->looked_bytes = 0;
    free(old);
    if (count)
        qsort(all, count, sizeof *all, by_start);
    uint64_t greatest = 0;
    for (size_t i = 0; i < count; i++) {
        greatest = all[i].end > greatest ? all[i].end : greatest;
        all[i].greatest_end = greatest;
    }
    machine->code = all;
    machine->code_count = count;
    return true;
}

static bool update(struct target_machine *machine)
{
    if (target_machine_update(machine, TARGET_MACHINE_CODE))
        machine->code_is_current = false;
    if (!machine->code_is_current)
        machine->code_is_current = list_code(machine);
    return machine->code_is_current;
}

// ---- which one counts

static bool has_row(const struct target_machine_blob *blob, uint64_t pc)
{
    return blob->has_table && target_has_row(&blob->stored.table, pc);
}

static bool is_newer(const struct target_machine_code *a, const struct target_machine_code *b)
{
    if (a->entry.timestamp != b->entry.timestamp)
        return a->entry.timestamp > b->entry.timestamp;
    return a->order < b->order;
}

static struct target_machine_blob *blob_of(struct target_machine *machine, struct target_machine_code *code)
{
    if (code->blob && code->blob->moment != machine->moment) {
        if (target_machine_blob_holds(machine, code->blob)) {
            code->blob->moment = machine->moment;
        } else {
            target_machine_blob_drop(machine, code->blob);
            code->blob = NULL;
        }
    }
    if (!code->blob)
        code->blob = target_machine_blob_make(machine, &machine->lists[TARGET_MACHINE_CODE][code->list], code);
    return code->blob;
}

// The newest that covers the pc and is older than `than` (NULL: the newest of all).
static struct target_machine_code *newest(struct target_machine *machine, uint64_t pc,
                                          const struct target_machine_code *than)
{
    size_t low = 0, high = machine->code_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (machine->code[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    struct target_machine_code *best = NULL;
    for (size_t i = low; i-- > 0 && machine->code[i].greatest_end > pc;) {
        struct target_machine_code *code = &machine->code[i];
        if (code->end > pc && (!than || is_newer(than, code)) && (!best || is_newer(code, best)))
            best = code;
    }
    return best;
}

static struct target_machine_blob *search(struct target_machine *machine, uint64_t pc)
{
    struct target_machine_blob *first = NULL;
    unsigned tried = 0;
    // A group of methods has holes where methods were that are gone or have files of their own.
    for (struct target_machine_code *code = NULL;
         tried < TARGET_MACHINE_CANDIDATES_MAX && (code = newest(machine, pc, code)); tried++) {
        struct target_machine_blob *blob = blob_of(machine, code);
        if (blob && has_row(blob, pc))
            return blob;
        if (blob && (!first || (!first->has_table && blob->has_table)))
            first = blob;
    }
    return first;
}

struct target_machine_blob *target_machine_code_at(struct target_machine *machine, uint64_t pc)
{
    if (!update(machine))
        return NULL;
    struct target_machine_blob *blob = search(machine, pc);
    if ((!blob || !has_row(blob, pc)) && target_machine_read_again(machine, TARGET_MACHINE_CODE)) {
        machine->code_is_current = false;
        blob = update(machine) ? search(machine, pc) : NULL;
    }
    return blob;
}
