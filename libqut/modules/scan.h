// SPDX-License-Identifier: Apache-2.0
// What is found to be loaded, on its way into the registry. All of it under work, without lock.
#ifndef QUT_MODULES_SCAN_H
#define QUT_MODULES_SCAN_H

#include "libqut/modules/registry.h"

enum { MODULES_SCAN_BUFFER_BYTES = 1 << 16, MODULES_SCAN_PAGE_BYTES = 4096 };

struct modules_found {
    struct modules_identity identity;
    char *name;
    uintptr_t dynamic; // of its dynamic section; 0: it has none
    uint64_t jit_descriptor, art_instance, hotspot_structs, hotspot_types;
    bool is_python, is_v8;
};

struct modules_scan {
    struct modules_found *found;
    size_t count, capacity;
    uint8_t *buffer; // MODULES_SCAN_BUFFER_BYTES
    // What was read of the page where the headers of the module at hand are: most have their notes there, too.
    uintptr_t page;
    size_t page_got;
    uint8_t page_bytes[MODULES_SCAN_PAGE_BYTES];
};

// Appends the module and what identifies it, unless it has no code. 0 or -ENOMEM.
int modules_scan_add(struct modules_scan *scan, const struct os_module *module);
// What was found is what there is, of modules that the loader lists (`loader`: as of when), or with NULL of those that
// it does not. Returns how many came or went, or -ENOMEM.
int modules_scan_take(struct modules_scan *scan, const struct os_generation *loader);
void modules_scan_free(struct modules_scan *scan); // what was found, not the buffer

#endif
