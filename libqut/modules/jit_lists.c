// SPDX-License-Identifier: Apache-2.0
// Which descriptors there are: one for each module that exports __jit_debug_descriptor.
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/modules/jit_registry.h"

static size_t read_own(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    return address > UINTPTR_MAX ? 0 : os_read_self((uintptr_t)address, bytes, size);
}

const struct elf_art_memory modules_jit_own_memory = {.read = read_own, .arch = &arch_native_arch};

static bool is_art(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "libart.so", 9) == 0 || strncmp(name, "libartd.so", 10) == 0;
}

void modules_jit_let_go(struct modules_jit_blob *blob)
{
    blob->retired.next = modules_jit.gone;
    modules_jit.gone = &blob->retired;
}

static void let_list_go(struct modules_jit_list_state *state)
{
    for (size_t i = 0; i < state->blob_count; i++)
        modules_jit_let_go(state->blobs[i]);
    free(state->blobs);
}

static struct modules_jit_list_state *find(struct modules_jit_list_state *lists, size_t count, uint64_t address)
{
    for (size_t i = 0; i < count; i++)
        if (lists[i].address == address)
            return &lists[i];
    return NULL;
}

bool modules_jit_take_records(void)
{
    const struct modules_registry *registry = &modules_registry;
    size_t count = 0, fresh_count = 0;
    for (size_t i = 0; i < registry->record_count; i++)
        count += registry->records[i]->jit_descriptor != 0;
    if (count == 0 && modules_jit.list_count == 0)
        return true;
    struct modules_jit_list_state *lists = calloc(count + 1, sizeof *lists);
    if (!lists)
        return false;
    count = 0;
    for (size_t i = 0; i < registry->record_count; i++) {
        uint64_t address = registry->records[i]->jit_descriptor;
        if (address == 0 || find(lists, count, address))
            continue;
        struct modules_jit_list_state *known = find(modules_jit.lists, modules_jit.list_count, address);
        fresh_count += !known;
        lists[count++] = known ? *known
                               : (struct modules_jit_list_state){.address = address,
                                                                 .source.descriptor.address = address,
                                                                 .is_art = is_art(registry->records[i]->name)};
    }
    bool is_same = fresh_count == 0 && count == modules_jit.list_count;
    os_lock(&modules_registry.lock);
    for (size_t i = 0; i < modules_jit.list_count; i++)
        if (!find(lists, count, modules_jit.lists[i].address))
            let_list_go(&modules_jit.lists[i]);
    free(modules_jit.lists);
    modules_jit.lists = lists;
    modules_jit.list_count = count;
    if (!is_same) {
        modules_jit.waiting_next = modules_jit.waiting_count = 0;
        modules_jit.is_unpublished = true;
    }
    os_unlock(&modules_registry.lock);
    if (!is_same)
        atomic_fetch_or_explicit(&modules_jit.wanted, MODULES_JIT_WANT, memory_order_acq_rel);
    return true;
}

void modules_jit_drop(void)
{
    for (size_t i = 0; i < modules_jit.list_count; i++)
        let_list_go(&modules_jit.lists[i]);
    free(modules_jit.lists);
    free(modules_jit.waiting);
    modules_jit.lists = NULL;
    modules_jit.waiting = NULL;
    modules_jit.list_count = modules_jit.waiting_next = modules_jit.waiting_count = 0;
    modules_jit.due_ns = 0;
    modules_jit.fault_streak = 0;
    modules_jit_unpublish();
}

void modules_jit_fill_stats(struct qut_stats *stats)
{
    stats->jit_lists = modules_jit.list_count;
    for (size_t i = 0; i < modules_jit.list_count; i++) {
        const struct modules_jit_list_state *state = &modules_jit.lists[i];
        stats->jit_list_faults += state->fault != ART_JIT_FINE;
        stats->jit_entries += state->blob_count;
        for (size_t j = 0; j < state->blob_count; j++) {
            const struct modules_jit_blob *blob = state->blobs[j];
            stats->jit_pending += blob->state == MODULES_JIT_WAITS || blob->state == MODULES_JIT_EARLY;
            stats->jit_not_elf += blob->state == MODULES_JIT_NOT_ELF;
            stats->jit_not_read += blob->state == MODULES_JIT_NOT_READ;
            stats->jit_no_table += blob->state == MODULES_JIT_NO_TABLE;
            stats->jit_table_bytes += blob->state == MODULES_JIT_READY ? blob->table.header->file_size : 0;
        }
    }
}
