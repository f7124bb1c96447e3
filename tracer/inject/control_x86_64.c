// SPDX-License-Identifier: Apache-2.0
// The thread: its registers, and how it is let run.
#include "tracer/inject/hijack.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <elf.h>

#include "libqut/os/os.h"
#include "tracer/inject/control_x86_64.h"

enum {
    RED_ZONE_BYTES = 128,
    SYSCALL_BYTES = 2,        // of the instruction
    MOVE_BYTES = 5,           // of one that puts a number into eax
    STACK_LEAST_BYTES = 2048, // of the thread's own, below what is written there
    YIELDS = 2000,
    NAP_US = 50,
    PATIENCE_NS = 1000000000,
    KERNEL_RESTARTS_FIRST = 512, // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND; ERESTART_RESTARTBLOCK
    KERNEL_RESTARTS_LAST = 516,
};

// ---- the thread's registers

bool inject_hijack_get_set(pid_t tid, unsigned kind, void *bytes, size_t *size)
{
    struct iovec set = {bytes, *size};
    if (ptrace(PTRACE_GETREGSET, tid, kind, &set) != 0)
        return false;
    *size = set.iov_len;
    return true;
}

static bool put_set(pid_t tid, unsigned kind, void *bytes, size_t size)
{
    struct iovec set = {bytes, size};
    return ptrace(PTRACE_SETREGSET, tid, kind, &set) == 0;
}

static bool set_mask(pid_t tid, uint64_t mask)
{
    return ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask) == 0;
}

static uint64_t status_bits(pid_t pid, pid_t tid, const char *field)
{
    char path[64], line[256];
    unsigned long long bits = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)tid);
    FILE *file = fopen(path, "re");
    size_t length = strlen(field);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, field, length) == 0 && line[length] == ':')
            bits = strtoull(line + length + 1, NULL, 16);
    if (file)
        fclose(file);
    return bits;
}

// Where the kernel would make its system call anew, so does the frame.
static void settle_frame(struct hijack *hijack)
{
    const struct user_regs_struct *found = &hijack->as_found;
    long result = (long)found->rax;
    if ((long)found->orig_rax < 0 || result > -KERNEL_RESTARTS_FIRST || result < -KERNEL_RESTARTS_LAST)
        return;
    hijack->context.registers.rax =
        (uint64_t)inject_hijack_call_number(hijack->program->pid, (long)found->orig_rax, found->rip);
    hijack->context.registers.rip -= SYSCALL_BYTES;
}

void inject_hijack_settle(pid_t pid, pid_t tid)
{
    struct user_regs_struct found;
    size_t size = sizeof found;
    uint64_t mask;
    if (!inject_hijack_get_set(tid, NT_PRSTATUS, &found, &size) || size != sizeof found || (long)found.orig_rax < 0 ||
        (long)found.rax != -EINTR || ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0 ||
        (status_bits(pid, tid, "SigPnd") | status_bits(pid, tid, "ShdPnd")) & ~mask)
        return;
    found.rax = found.orig_rax;
    found.rip -= SYSCALL_BYTES;
    found.orig_rax = (uint64_t)-1;
    put_set(tid, NT_PRSTATUS, &found, sizeof found);
}

bool inject_hijack_write_frame(struct hijack *hijack, uint64_t ucontext, uint64_t state)
{
    inject_frame_write(&hijack->context, state, hijack->ucontext, hijack->state);
    return inject_write(hijack->program, state, hijack->state, hijack->context.state_bytes + 4) &&
           inject_write(hijack->program, ucontext, hijack->ucontext, sizeof hijack->ucontext);
}

// On the thread's own stack, below what it uses, as the kernel would.
static bool write_first_frame(struct hijack *hijack)
{
    uint64_t top = hijack->as_found.rsp - RED_ZONE_BYTES;
    uint64_t state = (top - hijack->context.state_bytes - 4) & ~(uint64_t)63;
    uint64_t ucontext = (state - FRAME_CONTEXT_BYTES) & ~(uint64_t)15;
    hijack->frame_sp = ucontext - 8;
    const struct target_map *map = target_maps_find(&hijack->program->target->maps, hijack->as_found.rsp);
    return map && map->writable && map->start + STACK_LEAST_BYTES <= hijack->frame_sp &&
           inject_write(hijack->program, hijack->frame_sp, &hijack->program->return_gadget, 8) &&
           inject_hijack_write_frame(hijack, ucontext, state);
}

