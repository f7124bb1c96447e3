// SPDX-License-Identifier: Apache-2.0
// The true stack of calls, from calls and returns alone: reads no unwind information.
//
// A call pushes what its callee must give back: the stack pointer before the call (the CFA), where the call returns to,
// and the values of the tracked registers, all of which calls preserve on every architecture here. A return to the top
// entry's address with its stack pointer pops it; so does everything that leaves the stack pointer outside of it
// (longjmp, exceptions). A signal pushes two entries: the interrupted code, which the trampoline gives back, and the
// trampoline, which the handler returns to.
//
// Not followed: stacks that the program switches itself (makecontext). Threads but the first are not judged.
#ifndef TESTS_PROOF_ORACLE_SHADOW_H
#define TESTS_PROOF_ORACLE_SHADOW_H

#include "tests/proof/oracle/guest.h"
#include "tests/proof/oracle/instruction.h"

enum shadow_kind {
    SHADOW_CALL,
    SHADOW_SIGNAL, // the running code, at this depth, is a signal trampoline; `ra` is where it was interrupted
};

struct shadow_frame {
    uint64_t cfa; // of the running code at this depth
    uint64_t ra;
    uint64_t tracked[QUT_TRACKED_MAX]; // the caller's
    enum shadow_kind kind;
    bool other_stack; // SIGNAL: the handler runs on a stack of its own
    bool is_thunk;    // i386: exists to change one of the tracked registers
};

// What the instruction before left behind.
struct shadow_before {
    enum instruction_kind kind; // of it
    uint64_t pc, next_pc, sp;   // next_pc: of the instruction behind it in memory; sp: before it ran
};

// The instruction behind a call: where longjmp can lead.
struct shadow_site {
    uint64_t pc; // 0: empty
    uint64_t sp; // before the call, the last time
    size_t depth;
};

struct shadow {
    struct guest *guest;
    struct shadow_frame *frames; // the top is frames[depth - 1]; with depth 0 the running code has no caller
    size_t depth, capacity;
    struct shadow_before before;
    struct shadow_site *sites; // hash table
    size_t site_count, site_capacity;
    bool ready, overflow;
    // Facts for the report.
    size_t deepest;
    uint64_t calls, returns, unwound, signals, signal_returns, signal_mismatches;
};

void shadow_open(struct shadow *shadow, struct guest *guest);

// Before the instruction at regs->pc runs.
void shadow_arrive(struct shadow *shadow, const struct arch_frame_regs *regs, enum instruction_kind kind,
                   uint64_t next_pc);

static inline const struct shadow_frame *shadow_top(const struct shadow *shadow)
{
    return shadow->depth ? &shadow->frames[shadow->depth - 1] : NULL;
}

#endif
