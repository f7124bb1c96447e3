// SPDX-License-Identifier: Apache-2.0
// Which code is where, for walks of this process: an immutable list, replaced as a whole when modules come and go or
// their tables become ready. Walkers read it without locks; what they may still read is freed only when they are done.
#ifndef QUT_RUNTIME_MODULES_H
#define QUT_RUNTIME_MODULES_H

#include <stdatomic.h>

#include "libqut/os/os.h"
#include "libqut/runtime/thread.h"
#include "libqut/runtime/walk.h"

// Nobody outside libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum { QUT_CANARY_BYTES = 8 };

struct qut_module {
    uintptr_t start, end; // addresses of its first to its last executable byte
    struct qut_code code; // code.table points into what the registry owns
    // What tells it from another module that the loader put in its place.
    uintptr_t map_start, link_map;
    bool is_permanent;        // the program, the dynamic loader: nothing ever takes their place
    uintptr_t canary_address; // of bytes of its build-id, or its OAT checksum; 0: it cannot be confirmed
    uint8_t canary[QUT_CANARY_BYTES];
    uint64_t code_base; // of `start`, in code space (code_space.h); 0: it has no place there
};

struct qut_shared_rules;
struct qut_modules {
    uint32_t epoch;                  // differs from that of every other list; never 0
    struct qut_os_generation loader; // before it was listed
    struct qut_shared_rules *shared; // NULL: none
    size_t count;
    struct qut_module items[]; // ascending, not overlapping
};

// NULL before qut_start and after qut_stop.
extern _Atomic(const struct qut_modules *) qut_modules_current;

// Of a thread that is not registered. grace.c
void qut_walk_enter_unregistered(void);
void qut_walk_leave_unregistered(void);

// Every walk stands between these two. `thread` is NULL for a thread that is not registered. Signal-safe, nests.
static inline const struct qut_modules *qut_modules_enter(struct qut_thread *thread)
{
    if (thread) {
        uint32_t walking = atomic_load_explicit(&thread->walking, memory_order_relaxed);
        atomic_store_explicit(&thread->walking, walking + 1, memory_order_relaxed);
        qut_os_fence_light();
    } else {
        qut_walk_enter_unregistered();
    }
    return atomic_load_explicit(&qut_modules_current, memory_order_seq_cst);
}

static inline void qut_modules_leave(struct qut_thread *thread)
{
    if (!thread) {
        qut_walk_leave_unregistered();
        return;
    }
    uint32_t walking = atomic_load_explicit(&thread->walking, memory_order_relaxed);
    if (walking == 1) {
        uint32_t walks = atomic_load_explicit(&thread->walks, memory_order_relaxed);
        atomic_store_explicit(&thread->walks, walks + 1, memory_order_release);
    }
    atomic_store_explicit(&thread->walking, walking - 1, memory_order_release);
}

// Whether the loader has added and removed nothing since the list was made: then every answer of the list holds. Else
// each module has to be confirmed. Signal-safe.
static inline bool qut_modules_up_to_date(const struct qut_modules *modules)
{
    return qut_os_is_generation(&modules->loader);
}

// The module at pc, or NULL. Signal-safe.
const struct qut_module *qut_modules_find(const struct qut_modules *modules, uintptr_t pc);

// Whether the module is, now, what the list says. Signal-safe; a system call or two.
bool qut_module_confirm(const struct qut_module *module, uintptr_t pc);

// A walk met code that is not in the list, or a list that is not up to date: the thread that looks after modules shall
// look. Signal-safe.
void qut_modules_want_refresh(void);

#pragma GCC visibility pop

#endif
