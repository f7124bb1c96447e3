// SPDX-License-Identifier: Apache-2.0
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
#include "tracer/inject/frame_x86_64.h"
#include "tracer/inject/stub_x86_64.h"

enum {
    RED_ZONE_BYTES = 128,
    STACK_LEAST_BYTES = 2048, // of the thread's own, below what is written there
    YIELDS = 2000,
    NAP_US = 50,
    PATIENCE_NS = 1000000000,
    KERNEL_RESTARTS_FIRST = 512, // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND; ERESTART_RESTARTBLOCK
    KERNEL_RESTARTS_LAST = 516,
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

const char *hijack_refusal(const struct inject_program *program)
{
    if (program->target->arch->id != QUT_ARCH_X86_64)
        return "--inject is for 64-bit x86 programs only; without --inject it is sampled from outside";
    return NULL;
}

static bool find_bytes(const struct inject_program *program, const char *bytes, size_t size, uint64_t *address)
{
    enum { PIECE = 65536 };
    uint8_t *piece = malloc(PIECE);
    for (size_t i = 0; piece && i < program->target->range_count && !*address; i++) {
        const struct qut_code_range *range = &program->target->ranges[i];
        for (uint64_t at = range->start; range->image == program->libc && at < range->end; at += PIECE - size) {
            size_t length = range->end - at < PIECE ? (size_t)(range->end - at) : PIECE;
            if (!inject_read(program, at, piece, length))
                break;
            const uint8_t *found = memmem(piece, length, bytes, size);
            if (found) {
                *address = at + (uint64_t)(found - piece);
                break;
            }
        }
    }
    free(piece);
    return *address != 0;
}

bool hijack_find_gadgets(struct inject_program *program)
{
    return find_bytes(program, "\x0f\x05\xc3", 3, &program->call_gadget) &&
           find_bytes(program, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9, &program->return_gadget);
}

// ---- the thread's registers

static bool get_set(pid_t tid, unsigned kind, void *bytes, size_t *size)
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

// epoll_wait and the like return EINTR because of us, and the kernel does not make them anew. They have done nothing
// then, and are made anew by us, with all of their timeout; but where a signal is about to be handled it was that one.
static void settle_call(struct hijack *hijack, bool asleep)
{
    struct user_regs_struct *found = &hijack->as_found;
    if ((long)found->orig_rax < 0)
        return;
    long result = (long)found->rax;
    pid_t pid = hijack->program->pid;
    if (result == -EINTR && asleep &&
        ((status_bits(pid, hijack->tid, "SigPnd") | status_bits(pid, hijack->tid, "ShdPnd")) &
         ~hijack->context.mask) == 0) {
        found->rax = found->orig_rax;
        found->rip -= 2;
        found->orig_rax = (uint64_t)-1;
        hijack->context.registers = *found;
    } else if (result <= -KERNEL_RESTARTS_FIRST && result >= -KERNEL_RESTARTS_LAST) {
        // By the frame; from outside, as_found makes the kernel do it.
        hijack->context.registers.rax = found->orig_rax;
        hijack->context.registers.rip -= 2;
    }
}

static bool write_frame(struct hijack *hijack, uint64_t ucontext, uint64_t state)
{
    frame_write(&hijack->context, state, hijack->ucontext, hijack->state);
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
    const struct qut_map *map = qut_maps_find(&hijack->program->target->maps, hijack->as_found.rsp);
    return map && map->writable && map->start + STACK_LEAST_BYTES <= hijack->frame_sp &&
           inject_write(hijack->program, hijack->frame_sp, &hijack->program->return_gadget, 8) &&
           write_frame(hijack, ucontext, state);
}

struct hijack *hijack_begin(const struct inject_program *program, pid_t tid, bool asleep, struct qutc_error *error)
{
    struct hijack *hijack = calloc(1, sizeof *hijack);
    if (!hijack) {
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "no memory");
        return NULL;
    }
    hijack->program = program;
    hijack->tid = tid;
    size_t size = sizeof hijack->as_found;
    hijack->context.state_bytes = sizeof hijack->context.state;
    if (!get_set(tid, NT_PRSTATUS, &hijack->as_found, &size) || size != sizeof hijack->as_found ||
        !get_set(tid, NT_X86_XSTATE, hijack->context.state, &hijack->context.state_bytes) ||
        hijack->context.state_bytes >= sizeof hijack->context.state ||
        ptrace(PTRACE_GETSIGMASK, tid, sizeof hijack->context.mask, &hijack->context.mask) != 0 ||
        ptrace(PTRACE_SETOPTIONS, tid, NULL, PTRACE_O_TRACESYSGOOD) != 0) {
        qutc_fail(error, QUTC_ERR_IO, "", 0, "thread %d: its registers cannot be read: %s", (int)tid, strerror(errno));
        free(hijack);
        return NULL;
    }
    hijack->context.registers = hijack->as_found;
    settle_call(hijack, asleep);
    if (!write_first_frame(hijack)) {
        qutc_fail(error, QUTC_ERR_LIMIT, "", 0, "thread %d: its stack is full", (int)tid);
        free(hijack);
        return NULL;
    }
    return hijack;
}