struct hijack *inject_hijack_begin(const struct inject_program *program, pid_t tid, struct base_error *error)
{
    struct hijack *hijack = calloc(1, sizeof *hijack);
    if (!hijack) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
        return NULL;
    }
    hijack->program = program;
    hijack->tid = tid;
    size_t size = sizeof hijack->as_found;
    hijack->context.state_bytes = sizeof hijack->context.state;
    if (!inject_hijack_get_set(tid, NT_PRSTATUS, &hijack->as_found, &size) || size != sizeof hijack->as_found ||
        !inject_hijack_get_set(tid, NT_X86_XSTATE, hijack->context.state, &hijack->context.state_bytes) ||
        hijack->context.state_bytes >= sizeof hijack->context.state ||
        ptrace(PTRACE_GETSIGMASK, tid, sizeof hijack->context.mask, &hijack->context.mask) != 0 ||
        ptrace(PTRACE_SETOPTIONS, tid, NULL, PTRACE_O_TRACESYSGOOD) != 0) {
        base_fail(error, BASE_ERR_IO, "", 0, "thread %d: its registers cannot be read: %s", (int)tid, strerror(errno));
        free(hijack);
        return NULL;
    }
    hijack->context.registers = hijack->as_found;
    settle_frame(hijack);
    if (!write_first_frame(hijack)) {
        base_fail(error, BASE_ERR_LIMIT, "", 0, "thread %d: its stack is full", (int)tid);
        free(hijack);
        return NULL;
    }
    return hijack;
}

// ---- running

static bool is_crash(int signal_number)
{
    return signal_number == SIGSEGV || signal_number == SIGBUS || signal_number == SIGILL || signal_number == SIGFPE ||
           signal_number == SIGTRAP;
}

static enum hijack_event event_of(struct hijack *hijack, int status, int *signal_to_pass)
{
    if (!WIFSTOPPED(status))
        return HIJACK_EVENT_GONE;
    int signal_number = WSTOPSIG(status);
    if (status >> 16 == PTRACE_EVENT_STOP)
        return HIJACK_EVENT_STOP;
    if (signal_number == (SIGTRAP | 0x80)) {
        struct __ptrace_syscall_info info;
        long size = ptrace(PTRACE_GET_SYSCALL_INFO, hijack->tid, sizeof info, &info);
        return size > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY ? HIJACK_EVENT_ENTRY : HIJACK_EVENT_EXIT;
    }
    if (is_crash(signal_number))
        return HIJACK_EVENT_CRASH;
    // All others are blocked, but for those that cannot be. Those of glibc's it needs at once.
    if (signal_number == CANCEL_SIGNAL || signal_number == SETXID_SIGNAL)
        *signal_to_pass = signal_number;
    else
        hijack->held_signal = signal_number;
    return HIJACK_EVENT_LATE;
}

enum hijack_event inject_hijack_run(struct hijack *hijack, enum __ptrace_request how)
{
    int signal_to_pass = 0;
    uint64_t end_ns = os_now_ns() + PATIENCE_NS;
    unsigned yields = 0;
    if (ptrace(how, hijack->tid, NULL, NULL) != 0) {
        hijack->lost = true;
        return HIJACK_EVENT_GONE;
    }
    for (;;) {
        int status;
        pid_t result = waitpid(hijack->tid, &status, __WALL | WNOHANG);
        enum hijack_event event = HIJACK_EVENT_LATE;
        if (result < 0)
            event = HIJACK_EVENT_GONE;
        else if (result > 0)
            event = event_of(hijack, status, &signal_to_pass);
        if (event == HIJACK_EVENT_GONE)
            hijack->lost = true;
        if (event != HIJACK_EVENT_LATE)
            return event;
        if (result > 0) {
            ptrace(how, hijack->tid, NULL, (uintptr_t)signal_to_pass);
            signal_to_pass = 0;
        } else if (os_now_ns() > end_ns) {
            return HIJACK_EVENT_LATE;
        } else if (yields++ < YIELDS) {
            sched_yield();
        } else {
            usleep(NAP_US);
        }
    }
}

