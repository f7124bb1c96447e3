// SPDX-License-Identifier: Apache-2.0
// What virtual machines of this process say about code that has no table: HotSpot's (machine_code.c) and ART's
// (art_code.c).
#ifndef QUT_MODULES_MACHINE_CODE_H
#define QUT_MODULES_MACHINE_CODE_H

#include "libqut/art/jit_code.h"
#include "libqut/modules/registry.h"

#pragma GCC visibility push(hidden)

// What runtime_code.machine points to, as the first field of something that the kind knows.
enum modules_machine_kind { MODULES_MACHINE_HOTSPOT, MODULES_MACHINE_ART };
struct modules_machine {
    enum modules_machine_kind kind;
};

// As modules_machine_find and modules_machine_rule.
bool modules_art_is_known(void);
bool modules_art_find(uintptr_t pc, struct runtime_code *code);
bool modules_art_rule(const struct modules_machine *machine, uintptr_t pc, enum arch_pc_kind kind,
                      struct qut_rule *rule);

// Where the runtime counts what it has made (art_jit_made_at), if it has made the code at pc; 0: it is not known. It
// may be elsewhere as soon as modules_made_generation differs.
uintptr_t modules_art_made_at(uintptr_t pc);

// Where Android's runtime keeps a return address of this thread that method tracing has exchanged
// (libqut/art/traced.h). sp as it is behind the return. Signal-safe.
bool modules_art_true_return(uint64_t sp, uint64_t *pc);

// Mappings, ascending, as our thread reads them. The caches are taken when all were seen.
enum { MODULES_ART_CACHES_MAX = 4 }; // a process's own, and that of the one it was forked from
enum modules_art_line { MODULES_ART_NONE = 0, MODULES_ART_NAMED, MODULES_ART_NAMELESS };
struct modules_art_reading {
    enum modules_art_line last; // the mapping before
    bool last_is_data;
    uint64_t last_end, data_start;
    size_t count;
    struct art_jit_cache items[MODULES_ART_CACHES_MAX];
};
void modules_art_see(struct modules_art_reading *reading, const struct os_map_line *line);
void modules_art_take(const struct modules_art_reading *reading);
void modules_art_drop(void); // under lock

#pragma GCC visibility pop

#endif