// ---- running

enum event { EVENT_ENTRY, EVENT_EXIT, EVENT_STOP, EVENT_CRASH, EVENT_GONE, EVENT_LATE };

static bool is_crash(int signal_number)
{
    return signal_number == SIGSEGV || signal_number == SIGBUS || signal_number == SIGILL || signal_number == SIGFPE ||
           signal_number == SIGTRAP;
}

static enum event event_of(struct hijack *hijack, int status, int *signal_to_pass)
{
    if (!WIFSTOPPED(status))
        return EVENT_GONE;
    int signal_number = WSTOPSIG(status);
    if (status >> 16 == PTRACE_EVENT_STOP)
        return EVENT_STOP;
    if (signal_number == (SIGTRAP | 0x80)) {
        struct __ptrace_syscall_info info;
        long size = ptrace(PTRACE_GET_SYSCALL_INFO, hijack->tid, sizeof info, &info);
        return size > 0 && info.op == PTRACE_SYSCALL_INFO_ENTRY ? EVENT_ENTRY : EVENT_EXIT;
    }
    if (is_crash(signal_number))
        return EVENT_CRASH;
    // All others are blocked, but for those that cannot be. Those of glibc's it needs at once.
    if (signal_number == CANCEL_SIGNAL || signal_number == SETXID_SIGNAL)
        *signal_to_pass = signal_number;
    else
        hijack->held_signal = signal_number;
    return EVENT_LATE;
}

// Lets it run until the next event; signals in between are no events.
static enum event run(struct hijack *hijack, enum __ptrace_request how)
{
    int signal_to_pass = 0;
    uint64_t end_ns = qut_os_now_ns() + PATIENCE_NS;
    unsigned yields = 0;
    if (ptrace(how, hijack->tid, NULL, NULL) != 0) {
        hijack->lost = true;
        return EVENT_GONE;
    }
    for (;;) {
        int status;
        pid_t result = waitpid(hijack->tid, &status, __WALL | WNOHANG);
        enum event event = EVENT_LATE;
        if (result < 0)
            event = EVENT_GONE;
        else if (result > 0)
            event = event_of(hijack, status, &signal_to_pass);
        if (event == EVENT_GONE)
            hijack->lost = true;
        if (event != EVENT_LATE)
            return event;
        if (result > 0) {
            ptrace(how, hijack->tid, NULL, (uintptr_t)signal_to_pass);
            signal_to_pass = 0;
        } else if (qut_os_now_ns() > end_ns) {
            return EVENT_LATE;
        } else if (yields++ < YIELDS) {
            sched_yield();
        } else {
            usleep(NAP_US);
        }
    }
}

// What cannot be waited for finds its way by the frame, its signals held back until then by the mask that we gave it.
static int lose(struct hijack *hijack, enum event event, struct qutc_error *error)
{
    if (event == EVENT_GONE)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "thread %d has ended", (int)hijack->tid);
    if (event == EVENT_CRASH)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "thread %d: what was called in it crashed; it is put back",
                         (int)hijack->tid);
    if (event == EVENT_LATE) {
        ptrace(PTRACE_INTERRUPT, hijack->tid, NULL, NULL);
        int status;
        waitpid(hijack->tid, &status, __WALL);
        hijack->lost = true;
        return qutc_fail(error, QUTC_ERR_IO, "", 0,
                         "thread %d waits for a lock while it starts a thread for us; it goes on by itself after that",
                         (int)hijack->tid);
    }
    return qutc_fail(error, QUTC_ERR_IO, "", 0, "thread %d: cannot be controlled", (int)hijack->tid);
}

