// SPDX-License-Identifier: Apache-2.0
// The method that a dex pc lies in: bytecode of a process, a core file or a snapshot.
#ifndef TRACER_MANAGED_DEX_AT_H
#define TRACER_MANAGED_DEX_AT_H

#include <qut/target.h>

#include "base/error.h"
#include "base/vector.h"
#include "libqut/elf/elf_head.h"

struct managed_dex_source;   // dex files, in a file or in memory
struct managed_dex_failures; // of one module

struct managed_dex {
    struct qut_target *target; // may become another one of the same process
    BASE_VECTOR(struct managed_dex_source) sources;
    BASE_VECTOR(struct managed_dex_failures) failures;
    bool no_memory; // for a name that there is, or may be
};

struct managed_dex_place {
    const char *entry;     // of the archive that the dex file is an entry of, until managed_dex_free; else NULL
    uint64_t entry_offset; // in the archive
    uint64_t entry_start;  // where that is in memory
    char *method;          // allocated; NULL: not known
    uint64_t start, end;   // addresses of the method's bytecode
};

// Looks for the dex file in what is mapped there, else in memory. module: what is mapped at dex_pc, or NULL. False:
// there is none, and *error says why; its reason is left as it is where all that is wrong is that there is none.
bool managed_dex_at(struct managed_dex *dex, const struct qut_module_info *module, uint64_t dex_pc,
                    struct managed_dex_place *place, struct base_error *error);

void managed_dex_free(struct managed_dex *dex);

// The ELF header of an image that is mapped from `start` on. False where there is none to be read.
bool managed_head_in_memory(struct qut_target *target, uint64_t start, struct elf_head *head);

#endif
