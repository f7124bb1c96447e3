// SPDX-License-Identifier: Apache-2.0
// Our thread: where V8 is. What it says of itself does not change, so handlers have one answer as long as the module is
// there.
#include <stdlib.h>
#include <string.h>

#include "libqut/elf/dynamic_symbol.h"
#include "libqut/javascript/inside.h"
#include "libqut/modules/own_memory.h"

_Atomic(struct javascript_known *) javascript_known;

static uintptr_t found; // the dynamic section of what was looked at; under work

static uint64_t find_symbol(void *context, const char *name)
{
    const struct modules_record *record = context;
    uint64_t bytes;
    return elf_art_find_sized_symbol(&modules_own_memory, record->identity.load_bias, record->v8_dynamic, name, &bytes);
}

static void free_known(struct modules_retired *retired)
{
    free((struct javascript_known *)retired);
}
static_assert(offsetof(struct javascript_known, retired) == 0, "freed by its node");

static void replace(struct javascript_known *known)
{
    struct javascript_known *old = atomic_exchange_explicit(&javascript_known, known, memory_order_seq_cst);
    modules_registry_retire(old ? &old->retired : NULL);
}

void javascript_forget(void)
{
    free(atomic_exchange_explicit(&javascript_known, NULL, memory_order_seq_cst));
    found = 0;
    functions_table_forget(&javascript_functions);
    functions_rooms_forget(&javascript_rooms);
}

// NULL: it is none that is known.
static struct javascript_known *read_machine(struct modules_record *record)
{
    const struct v8_symbols symbols = {find_symbol, record};
    const char *missing;
    struct javascript_known *known = calloc(1, sizeof *known);
    if (known && v8_layout_read(&symbols, &modules_own_memory, &known->layout, &missing) &&
        functions_table_prepare(&javascript_functions) && functions_rooms_prepare(&javascript_rooms)) {
        known->retired = (struct modules_retired){.free = free_known};
        memcpy(known->canary, record->identity.canary, sizeof known->canary);
        return known;
    }
    free(known);
    return NULL;
}

void javascript_look(void)
{
    const struct modules_registry *registry = &modules_registry;
    struct modules_record *record = NULL;
    for (size_t i = 0; i < registry->record_count && !record; i++)
        if (registry->records[i]->v8_dynamic)
            record = registry->records[i];
    uintptr_t now_found = record ? record->v8_dynamic : 0;
    if (now_found == found)
        return;
    found = now_found;
    struct javascript_known *known = record ? read_machine(record) : NULL;
    if (known || atomic_load_explicit(&javascript_known, memory_order_relaxed))
        replace(known);
}
