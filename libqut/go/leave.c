// SPDX-License-Identifier: Apache-2.0
// Where the caller of a function is that changes stacks.
#include "libqut/go/go.h"

enum {
    WORD = 8,
    PUSHED_BYTES = 8, // by mcall, on the system stack
    // asmcgocall makes room on the system stack, at most so much with its alignment, and keeps there the goroutine; or,
    // where it was called on that stack, what sp was.
    CALL_C_BYTES = 64,
    CALL_C_ALIGN_BYTES = 15,
    // A goroutine that has not begun: above sp lie the address it returns to and four words (newproc1).
    NEW_STACK_BYTES = 64,
    SYSTEM_USED_MAX = 64 << 20, // of a system stack, between two callbacks
};

static bool read_word(const struct elf_art_memory *memory, uint64_t address, uint64_t *word)
{
    return elf_art_read(memory, address, word, sizeof *word);
}

// The caller, by a frame that ends at cfa.
static enum go_found by_cfa(const struct elf_art_memory *memory, uint64_t cfa, struct go_caller *caller)
{
    *caller = (struct go_caller){.sp = cfa};
    return read_word(memory, cfa - WORD, &caller->pc) && caller->pc ? GO_CALLER : GO_UNKNOWN;
}

static bool is_on_any(const struct go_thread *thread, uint64_t sp)
{
    return go_is_on(&thread->user, sp) || go_is_on(&thread->system, sp) || go_is_on(&thread->signal, sp);
}

// As the record of the thread's goroutine says, which may be another one by now than was left. One that was interrupted
// by morestack as its first function began stands as if it had not begun; behind that call there is code of the same
// function.
static enum go_found by_record(const struct go_thread *thread, struct go_caller *caller)
{
    if (!thread->curg)
        return GO_OUTERMOST;
    if (!go_is_on(&thread->user, thread->user_sp) || !thread->user_pc)
        return GO_UNKNOWN;
    *caller = (struct go_caller){.pc = thread->user_pc,
                                 .sp = thread->user_sp,
                                 .is_exact = thread->user.high - thread->user_sp <= NEW_STACK_BYTES};
    return GO_CALLER;
}

// Called on the goroutine's stack, and stands on the system stack now.
static enum go_found behind_change(const struct go_thread *thread, const struct elf_art_memory *memory,
                                   int32_t cfa_bytes, struct go_caller *caller)
{
    if (!thread->curg || !go_is_on(&thread->user, thread->user_sp))
        return GO_UNKNOWN;
    return by_cfa(memory, thread->user_sp + (uint64_t)(int64_t)cfa_bytes, caller);
}

static enum go_found leave_system_stack(const struct go_thread *thread, const struct elf_art_memory *memory,
                                        const struct go_frame *frame, uint64_t cfa, struct go_caller *caller)
{
    // Whoever calls it on the system stack already stands further in.
    if (frame->sp == thread->system_sp && !go_is_on(&thread->user, frame->sp))
        return behind_change(thread, memory, frame->cfa_bytes, caller);
    return is_on_any(thread, frame->sp) ? by_cfa(memory, cfa, caller) : GO_UNKNOWN;
}

static enum go_found leave_mcall(const struct go_thread *thread, const struct elf_art_memory *memory,
                                 const struct go_frame *frame, uint64_t cfa, struct go_caller *caller)
{
    if (go_is_on(&thread->user, frame->sp))
        return by_cfa(memory, cfa, caller);
    uint64_t pushed = thread->system_sp - frame->sp;
    return pushed == 0 || pushed == PUSHED_BYTES ? by_record(thread, caller) : GO_UNKNOWN;
}

static enum go_found leave_gogo(const struct go_thread *thread, const struct elf_art_memory *memory,
                                const struct go_frame *frame, uint64_t cfa, struct go_caller *caller)
{
    if (!go_is_on(&thread->user, frame->sp))
        return go_is_on(&thread->system, frame->sp) ? by_cfa(memory, cfa, caller) : GO_UNKNOWN;
    // The record's sp is taken already, and cleared; its pc stays.
    struct go_thread taken = *thread;
    taken.user_sp = frame->sp;
    bool is_taken = frame->is_exact && (thread->user_sp == 0 || thread->user_sp == frame->sp);
    return is_taken ? by_record(&taken, caller) : GO_UNKNOWN;
}

