// SPDX-License-Identifier: Apache-2.0
// Asking a compiler's memory whether an answer of the list in jit.h still counts. Signal-safe.
#ifndef QUT_MODULES_JIT_CONFIRM_H
#define QUT_MODULES_JIT_CONFIRM_H

#include <stddef.h>

#include "libqut/modules/jit.h"
#include "libqut/os/os.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

// An entry as it lies in this process's memory. In GDB's layout the last two are not there, in Android's first the
// last.
struct modules_jit_native_entry {
    uintptr_t next, previous, symfile;
    uint64_t symfile_bytes, timestamp;
    uint32_t seqlock;
};

static inline size_t modules_jit_native_entry_bytes(enum art_jit_layout layout)
{
    return layout == ART_JIT_GDB        ? offsetof(struct modules_jit_native_entry, timestamp)
           : layout == ART_JIT_ANDROID1 ? offsetof(struct modules_jit_native_entry, seqlock)
                                        : offsetof(struct modules_jit_native_entry, seqlock) + sizeof(uint32_t);
}

// Of GDB's layout: nothing but the entry and its file says that the list is what it was. What has to be compared, as
// os_read_parts takes it; 0: it is too much for that. `previous`: the entry's, if that is still what it was. ...
enum { MODULES_JIT_ENTRY_PARTS = 2, MODULES_JIT_CODE_PARTS_MAX = MODULES_JIT_ENTRY_PARTS + MODULES_JIT_PARTS_MAX };
unsigned modules_jit_code_parts(const struct modules_jit_source *source, const struct modules_jit_code *code,
                                uint64_t previous, struct os_part parts[MODULES_JIT_CODE_PARTS_MAX]);
// ... and whether what was read is what it was. *previous is what it is; a system call more, where it was not that.
bool modules_jit_parts_hold(const struct modules_jit_source *source, const struct modules_jit_code *code,
                            uint64_t *previous, const struct os_part *parts, unsigned count, const uint8_t *bytes);

// The same, with little memory and many calls.
bool modules_jit_code_holds(const struct modules_jit_source *source, const struct modules_jit_code *code);

// Of Android's layouts: whether an answer of the list that was read still is one. jit_newer.c
bool modules_jit_list_holds(const struct modules_jit_source *source, uintptr_t pc, struct modules_jit_asked *asked);

// As modules_jit_code_holds, by what the thread has memory for. jit_expected.c
bool modules_jit_expected_holds(struct runtime_thread *thread, const struct modules_jit_source *source,
                                const struct modules_jit_code *code, struct modules_jit_asked *asked);

// Whether its list has changed since it was read.
bool modules_jit_source_is_stale(const struct modules_jit_source *source);

// The hash of the parts of a symbol file: of a copy, or where that is NULL as it lies in memory now. False: they cannot
// be read.
bool modules_jit_hash(const struct modules_jit_code *code, const uint8_t *copy, uint64_t *hash);

#pragma GCC visibility pop

#endif
