// SPDX-License-Identifier: Apache-2.0
// Which descriptors there are: one for each module that exports __jit_debug_descriptor.
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/runtime/jit_registry.h"

static size_t read_own(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    return address > UINTPTR_MAX ? 0 : qut_os_read_self((uintptr_t)address, bytes, size);
}

const struct qut_art_memory qut_jit_own_memory = {.read = read_own, .arch = &qut_native_arch};

static bool is_art(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strncmp(name, "libart.so", 9) == 0 || strncmp(name, "libartd.so", 10) == 0;
}

void qut_jit_let_go(struct qut_jit_blob *blob)
{
    blob->retired.next = qut_jit.gone;
    qut_jit.gone = &blob->retired;
}

static void let_list_go(struct qut_jit_list_state *state)
{
    for (size_t i = 0; i < state->blob_count; i++)
        qut_jit_let_go(state->blobs[i]);
    free(state->blobs);
}

static struct qut_jit_list_state *find(struct qut_jit_list_state *lists, size_t count, uint64_t address)
{
    for (size_t i = 0; i < count; i++)
        if (lists[i].address == address)
            return &lists[i];
    return NULL;
}

bool qut_jit_take_records(void)
{
    const struct qut_registry *registry = &qut_registry;
    size_t count = 0, fresh_count = 0;
    for (size_t i = 0; i < registry->record_count; i++)
        count += registry->records[i]->jit_descriptor != 0;
    if (count == 0 && qut_jit.list_count == 0)
        return true;
    struct qut_jit_list_state *lists = calloc(count + 1, sizeof *lists);
    if (!lists)
        return false;
    count = 0;
    for (size_t i = 0; i < registry->record_count; i++) {
        uint64_t address = registry->records[i]->jit_descriptor;
        if (address == 0 || find(lists, count, address))
            continue;
        struct qut_jit_list_state *known = find(qut_jit.lists, qut_jit.list_count, address);
        fresh_count += !known;
        lists[count++] = known ? *known
                               : (struct qut_jit_list_state){.address = address,
                                                             .source.descriptor.address = address,
                                                             .is_art = is_art(registry->records[i]->name)};
    }
    bool is_same = fresh_count == 0 && count == qut_jit.list_count;
    qut_os_lock(&qut_registry.lock);
    for (size_t i = 0; i < qut_jit.list_count; i++)
        if (!find(lists, count, qut_jit.lists[i].address))
            let_list_go(&qut_jit.lists[i]);
    free(qut_jit.lists);
    qut_jit.lists = lists;
    qut_jit.list_count = count;
    if (!is_same) {
        qut_jit.waiting_next = qut_jit.waiting_count = 0;
        qut_jit.is_unpublished = true;
    }
    qut_os_unlock(&qut_registry.lock);
    if (!is_same)
        atomic_fetch_or_explicit(&qut_jit.wanted, QUT_JIT_WANT, memory_order_acq_rel);
    return true;
}

void qut_jit_drop(void)
{
    for (size_t i = 0; i < qut_jit.list_count; i++)
        let_list_go(&qut_jit.lists[i]);
    free(qut_jit.lists);
    free(qut_jit.waiting);
    qut_jit.lists = NULL;
    qut_jit.waiting = NULL;
    qut_jit.list_count = qut_jit.waiting_next = qut_jit.waiting_count = 0;
    qut_jit.due_ns = 0;
    qut_jit.fault_streak = 0;
    qut_jit_unpublish();
}

void qut_jit_fill_stats(struct qut_stats *stats)
{
    stats->jit_lists = qut_jit.list_count;
    for (size_t i = 0; i < qut_jit.list_count; i++) {
        const struct qut_jit_list_state *state = &qut_jit.lists[i];
        stats->jit_list_faults += state->fault != QUT_JIT_FINE;
        stats->jit_entries += state->blob_count;
        for (size_t j = 0; j < state->blob_count; j++) {
            const struct qut_jit_blob *blob = state->blobs[j];
            stats->jit_pending += blob->state == QUT_JIT_WAITS || blob->state == QUT_JIT_EARLY;
            stats->jit_not_elf += blob->state == QUT_JIT_NOT_ELF;
            stats->jit_not_read += blob->state == QUT_JIT_NOT_READ;
            stats->jit_no_table += blob->state == QUT_JIT_NO_TABLE;
            stats->jit_table_bytes += blob->state == QUT_JIT_READY ? blob->table.header->file_size : 0;
        }
    }
}
