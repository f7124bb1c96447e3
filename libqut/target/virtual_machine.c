// SPDX-License-Identifier: Apache-2.0
// What a walk, and the reader of its frames, asks of virtual machines: code made at run time, dex files.
#include "libqut/target/machine.h"

#include <stdio.h>
#include <string.h>

// ---- for walks

static bool is_live(const struct qut_target *target)
{
    return target->kind->stop != NULL;
}

void target_jit_new_moment(struct qut_target *target)
{
    if (target->machine && is_live(target))
        target->machine->moment++;
}

void target_jit_new_maps(struct qut_target *target)
{
    if (target->machine)
        target->machine->is_searched = false;
}

bool target_jit_holds(struct qut_target *target)
{
    struct target_machine *machine = target->machine;
    if (!machine)
        return true;
    uint64_t used = machine->moment;
    target_jit_new_moment(target);
    for (size_t i = 0; i < machine->blob_count; i++)
        if (machine->blobs[i]->used_moment == used && !target_machine_blob_holds(machine, machine->blobs[i]))
            return false;
    return true;
}

// A file of one method's code, without program headers, that is mapped where the code would be: what is left of it in
// recordings of processes.
static struct target_machine_blob *mapped_symfile(struct target_machine *machine, uint64_t pc)
{
    const struct qut_target *target = machine->target;
    const struct target_map *map = target_maps_find(&target->maps, pc);
    struct target_machine_code code = {0};
    for (size_t i = 0; i < machine->blob_count; i++) {
        struct target_machine_blob *blob = machine->blobs[i];
        if (blob->entry.address == 0 && pc >= blob->start && pc < blob->end)
            return blob;
    }
    uint8_t magic[4];
    if (is_live(target) || !map || !map->path[0] || (map->image && map->image->is_elf) ||
        !elf_art_read(&machine->memory, map->start, magic, sizeof magic) || memcmp(magic, "\177ELF", sizeof magic) != 0)
        return NULL;
    code.entry.symfile_address = map->start;
    code.entry.symfile_bytes = map->end - map->start;
    if (!target_machine_text(machine, map->start, map->end - map->start, &code.start, &code.end) || pc < code.start ||
        pc >= code.end)
        return NULL;
    return target_machine_blob_make(machine, NULL, &code);
}

static struct target_machine_blob *blob_at(struct qut_target *target, uint64_t pc)
{
    struct target_machine *machine = target_machine(target);
    if (!machine)
        return NULL;
    struct target_machine_blob *blob = target_machine_code_at(machine, pc);
    if (!blob)
        blob = mapped_symfile(machine, pc);
    if (blob)
        blob->used_moment = machine->moment;
    return blob;
}

bool target_find_jit(struct qut_target *target, uint64_t pc, struct runtime_code *code)
{
    const struct target_machine_blob *blob = blob_at(target, pc);
    if (!blob || !blob->has_table)
        return false;
    *code = (struct runtime_code){
        .state = RUNTIME_CODE_READY, .table = &blob->stored.table, .frame_flags = blob->frame_flags};
    return true;
}

// Of code that no symbol file covers. Erlang's machine, for one, describes its code in a form of its own.
static void say_not_covered(const struct target_machine *machine, char *reason, size_t size)
{
    size_t without_code = 0;
    for (unsigned i = 0; i < machine->list_count[TARGET_MACHINE_CODE]; i++) {
        const struct target_machine_list *list = &machine->lists[TARGET_MACHINE_CODE][i];
        if (list->fault == ART_JIT_FINE)
            continue;
        snprintf(reason, size, "no ELF image; of code made at run time, %s", art_jit_fault_text(list->fault));
        return;
    }
    for (size_t i = 0; i < machine->code_count; i++)
        without_code += machine->code[i].start == machine->code[i].end;
    snprintf(reason, size,
             "no ELF image; no symbol file of code made at run time covers it, of %zu, %zu of them unusable",
             machine->code_count, without_code);
}

bool target_jit_reason(struct qut_target *target, uint64_t pc, char *reason, size_t size)
{
    const struct target_machine *machine = target->machine;
    if (!machine || machine->list_count[TARGET_MACHINE_CODE] == 0)
        return false;
    const struct target_machine_blob *blob = blob_at(target, pc);
    if (blob)
        snprintf(reason, size, "code made at run time; %s", blob->reason);
    else
        say_not_covered(machine, reason, size);
    return true;
}

// ---- for readers of the frames

// The process may have gone on since it was walked: what the walk used comes first.
const void *qut_target_jit_symbols(struct qut_target *target, uint64_t address, size_t *size)
{
    struct target_machine *machine = target->machine;
    const struct target_machine_blob *best = NULL;
    for (size_t i = 0; machine && i < machine->blob_count; i++) {
        const struct target_machine_blob *blob = machine->blobs[i];
        if (blob->has_table && (!best || blob->used_moment > best->used_moment) && address >= blob->start &&
            address < blob->end && target_has_row(&blob->stored.table, address))
            best = blob;
    }
    if (!best)
        best = blob_at(target, address);
    *size = best && best->bytes ? best->size : 0;
    return best ? best->bytes : NULL;
}

bool qut_target_dex_at(struct qut_target *target, uint64_t dex_pc, uint64_t *start, uint64_t *size)
{
    struct target_machine *machine = target_machine(target);
    const struct art_jit_entry *best = NULL;
    *start = *size = 0;
    if (!machine)
        return false;
    target_machine_update(machine, TARGET_MACHINE_DEX);
    for (unsigned l = 0; l < machine->list_count[TARGET_MACHINE_DEX]; l++) {
        const struct art_jit_list *list = &machine->lists[TARGET_MACHINE_DEX][l].list;
        for (size_t i = 0; i < list->count; i++) {
            const struct art_jit_entry *entry = &list->entries[i];
            if (dex_pc - entry->symfile_address < entry->symfile_bytes && dex_pc >= entry->symfile_address &&
                (!best || entry->timestamp > best->timestamp))
                best = entry;
        }
    }
    if (!best)
        return false;
    *start = best->symfile_address;
    *size = best->symfile_bytes;
    return true;
}
