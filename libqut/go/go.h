// SPDX-License-Identifier: Apache-2.0
// Stacks of Go's runtime, and how it changes between them. A thread (m) has a system stack (that of its g0), one for
// signal handlers (gsignal), and runs goroutines (curg), each on a stack of its own. Functions that change stacks have
// rows of the kind STACK_SWITCH (enum qut_stack_switch); where their callers are stands in the runtime's records.
//
//   g       a goroutine's record: its stack, its thread, and `sched`, what it goes on with
//   m       a thread's record: g0, gsignal, curg
//   g0.sched.sp    where the system stack is used from, when a goroutine changes to it
//   curg.sched     what the goroutine left, when it did
//
// Records are read once, of a thread that stands still; everything else is words of its stacks. Nothing is believed
// that does not agree: g, m and their stacks name each other, and a frame is taken for one behind a change only where
// sp says so. No allocation; loops are bounded.
#ifndef QUT_GO_GO_H
#define QUT_GO_GO_H

#include "formats/qut_rule.h"
#include "libqut/elf/image_memory.h"

enum { GO_VERSION_BYTES = 32 };

// Offsets of fields, by version.
struct go_layout {
    bool is_known;
    uint16_t g_m, g_sched, m_procid, m_gsignal, m_curg; // g.stack is at 0, and so are m.g0 and sched.sp; sched.pc at 8
};

// "go1.19.8" and what may follow, with its length. False: nothing is known of that version.
bool go_layout_of(const char *version, size_t size, struct go_layout *layout);

// The version that a program carries (.go.buildinfo), in the `size` bytes of data from address on. Returns its length,
// at most GO_VERSION_BYTES; 0: it is not there. One that is longer is cut.
size_t go_version_in(const struct elf_art_memory *memory, const uint8_t *bytes, size_t size,
                     char version[GO_VERSION_BYTES]);

struct go_stack {
    uint64_t low, high; // high is exclusive; both 0: there is none
};

// What a thread's records say.
struct go_thread {
    bool is_known;
    bool has_none; // it has no g, as far as can be seen: a thread of C code's, which is on its one stack
    uint64_t curg; // 0: it runs no goroutine
    struct go_stack system, signal, user;
    uint64_t system_sp;        // g0.sched.sp
    uint64_t user_sp, user_pc; // curg.sched
};

// By the thread's pointer (x86-64: fs), below which g is kept. False: there are no records that agree.
bool go_thread_read(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t thread_pointer,
                    struct go_thread *thread);

// Of a thread that sleeps, whose pointer nobody has asked for: words of its stack name its records. What names them has
// to have the thread's number, as the process knows it, and a stack that sp is on. *g: 0, or where they were found
// before, which is kept there. Some hundred words are looked at.
bool go_thread_find(const struct elf_art_memory *memory, const struct go_layout *layout, uint64_t sp, uint32_t tid,
                    uint64_t *g, struct go_thread *thread);

// What a walk has come to: begins as the records are, and changes where it passes a callback from C.
struct go_walk {
    struct go_thread thread;
};

// A frame of a function that changes stacks.
struct go_frame {
    enum qut_stack_switch which;
    int32_t cfa_bytes; // of its row: from sp, or from the register that keeps it, on the stack it was called on
    uint64_t sp;
    uint64_t kept_sp; // SAVED: the register's value
    bool is_exact;    // it was interrupted; else it has called
};

enum go_found {
    GO_UNKNOWN = 0, // nothing is certain
    GO_CALLER,
    GO_OUTERMOST, // the thread has left its goroutine: nothing comes behind
};

struct go_caller {
    uint64_t pc, sp;
    bool is_exact; // pc is where it goes on, not behind a call: a goroutine that has not begun
};

enum go_found go_leave(struct go_walk *walk, const struct elf_art_memory *memory, const struct go_frame *frame,
                       struct go_caller *caller);

// The stack that a walk from sp may go on with: the goroutine's, or the system stack where sp is on the goroutine's.
// *other_sp: where, as the records say; of the goroutine's it may be older than what is there. NULL: there is none.
const struct go_stack *go_other_stack(const struct go_thread *thread, uint64_t sp, uint64_t *other_sp);

static inline bool go_is_on(const struct go_stack *stack, uint64_t sp)
{
    return sp >= stack->low && sp < stack->high;
}

#endif
