// SPDX-License-Identifier: Apache-2.0
// Code that just-in-time compilers of this process made and registered for debuggers, as walks know it: a list of
// disjoint intervals beside that of modules. It is replaced as a whole and freed like that one.
//
// A compiler frees code and puts other code in its place at any time. So an answer of the list is confirmed by memory
// of the compiler's before it counts: by its lock, by the entry that stands for the code, by the symbol file's bytes.
// What is not confirmed is pending: a rule of code that was there before is never applied.
#ifndef QUT_RUNTIME_JIT_H
#define QUT_RUNTIME_JIT_H

#include <stdatomic.h>

#include "libqut/art/jit_list.h"
#include "libqut/runtime/walk.h"

// Nobody outside libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum {
    QUT_JIT_DESCRIPTOR_BYTES = 56,
    QUT_JIT_HASHED_BYTES_MAX = 4096, // of a larger symbol file, its first and last bytes
};

// One descriptor, as it was when its list was read.
struct qut_jit_source {
    struct qut_jit_descriptor descriptor;
    struct qut_jit_entry first;              // of GDB's layout; address 0: the list was empty
    bool is_complete;                        // every entry is known, or was no symbol file
    uint8_t byte_count;                      // 0: it changed since
    uint8_t bytes[QUT_JIT_DESCRIPTOR_BYTES]; // all of it
};

// What walks know of a symbol file. Never changes while they do.
struct qut_jit_code {
    struct qut_jit_entry entry;
    uint64_t hash;
    struct qut_code code; // filled where an interval says that it is ready
};

struct qut_jit_interval {
    uintptr_t start, end;
    const struct qut_jit_code *code;
    uint32_t source;
    bool is_ready;
};

struct qut_jit_index {
    size_t source_count, count;
    const struct qut_jit_source *sources;
    const struct qut_jit_interval *items; // ascending, not overlapping
};

// NULL: no compiler is known.
extern _Atomic(const struct qut_jit_index *) qut_jit_current;

// What is known of code that lies in no module. False: nothing. Between qut_modules_enter and qut_modules_leave.
// Signal-safe.
bool qut_jit_find(uintptr_t pc, struct qut_code *code);

// Whether that still holds, and so whether what was found there counts: a system call at least. *confirmed is the
// walk's: what it confirmed last. As qut_jit_find.
bool qut_jit_confirm(uintptr_t pc, const void **confirmed);

// Whether a list has changed since it was read. As qut_jit_find.
bool qut_jit_is_stale(void);

// The lists are to be read again. QUT_JIT_DOUBT: an entry is the same, but may stand for something else. Signal-safe.
enum qut_jit_want {
    QUT_JIT_WANT = 1,
    QUT_JIT_DOUBT = 2,
};
void qut_jit_want(uint32_t want);

#pragma GCC visibility pop

#endif
