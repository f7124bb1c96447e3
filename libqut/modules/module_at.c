// SPDX-License-Identifier: Apache-2.0
// What the registry knows of a module, for people.
#include <stdio.h>
#include <string.h>

#include "libqut/modules/registry.h"

// The one that begins last before it, as in the list that walks use. Under lock.
static const struct modules_record *record_at(const struct modules_registry *registry, uintptr_t address)
{
    size_t low = 0, high = registry->record_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (registry->records[middle]->identity.start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct modules_record *record = low ? registry->records[low - 1] : NULL;
    return record && address < record->identity.end ? record : NULL;
}

static const char *reason_of(const struct modules_record *record)
{
    switch (record->state) {
    case RUNTIME_CODE_PENDING: return "its table is being made";
    case RUNTIME_CODE_NO_TABLE: return record->reason;
    default: return "";
    }
}

static void describe(const struct modules_record *record, struct qut_loaded_module *module)
{
    const struct modules_identity *identity = &record->identity;
    module->start = identity->start;
    module->end = identity->end;
    module->load_bias = identity->load_bias;
    module->build_id_size = identity->build_id_size;
    memcpy(module->build_id, identity->build_id, identity->build_id_size);
    module->has_table = record->state == RUNTIME_CODE_READY;
    snprintf(module->reason, sizeof module->reason, "%s", reason_of(record));
    snprintf(module->path, sizeof module->path, "%s", record->name);
}

static_assert(sizeof((struct modules_record *)0)->reason <= sizeof((struct qut_loaded_module *)0)->reason,
              "none is cut");
static_assert((int)ELF_BUILD_ID_MAX <= (int)sizeof((struct qut_loaded_module *)0)->build_id, "none is cut");

int qut_module_at(uintptr_t address, struct qut_loaded_module *module, size_t size)
{
    struct modules_registry *registry = &modules_registry;
    struct qut_loaded_module found = {0};
    os_lock(&registry->lock);
    const struct modules_record *record = record_at(registry, address);
    if (record)
        describe(record, &found);
    os_unlock(&registry->lock);
    memset(module, 0, size);
    memcpy(module, &found, size < sizeof found ? size : sizeof found);
    return record != NULL;
}