static enum go_found leave_call_c(const struct go_thread *thread, const struct elf_art_memory *memory,
                                  const struct go_frame *frame, uint64_t cfa, struct go_caller *caller)
{
    if (go_is_on(&thread->user, frame->sp))
        return by_cfa(memory, cfa, caller);
    uint64_t used = thread->system_sp - frame->sp, old_sp = 0;
    bool has_curg = used == 0;
    for (unsigned at = 0; at < CALL_C_BYTES; at += WORD) {
        uint64_t word;
        if (!read_word(memory, frame->sp + at, &word))
            return GO_UNKNOWN;
        has_curg |= thread->curg && word == thread->curg;
        uint64_t room = word - frame->sp;
        if (room >= CALL_C_BYTES && room <= CALL_C_BYTES + CALL_C_ALIGN_BYTES && room % WORD == 0)
            old_sp = word;
    }
    bool is_changed = has_curg && used <= CALL_C_BYTES + CALL_C_ALIGN_BYTES;
    if (is_changed)
        return behind_change(thread, memory, frame->cfa_bytes, caller);
    if (!old_sp || has_curg || !is_on_any(thread, old_sp))
        return GO_UNKNOWN;
    return by_cfa(memory, old_sp + (uint64_t)(int64_t)frame->cfa_bytes, caller);
}

// C code has called it on the system stack, and it goes on on the goroutine's, from what was left there when C was
// called. On the system stack stands what g0.sched.sp was before, at its sp, which is g0.sched.sp now.
static enum go_found leave_called_by_c(struct go_thread *thread, const struct elf_art_memory *memory,
                                       const struct go_frame *frame, uint64_t cfa, struct go_caller *caller)
{
    uint64_t before, here = thread->system_sp;
    bool is_user = go_is_on(&thread->user, frame->sp);
    if (!is_user && here != frame->sp) // it has not saved it yet, or has restored it
        return by_cfa(memory, cfa, caller);
    if (!read_word(memory, here, &before) || here % WORD)
        return GO_UNKNOWN;
    enum go_found found = by_cfa(memory, here + (uint64_t)(int64_t)frame->cfa_bytes, caller);
    // A thread of C code has none from before.
    bool had_one = before > here && before - here <= SYSTEM_USED_MAX;
    thread->system_sp = had_one ? before : 0;
    if (is_user) {
        thread->user_sp = cfa;
        if (!read_word(memory, cfa - WORD, &thread->user_pc))
            thread->user_pc = 0;
    }
    return found;
}

// Whoever makes a thread stays on its stack. The new one stands at the end of its own, until it calls what it is for.
static enum go_found leave_clone(const struct go_thread *thread, const struct elf_art_memory *memory,
                                 const struct go_frame *frame, uint64_t cfa, struct go_caller *caller)
{
    if (is_on_any(thread, frame->sp))
        return by_cfa(memory, cfa, caller);
    return frame->sp == thread->system.high ? GO_OUTERMOST : GO_UNKNOWN;
}

enum go_found go_leave(struct go_walk *walk, const struct elf_art_memory *memory, const struct go_frame *frame,
                       struct go_caller *caller)
{
    struct go_thread *thread = &walk->thread;
    uint64_t cfa = frame->sp + (uint64_t)(int64_t)frame->cfa_bytes;
    *caller = (struct go_caller){0};
    if (frame->cfa_bytes < WORD || frame->sp % WORD)
        return GO_UNKNOWN;
    // It gets its g now, or has given it back.
    if (thread->has_none && frame->which == QUT_SWITCH_CALLED_BY_C)
        return by_cfa(memory, cfa, caller);
    if (!thread->is_known)
        return GO_UNKNOWN;
    switch (frame->which) {
    case QUT_SWITCH_SYSTEM_STACK: return leave_system_stack(thread, memory, frame, cfa, caller);
    case QUT_SWITCH_MCALL: return leave_mcall(thread, memory, frame, cfa, caller);
    case QUT_SWITCH_MORE_STACK:
        if (go_is_on(&thread->user, frame->sp))
            return by_cfa(memory, cfa, caller);
        return frame->sp == thread->system_sp ? by_record(thread, caller) : GO_UNKNOWN;
    case QUT_SWITCH_GOGO: return leave_gogo(thread, memory, frame, cfa, caller);
    case QUT_SWITCH_CALL_C: return leave_call_c(thread, memory, frame, cfa, caller);
    case QUT_SWITCH_CALLED_BY_C: return leave_called_by_c(thread, memory, frame, cfa, caller);
    case QUT_SWITCH_SAVED:
        if (frame->kept_sp % WORD || !is_on_any(thread, frame->kept_sp))
            return GO_UNKNOWN;
        return by_cfa(memory, frame->kept_sp + (uint64_t)(int64_t)frame->cfa_bytes, caller);
    case QUT_SWITCH_NEW_THREAD: return leave_clone(thread, memory, frame, cfa, caller);
    default: return GO_UNKNOWN;
    }
}

const struct go_stack *go_other_stack(const struct go_thread *thread, uint64_t sp, uint64_t *other_sp)
{
    bool is_user = go_is_on(&thread->user, sp);
    *other_sp = is_user ? thread->system_sp : thread->user_sp;
    if (!thread->is_known || !thread->curg)
        return NULL;
    return is_user ? &thread->system : &thread->user;
}
