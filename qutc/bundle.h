// SPDX-License-Identifier: Apache-2.0
// Bundles (.qutz): writes them, and reads them whatever they hold. Specification: formats/qut_bundle.md.
#ifndef QUTC_BUNDLE_H
#define QUTC_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "formats/qut_bundle.h"

struct qutc_bundle_item {
    const char *name;
    const uint8_t *table; // passes qut_table_check; aligned as tables are
    size_t size;
};

// Sorts the items by name. *bytes is allocated with malloc. Refuses names that no bundle may have, and equal ones.
int qutc_bundle_pack(struct qutc_bundle_item *items, size_t count, uint8_t **bytes, size_t *size,
                     struct base_error *error);

struct qutc_bundle {
    const uint8_t *bytes;
    const struct qut_bundle_entry *entries;
    const char *names;
    uint32_t entry_count;
};

// Checks everything but the frames. The bytes (aligned to 8) must stay as long as the bundle is used.
int qutc_bundle_open(struct qutc_bundle *bundle, const void *bytes, size_t size, struct base_error *error);

void qutc_bundle_name(const struct qutc_bundle *bundle, uint32_t index, char name[QUT_BUNDLE_NAME_MAX_BYTES + 1]);

// One table, checked, and found to be what its entry says. *table is aligned as tables need it; free().
int qutc_bundle_unpack(const struct qutc_bundle *bundle, uint32_t index, uint8_t **table, size_t *size,
                       struct base_error *error);

#endif