// From here on it ends in rt_sigreturn if we do not.
static bool enter(struct hijack *hijack, uint64_t rip, uint64_t rsp, const uint64_t argument[6], uint64_t rax)
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

static int call(struct hijack *hijack, long number, const uint64_t argument[6], int64_t *result,
                struct qutc_error *error)
{
    if (!enter(hijack, hijack->program->call_gadget, hijack->frame_sp, argument, (uint64_t)number))
        return lose(hijack, EVENT_STOP, error);
    for (;;) {
        enum event event = run(hijack, PTRACE_SYSCALL);
        if (event == EVENT_EXIT)
            break;
        if (event != EVENT_ENTRY && event != EVENT_STOP)
            return lose(hijack, event, error);
    }
    struct user_regs_struct after;
    size_t size = sizeof after;
    if (!get_set(hijack->tid, NT_PRSTATUS, &after, &size))
        return lose(hijack, EVENT_STOP, error);
    *result = (int64_t)after.rax;
    return 0;
}

int hijack_map(struct hijack *hijack, uint64_t *block, struct qutc_error *error)
{
    int64_t result;
    const uint64_t map[6] = {0,  HIJACK_BLOCK_BYTES,         PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             ~0, 0};
    if (call(hijack, SYS_mmap, map, &result, error) != 0)
        return -1;
    if (result < 0)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "no memory can be mapped in it: %s", strerror((int)-result));
    *block = (uint64_t)result;
    const uint64_t protect[6] = {*block, STUB_CODE_BYTES, PROT_READ | PROT_EXEC};
    if (!inject_write(hijack->program, *block + STUB_CODE, stub_code, (size_t)(stub_code_end - stub_code)))
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "its memory cannot be written");
    if (call(hijack, SYS_mprotect, protect, &result, error) != 0)
        return -1;
    if (result < 0)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "it may have no new code: %s", strerror((int)-result));
    return 0;
}

int hijack_unmap(struct hijack *hijack, uint64_t block, struct qutc_error *error)
{
    int64_t result;
    const uint64_t unmap[6] = {block, HIJACK_BLOCK_BYTES};
    return call(hijack, SYS_munmap, unmap, &result, error);
}

// The agent's bytes, in a file that exists in the process only.
static int hand_over(struct hijack *hijack, uint64_t block, int file, int64_t *number, struct qutc_error *error)
{
    static const char name[] = "libqut-agent";
    char path[64], bytes[16384];
    const uint64_t create[6] = {block + STUB_SYMBOL, 1}; // MFD_CLOEXEC
    if (!inject_write(hijack->program, block + STUB_SYMBOL, name, sizeof name) ||
        call(hijack, SYS_memfd_create, create, number, error) != 0)
        return -1;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)hijack->program->pid, (int)*number);
    int to = *number < 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
    ssize_t size = to < 0 ? -1 : 0;
    for (off_t at = 0; to >= 0 && (size = pread(file, bytes, sizeof bytes, at)) > 0; at += size)
        if (write(to, bytes, (size_t)size) != size)
            break;
    if (to >= 0)
        close(to);
    return size == 0 ? 0
                     : qutc_fail(error, QUTC_ERR_IO, "", 0,
                                 "the agent's file is not there for it, and its bytes cannot be handed over");
}

static bool write_text(const struct inject_program *program, uint64_t address, const char *text, size_t size_max)
{
    size_t size = strlen(text) + 1;
    return size <= size_max && inject_write(program, address, text, size);
}

