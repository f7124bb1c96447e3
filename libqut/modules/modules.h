// SPDX-License-Identifier: Apache-2.0
// Which code is where, for walks of this process: an immutable list, replaced as a whole when modules come and go or
// their tables become ready. Walkers read it without locks; what they may still read is freed only when they are done.
#ifndef QUT_MODULES_MODULES_H
#define QUT_MODULES_MODULES_H

#include <stdatomic.h>

#include "libqut/os/os.h"
#include "libqut/runtime/walk.h"
#include "libqut/runtime/walking_thread.h"

// Only libqut calls these, so calls need no detour.
#pragma GCC visibility push(hidden)

enum { MODULES_CANARY_BYTES = 8 };

struct module {
    uintptr_t start, end;     // addresses of its first to its last executable byte
    struct runtime_code code; // code.table points into what the registry owns
    // What tells it from another module that the loader put in its place.
    uintptr_t map_start, link_map;
    bool is_permanent;        // the program, the dynamic loader: nothing ever takes their place
    uint8_t canary_words;     // of 32 bits: of a checksum one, which the architecture follows that all have
    uintptr_t canary_address; // of bytes of its build-id, or its OAT checksum; 0: it cannot be confirmed
    uint8_t canary[MODULES_CANARY_BYTES];
    uint64_t code_base; // of `start`, in code space (code_space.h); 0: it has no place there
    uint32_t unlisted;  // no loader lists it, nor tells that it goes: each walk has to confirm it; 0: one does
};

struct runtime_shared_rules;
struct modules {
    uint32_t epoch;                      // differs from that of every other list; never 0
    struct os_generation loader;         // before it was listed
    struct runtime_shared_rules *shared; // NULL: none
    size_t count;
    const uintptr_t *starts; // of the items: to find one, few cache lines are read
    struct module items[];   // ascending, not overlapping
};

// NULL before qut_start and after qut_stop.
extern _Atomic(const struct modules *) modules_current;

// Of a thread that is not registered. grace.c
void modules_walk_enter_unregistered(void);
void modules_walk_leave_unregistered(void);

// Every walk stands between these two. `thread` is NULL for a thread that is not registered. Signal-safe, nests.
static inline const struct modules *modules_enter(struct runtime_thread *thread)
{
    if (thread) {
        uint32_t walking = atomic_load_explicit(&thread->walking, memory_order_relaxed);
        atomic_store_explicit(&thread->walking, walking + 1, memory_order_relaxed);
        os_fence_light();
    } else {
        modules_walk_enter_unregistered();
    }
    return atomic_load_explicit(&modules_current, memory_order_seq_cst);
}

static inline void modules_leave_outermost(struct runtime_thread *thread)
{
    uint32_t walks = atomic_load_explicit(&thread->walks, memory_order_relaxed);
    atomic_store_explicit(&thread->walks, walks + 1, memory_order_release);
    atomic_store_explicit(&thread->walking, 0, memory_order_release);
}

static inline void modules_leave(struct runtime_thread *thread)
{
    if (!thread) {
        modules_walk_leave_unregistered();
        return;
    }
    uint32_t walking = atomic_load_explicit(&thread->walking, memory_order_relaxed);
    if (walking == 1)
        modules_leave_outermost(thread);
    else
        atomic_store_explicit(&thread->walking, walking - 1, memory_order_release);
}

// Whether the loader has added and removed nothing since the list was made: then every answer of the list holds. Else
// each module has to be confirmed. Signal-safe.
static inline bool modules_up_to_date(const struct modules *modules)
{
    return os_is_generation(&modules->loader);
}

// The module at pc, or NULL. Signal-safe.
const struct module *modules_at(const struct modules *modules, uintptr_t pc);

// Whether the module is, now, what the list says. Signal-safe; a system call or two.
bool module_confirm(const struct module *module, uintptr_t pc);

// Of memory of no module: whether it is executable, as far as is known, and frame pointers may be followed through it.
// If it is not known, our thread will look what is there, and whether it is an image that no loader lists. Signal-safe,
// between enter and leave.
bool modules_is_code(uintptr_t pc);
// What is mapped is not what it was. Signal-safe.
void modules_want_mappings(void);
// Differs where what is known of code that no module has, or of a machine's, is not what it was. Signal-safe.
uint32_t modules_made_generation(void);

// Code that a virtual machine made and says all about: true, and *code is filled. Else, if there is a machine that was
// not ready, our thread will look again. Signal-safe, between enter and leave; so is the rule of a frame of it.
bool modules_machine_find(uintptr_t pc, struct runtime_code *code);
// Whether there is any, that is ready.
bool modules_machine_is_known(void);
// The same of a machine that is ready and keeps its code where no module is, in few instructions.
bool modules_machine_made(uintptr_t pc, struct runtime_code *code);
bool modules_machine_rule(const void *machine, uintptr_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                          struct arch_interpreted *interpreted);
// ... and of the frames that a call left, which most are, at once: all of a link but its key and what comes next.
// It holds now: nobody tells when code goes. Signal-safe, between enter and leave.
struct runtime_link;
enum modules_machine_told {
    MODULES_MACHINE_NOT,     // no such code
    MODULES_MACHINE_NO_LINK, // the frame has another rule, or none that a link can say
    MODULES_MACHINE_LINK,
};
enum modules_machine_told modules_machine_link(uintptr_t ra, struct runtime_link *link);
// The same of a frame that was interrupted. *is_body_only: what it says counts if it leads to a caller.
enum modules_machine_told modules_machine_interrupted_link(uintptr_t pc, struct runtime_link *link, bool *is_body_only);
// Whether a link that was told before, with this `cfa`, is what would be told now. Likewise.
bool modules_machine_holds(uintptr_t ra, uintptr_t link_cfa);
// Whether it is one by fp.
bool modules_machine_holds_by_fp(uintptr_t ra);

// A walk met code that is not in the list, or a list that is not up to date: the thread that looks after modules shall
// look. Signal-safe.
void modules_want_refresh(void);

#pragma GCC visibility pop

#endif
