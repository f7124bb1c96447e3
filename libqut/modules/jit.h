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

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum {
    MODULES_JIT_DESCRIPTOR_BYTES = 56,
    MODULES_JIT_WHOLE_BYTES_MAX = 4096,   // of a larger symbol file, parts are compared
    MODULES_JIT_PART_BYTES_MAX = 1 << 15, // of a larger part, samples
    MODULES_JIT_PARTS_MAX = 3,
};

// One descriptor, as it was when its list was read.
struct modules_jit_source {
    struct art_jit_descriptor descriptor;
    struct art_jit_entry first;                  // of GDB's layout; address 0: the list was empty
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

// What is known of code that lies in no module. False: nothing. *found is the walk's: what was found last, and whether
// it is confirmed already. Between modules_enter and modules_leave, as the next one. Signal-safe.
bool modules_jit_find(uintptr_t pc, const void **found, struct runtime_code *code);

// Whether what was found holds, and so counts: a system call at least, where it is not confirmed. The list may have
// been replaced in between: it is the answer that was given that is confirmed, not the one that would be given now.
bool modules_jit_confirm(uintptr_t pc, const void **found);
// Whether nothing is still all that is known of pc.
bool modules_jit_confirm_nothing(uintptr_t pc);

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
