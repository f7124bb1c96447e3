// SPDX-License-Identifier: Apache-2.0
// Code that just-in-time compilers of this process made and registered for debuggers, as walks know it: a list of
// disjoint intervals beside that of modules. It is replaced as a whole and freed like that one.
//
// A compiler frees code and puts other code in its place at any time. So an answer of the list is confirmed by memory
// of the compiler's before it counts: by its lock, by the entry that stands for the code, by the symbol file's bytes.
// What is not confirmed is pending: a rule of code that was there before is never applied.
#ifndef QUT_MODULES_JIT_H
#define QUT_MODULES_JIT_H

#include <stdatomic.h>

#include "libqut/art/jit_list.h"
#include "libqut/runtime/walk.h"
#include "libqut/runtime/walking_thread.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum {
    MODULES_JIT_DESCRIPTOR_BYTES = 56,
    MODULES_JIT_WHOLE_BYTES_MAX = 4096,   // of a larger symbol file, parts are compared
    MODULES_JIT_PART_BYTES_MAX = 1 << 15, // of a larger part, samples
    MODULES_JIT_PARTS_MAX = 3,
    MODULES_JIT_NEWER_MAX = 32, // entries that walks find out about by themselves, before the list is read again
};

// What walks have found out about entries that are newer than the list they know: by the order of their coming. Only
// added to.
struct modules_jit_newer {
    _Atomic uint32_t count;
    struct modules_jit_newer_item {
        _Atomic uintptr_t entry, start, end; // code lies in [start, end) only
    } items[MODULES_JIT_NEWER_MAX];
};

// One descriptor, as it was when its list was read.
struct modules_jit_source {
    struct art_jit_descriptor descriptor;
    struct art_jit_entry first;                  // of GDB's layout; address 0: the list was empty
    struct modules_jit_newer *newer;             // of Android's layouts
    uint32_t number;                             // differs from that of every other source of every other list; never 0
    bool is_complete;                            // every entry is known, or was no symbol file
    uint8_t byte_count;                          // 0: it changed since
    uint8_t bytes[MODULES_JIT_DESCRIPTOR_BYTES]; // all of it
};

// What walks know of a symbol file. Never changes while they do.
struct modules_jit_code {
    struct art_jit_entry entry;
    // What tells the file from another one: all of it, or its headers and where its rules came from.
    struct {
        uint32_t offset, size;
    } parts[MODULES_JIT_PARTS_MAX];
    uint64_t hash;            // of these
    struct runtime_code code; // filled where an interval says that it is ready
};

struct modules_jit_interval {
    uintptr_t start, end;
    const struct modules_jit_code *code;
    const struct modules_jit_source *source;
    bool is_ready;
    bool is_early; // its table is made when its file is read again
};

struct modules_jit_index {
    size_t source_count, count;
    const struct modules_jit_source *sources;
    const struct modules_jit_interval *items; // ascending, not overlapping
};

// NULL: no compiler is known.
extern _Atomic(const struct modules_jit_index *) modules_jit_current;
static inline bool modules_jit_is_known(void)
{
    return atomic_load_explicit(&modules_jit_current, memory_order_seq_cst) != NULL;
}

// What a walk has asked memory already, and was told: that counts to its end. All 0 at its beginning. It may outlive
// the list that it is about.
struct modules_jit_asked {
    uint32_t source_number; // who was asked; 0: nobody
    union {
        uint32_t newer; // of Android's layouts: how many newer entries count
        uint32_t round; // of GDB's: which of the thread's askings it was (jit_expected.c); 0: none
    };
    const void *held; // of GDB's: what was confirmed last. Only while the list is; NULL: nothing
};
enum { MODULES_JIT_LOST = UINT32_MAX }; // of `newer`: it cannot be told

// What is known of code that lies in no module. False: nothing. *found is for modules_jit_confirm. Between
// modules_enter and modules_leave, as the next one. Signal-safe.
bool modules_jit_find(uintptr_t pc, const void **found, struct runtime_code *code);

// Whether what was found holds, and so counts: a system call for the first frame of a walk; for others none, where no
// new code has to be looked at. The list may have been replaced in between: it is the answer that was given that is
// confirmed, not the one that would be given now. `thread` as in modules_enter.
bool modules_jit_confirm(uintptr_t pc, const void *found, struct runtime_thread *thread,
                         struct modules_jit_asked *asked);
// The list that what was found is of, where that can be asked whether it still holds without what was found: Android's.
// 0: it cannot. ...
uint32_t modules_jit_list_of(const void *found);
// ... and that, of the code at pc. As modules_jit_confirm.
bool modules_jit_list_still_holds(uint32_t list, uintptr_t pc, struct modules_jit_asked *asked);
// Whether nothing is still all that is known of pc.
bool modules_jit_confirm_nothing(uintptr_t pc, const struct modules_jit_asked *asked);

// Whether a list has changed since it was read. As modules_jit_find.
bool modules_jit_is_stale(void);

// The lists are to be read again. MODULES_JIT_DOUBT: an entry is the same, but may stand for something else.
// Signal-safe.
enum modules_jit_want {
    MODULES_JIT_WANT = 1,
    MODULES_JIT_DOUBT = 2,
};
void modules_jit_want(uint32_t want);

#pragma GCC visibility pop

#endif
