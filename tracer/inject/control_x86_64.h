// SPDX-License-Identifier: Apache-2.0
// One stopped thread, between inject_hijack_begin and inject_hijack_end.
#ifndef TRACER_INJECT_CONTROL_X86_64_H
#define TRACER_INJECT_CONTROL_X86_64_H

#include <sys/ptrace.h>

#include "tracer/inject/frame_x86_64.h"
#include "tracer/inject/hijack.h"

enum {
    CANCEL_SIGNAL = 32, // of glibc: pthread_cancel, setuid wait for their being handled
    SETXID_SIGNAL = 33,
};

struct hijack {
    const struct inject_program *program;
    pid_t tid;
    struct user_regs_struct as_found; // what is put back
    struct frame_context context;     // what the frame puts back: its call, if it was in one, begins anew
    uint64_t frame_sp;                // on its own stack: where the return gadget's address lies
    bool is_ours;                     // its registers are ours now
    bool in_call;                     // it stands before a system call that it must not make
    bool lost;                        // it has gone, or is let go with our registers
    int held_signal;                  // that came meanwhile
    uint8_t ucontext[FRAME_CONTEXT_BYTES];
    uint8_t state[FRAME_STATE_BYTES_MAX + 64];
};

enum hijack_event {
    HIJACK_EVENT_ENTRY,
    HIJACK_EVENT_EXIT,
    HIJACK_EVENT_STOP,
    HIJACK_EVENT_CRASH,
    HIJACK_EVENT_GONE,
    HIJACK_EVENT_LATE
};

bool inject_hijack_get_set(pid_t tid, unsigned kind, void *bytes, size_t *size);
// What puts the thread back, into its memory.
bool inject_hijack_write_frame(struct hijack *hijack, uint64_t ucontext, uint64_t state);
// Sets its registers for code that ends in rt_sigreturn if we do not end it before. argument[0] and [1] are in rbx and
// r12 as well.
bool inject_hijack_enter(struct hijack *hijack, uint64_t rip, uint64_t rsp, const uint64_t argument[6], uint64_t rax);
// Lets it run until the next event; signals in between are no events.
enum hijack_event inject_hijack_run(struct hijack *hijack, enum __ptrace_request how);
// What cannot be waited for finds its way by the frame; says so. -1.
int inject_hijack_lose(struct hijack *hijack, enum hijack_event event, struct base_error *error);
// One system call. 0: it was made, and *result is what it returned.
int inject_hijack_call(struct hijack *hijack, long number, const uint64_t argument[6], int64_t *result,
                       struct base_error *error);

#endif
