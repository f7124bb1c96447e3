// SPDX-License-Identifier: Apache-2.0
// One symbol file: copied, compiled, and looked after.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/target/machine.h"

// What all symbol files that were asked for may take.
#define BLOB_BYTES_MAX ((uint64_t)1 << 30)

static bool is_relocatable(const struct target_machine_blob *blob)
{
    uint16_t type;
    if (blob->size < sizeof(Elf32_Ehdr))
        return false;
    memcpy(&type, blob->bytes + offsetof(Elf32_Ehdr, e_type), sizeof type); // both classes have it there
    return type == ET_REL;
}

static bool copy_listed(struct target_machine *machine, struct target_machine_blob *blob)
{
    enum art_jit_fault fault =
        art_jit_copy_symfile(&machine->memory, &blob->descriptor, &blob->entry, &blob->bytes, &blob->size);
    if (fault != ART_JIT_FINE) {
        snprintf(blob->reason, sizeof blob->reason, "its symbol file: %s", art_jit_fault_text(fault));
        return false;
    }
    return true;
}

// A file that is mapped as if it were its code.
static bool copy_mapped(struct target_machine *machine, struct target_machine_blob *blob)
{
    blob->size = blob->entry.symfile_bytes <= ART_JIT_SYMFILE_BYTES_MAX ? (size_t)blob->entry.symfile_bytes : 0;
    blob->bytes = malloc(blob->size ? blob->size : 1);
    if (!blob->bytes || !elf_art_read(&machine->memory, blob->entry.symfile_address, blob->bytes, blob->size)) {
        free(blob->bytes);
        blob->bytes = NULL;
        snprintf(blob->reason, sizeof blob->reason, "its symbol file cannot be read");
        return false;
    }
    return true;
}

// libLLVM registers a file before it relocates what it loaded. That is done by the time at which a walk comes to code
// of it, and the file is not asked for before.
static bool complete(struct target_machine *machine, struct target_machine_blob *blob)
{
    if (!is_relocatable(blob))
        return true;
    blob->registered = malloc(blob->size);
    if (blob->registered)
        memcpy(blob->registered, blob->bytes, blob->size);
    if (blob->registered && art_jit_complete_symfile(&machine->memory, blob->bytes, blob->size))
        return true;
    snprintf(blob->reason, sizeof blob->reason, "its symbol file: a section that was loaded cannot be read");
    return false;
}

static void compile(struct qut_target *target, struct target_machine_blob *blob)
{
    const struct qut_compile_request request = {
        .path = "", .memory = blob->bytes, .memory_size = blob->size, .flags = QUT_COMPILE_JIT};
    if (!target->compile) {
        snprintf(blob->reason, sizeof blob->reason, "code made at run time, and no compiler was given");
        return;
    }
    void *table = NULL;
    size_t table_size = 0;
    char reason[TARGET_REASON_BYTES - 32] = "";
    if (target->compile(target->compile_context, &request, &table, &table_size, reason, sizeof reason) != 0)
        snprintf(blob->reason, sizeof blob->reason, "its symbol file: %s", reason);
    else if (runtime_stored_table_adopt(table, table_size, target->arch, &blob->stored) != 0)
        snprintf(blob->reason, sizeof blob->reason, "what the compiler made is no sound table for %s",
                 target->arch->name);
    else
        blob->has_table = true;
}

struct target_machine_blob *target_machine_blob_make(struct target_machine *machine,
                                                     const struct target_machine_list *list,
                                                     const struct target_machine_code *code)
{
    if (machine->blob_count == machine->blob_capacity) {
        size_t capacity = machine->blob_capacity ? 2 * machine->blob_capacity : 16;
        struct target_machine_blob **blobs = realloc(machine->blobs, capacity * sizeof(struct target_machine_blob *));
        if (!blobs)
            return NULL;
        machine->blobs = blobs;
        machine->blob_capacity = capacity;
    }
    struct target_machine_blob *blob = calloc(1, sizeof *blob);
    if (!blob)
        return NULL;
    machine->blobs[machine->blob_count++] = blob;
    blob->entry = code->entry;
    blob->start = code->start;
    blob->end = code->end;
    blob->moment = machine->moment;
    if (list)
        blob->descriptor = list->list.descriptor;
    blob->frame_flags = list ? list->frame_flags : QUT_FRAME_JIT;
    if (machine->blob_bytes > BLOB_BYTES_MAX) {
        snprintf(blob->reason, sizeof blob->reason, "symbol files take more than 1 GiB");
        return blob;
    }
    if (!(list ? copy_listed : copy_mapped)(machine, blob))
        return blob;
    machine->blob_bytes += blob->size;
    if (complete(machine, blob))
        compile(machine->target, blob);
    return blob;
}

bool target_machine_blob_holds(struct target_machine *machine, const struct target_machine_blob *blob)
{
    if (blob->entry.address == 0)
        return true;
    if (!blob->bytes)
        return false; // perhaps this time
    if (!art_jit_entry_holds(&machine->memory, &blob->descriptor, &blob->entry))
        return false;
    if (blob->descriptor.layout != ART_JIT_GDB)
        return true;
    // Nothing in an entry tells a file from another one at the same place.
    uint8_t *now = malloc(blob->size ? blob->size : 1);
    bool holds = now && elf_art_read(&machine->memory, blob->entry.symfile_address, now, blob->size) &&
                 memcmp(now, blob->registered ? blob->registered : blob->bytes, blob->size) == 0;
    free(now);
    return holds;
}

void target_machine_blob_drop(struct target_machine *machine, struct target_machine_blob *blob)
{
    for (size_t i = machine->blob_count; !blob->bytes && i-- > 0;) {
        if (machine->blobs[i] == blob) {
            machine->blobs[i] = machine->blobs[--machine->blob_count];
            target_machine_blob_free(blob);
            return;
        }
    }
}

void target_machine_blob_free(struct target_machine_blob *blob)
{
    if (blob->has_table)
        runtime_stored_table_free(&blob->stored);
    free(blob->bytes);
    free(blob->registered);
    free(blob);
}