// What cannot be waited for finds its way by the frame, its signals held back until then by the mask that we gave it.
int inject_hijack_lose(struct hijack *hijack, enum hijack_event event, struct base_error *error)
{
    if (event == HIJACK_EVENT_GONE)
        return base_fail(error, BASE_ERR_IO, "", 0, "thread %d has ended", (int)hijack->tid);
    if (event == HIJACK_EVENT_CRASH)
        return base_fail(error, BASE_ERR_IO, "", 0, "thread %d: what was called in it crashed; it is put back",
                         (int)hijack->tid);
    if (event == HIJACK_EVENT_LATE) {
        ptrace(PTRACE_INTERRUPT, hijack->tid, NULL, NULL);
        int status;
        waitpid(hijack->tid, &status, __WALL);
        hijack->lost = true;
        return base_fail(error, BASE_ERR_IO, "", 0,
                         "thread %d waits for a lock while it starts a thread for us; it goes on by itself after that",
                         (int)hijack->tid);
    }
    return base_fail(error, BASE_ERR_IO, "", 0, "thread %d: cannot be controlled", (int)hijack->tid);
}

// From here on it ends in rt_sigreturn if we do not.
bool inject_hijack_enter(struct hijack *hijack, uint64_t rip, uint64_t rsp, const uint64_t argument[6], uint64_t rax)
{
    struct user_regs_struct set = hijack->as_found;
    set.rip = rip;
    set.rsp = rsp;
    set.rax = rax;
    set.orig_rax = (uint64_t)-1;
    set.eflags = 0x202; // interrupts on, direction up, no stepping
    set.rdi = argument[0];
    set.rsi = argument[1];
    set.rdx = argument[2];
    set.r10 = argument[3];
    set.r8 = argument[4];
    set.r9 = argument[5];
    set.rbx = argument[0];
    set.r12 = argument[1];
    bool was_ours = hijack->is_ours;
    hijack->is_ours = put_set(hijack->tid, NT_PRSTATUS, &set, sizeof set) || was_ours;
    hijack->in_call = false;
    return hijack->is_ours && (was_ours || set_mask(hijack->tid, UINT64_MAX));
}

int inject_hijack_call(struct hijack *hijack, long number, const uint64_t argument[6], int64_t *result,
                       struct base_error *error)
{
    if (!inject_hijack_enter(hijack, hijack->program->call_gadget, hijack->frame_sp, argument, (uint64_t)number))
        return inject_hijack_lose(hijack, HIJACK_EVENT_STOP, error);
    for (;;) {
        enum hijack_event event = inject_hijack_run(hijack, PTRACE_SYSCALL);
        if (event == HIJACK_EVENT_EXIT)
            break;
        if (event != HIJACK_EVENT_ENTRY && event != HIJACK_EVENT_STOP)
            return inject_hijack_lose(hijack, event, error);
    }
    struct user_regs_struct after;
    size_t size = sizeof after;
    if (!inject_hijack_get_set(hijack->tid, NT_PRSTATUS, &after, &size))
        return inject_hijack_lose(hijack, HIJACK_EVENT_STOP, error);
    *result = (int64_t)after.rax;
    return 0;
}

uint64_t inject_hijack_thread_pointer(const struct hijack *hijack)
{
    return hijack->as_found.fs_base;
}

// Into the stop from which the kernel restarts system calls.
static bool come_to_rest(struct hijack *hijack)
{
    if (hijack->in_call) {
        struct user_regs_struct now;
        size_t size = sizeof now;
        if (!inject_hijack_get_set(hijack->tid, NT_PRSTATUS, &now, &size))
            return false;
        now.orig_rax = (uint64_t)-1; // without us it tries again
        if (!put_set(hijack->tid, NT_PRSTATUS, &now, size))
            return false;
    }
    ptrace(PTRACE_INTERRUPT, hijack->tid, NULL, NULL);
    return inject_hijack_run(hijack, PTRACE_CONT) == HIJACK_EVENT_STOP;
}

int inject_hijack_end(struct hijack *hijack, struct base_error *error)
{
    int result = 0;
    if (hijack->lost)
        result = -1;
    else if (hijack->is_ours &&
             (!come_to_rest(hijack) ||
              !put_set(hijack->tid, NT_X86_XSTATE, hijack->context.state, hijack->context.state_bytes) ||
              !set_mask(hijack->tid, hijack->context.mask) ||
              !put_set(hijack->tid, NT_PRSTATUS, &hijack->as_found, sizeof hijack->as_found)))
        result =
            base_fail(error, BASE_ERR_IO, "", 0, "thread %d could not be put back; it has ended", (int)hijack->tid);
    else if (!hijack->is_ours)
        put_set(hijack->tid, NT_PRSTATUS, &hijack->as_found, sizeof hijack->as_found);
    if (hijack->held_signal)
        syscall(SYS_tgkill, hijack->program->pid, hijack->tid, hijack->held_signal);
    free(hijack);
    return result;
}