int hijack_start(struct hijack *hijack, uint64_t block, const struct hijack_job *job, struct qutc_error *error)
{
    const struct inject_program *program = hijack->program;
    char own_path[64];
    const char *path = job->path;
    int64_t file = -1;
    if (job->file >= 0) {
        if (hand_over(hijack, block, job->file, &file, error) != 0)
            return -1;
        snprintf(own_path, sizeof own_path, "/proc/self/fd/%d", (int)file);
        path = own_path;
    }
    struct stub_talk talk = {
        .created = -1,
        .stack = block + STUB_STACK,
        .stack_bytes = STUB_STACK_BYTES,
        .entry = block + STUB_CODE + (uint64_t)(stub_thread - stub_code),
        .handle = job->handle,
        .action = job->action,
        .mask = ~((uint64_t)1 << (CANCEL_SIGNAL - 1) | (uint64_t)1 << (SETXID_SIGNAL - 1)),
        .arena_offset = job->arena_offset,
        .arena = job->arena,
        .path = block + STUB_PATH,
        .symbol = block + STUB_SYMBOL,
        .settings = block + STUB_SETTINGS,
        .text = block + STUB_TEXT,
        .file_to_close = (uint32_t)(file + 1),
    };
    memcpy(talk.function, program->function, sizeof talk.function);
    const char nothing = '\0';
    if (!write_text(program, talk.path, path, HIJACK_PATH_BYTES) ||
        !write_text(program, talk.symbol, job->symbol, HIJACK_TEXT_BYTES) ||
        !write_text(program, talk.settings, job->settings, HIJACK_SETTINGS_BYTES) ||
        !inject_write(program, talk.text, &nothing, 1) || !inject_write(program, block + STUB_TALK, &talk, sizeof talk) ||
        !write_frame(hijack, block + STUB_FRAME, block + STUB_FRAME + 512))
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "its memory cannot be written");
    const uint64_t argument[6] = {block + STUB_TALK, block + STUB_FRAME};
    uint64_t entry = block + STUB_CODE + (uint64_t)(stub_create - stub_code);
    uint64_t end = block + STUB_CODE + (uint64_t)(stub_return - stub_code);
    if (!enter(hijack, entry, block + STUB_CALL_STACK_TOP, argument, 0))
        return lose(hijack, EVENT_STOP, error);
    // Until it is about to return from the signal that never was.
    for (;;) {
        enum event event = run(hijack, PTRACE_SYSCALL);
        struct user_regs_struct now;
        size_t size = sizeof now;
        if (event == EVENT_CRASH || event == EVENT_GONE || event == EVENT_LATE)
            return lose(hijack, event, error);
        if (event == EVENT_ENTRY && get_set(hijack->tid, NT_PRSTATUS, &now, &size) &&
            now.orig_rax == SYS_rt_sigreturn && now.rip >= end && now.rip < end + 32)
            break;
    }
    hijack->in_call = true;
    int32_t created = -1;
    inject_read(program, block + STUB_TALK + offsetof(struct stub_talk, created), &created, sizeof created);
    return created == 0 ? 0
                        : qutc_fail(error, QUTC_ERR_IO, "", 0, "no thread can be started in it: %s", strerror(created));
}

// Into the stop from which the kernel restarts system calls.
static bool come_to_rest(struct hijack *hijack)
{
    if (hijack->in_call) {
        struct user_regs_struct now;
        size_t size = sizeof now;
        if (!get_set(hijack->tid, NT_PRSTATUS, &now, &size))
            return false;
        now.orig_rax = (uint64_t)-1; // without us it tries again
        if (!put_set(hijack->tid, NT_PRSTATUS, &now, size))
            return false;
    }
    ptrace(PTRACE_INTERRUPT, hijack->tid, NULL, NULL);
    return run(hijack, PTRACE_CONT) == EVENT_STOP;
}

int hijack_end(struct hijack *hijack, struct qutc_error *error)
{
    int result = 0;
    if (hijack->lost)
        result = -1;
    else if (hijack->is_ours &&
             (!come_to_rest(hijack) ||
              !put_set(hijack->tid, NT_X86_XSTATE, hijack->context.state, hijack->context.state_bytes) ||
              !set_mask(hijack->tid, hijack->context.mask) ||
              !put_set(hijack->tid, NT_PRSTATUS, &hijack->as_found, sizeof hijack->as_found)))
        result = qutc_fail(error, QUTC_ERR_IO, "", 0, "thread %d could not be put back; it has ended",
                           (int)hijack->tid);
    else if (!hijack->is_ours)
        put_set(hijack->tid, NT_PRSTATUS, &hijack->as_found, sizeof hijack->as_found);
    if (hijack->held_signal)
        syscall(SYS_tgkill, hijack->program->pid, hijack->tid, hijack->held_signal);
    free(hijack);
    return result;
}

bool hijack_answer(const struct inject_program *program, uint64_t block, struct hijack_answer *answer)
{
    struct stub_talk talk;
    *answer = (struct hijack_answer){0};
    if (!inject_read(program, block + STUB_TALK, &talk, sizeof talk) ||
        !inject_read(program, block + STUB_TEXT, answer->text, sizeof answer->text))
        return false;
    answer->text[sizeof answer->text - 1] = '\0';
    answer->done = talk.state == 2;
    answer->stage = talk.stage;
    answer->tid = talk.tid;
    answer->result = talk.result;
    answer->handle = talk.handle;
    return true;
}
