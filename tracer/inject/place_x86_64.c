// SPDX-License-Identifier: Apache-2.0
// Where a thread is: asleep in which system call, or running.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

#include <elf.h>

#include "tracer/inject/hijack.h"

enum { WAITS_FOR_ALL = 0x100, MOVE_BYTES = 5, SYSCALL_BYTES = 2, GET_RSEQ_CONFIGURATION = 0x420f, EPOLL_PWAIT2 = 441 };

struct rseq_configuration {
    uint64_t address;
    uint32_t size, signature, flags, pad;
};

// What returns less than it was asked for when it is interrupted is not among them.
static enum hijack_place place_of_call(long number, uint64_t second_argument)
{
    switch (number) {
    case SYS_read:
    case SYS_readv:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case EPOLL_PWAIT2:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect:
    case SYS_wait4:
    case SYS_waitid:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_flock:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv: return HIJACK_WAITS;
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_restart_syscall: // one of them, or poll, that was stopped before
        return HIJACK_PERHAPS;
    case SYS_futex: // low-level locks use FUTEX_WAIT
        return (second_argument & (uint64_t)FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET ? HIJACK_AWAITS : HIJACK_PERHAPS;
    default: return HIJACK_NOWHERE;
    }
}

long inject_hijack_call_number(pid_t pid, long number, uint64_t pc)
{
    uint8_t before[MOVE_BYTES];
    uint32_t moved;
    const struct iovec here = {before, sizeof before},
                       there = {(void *)(uintptr_t)(pc - SYSCALL_BYTES - MOVE_BYTES), sizeof before};
    if (number != SYS_restart_syscall || process_vm_readv(pid, &here, 1, &there, 1, 0) != MOVE_BYTES ||
        before[0] != 0xb8)
        return number;
    memcpy(&moved, before + 1, sizeof moved);
    return moved;
}

enum hijack_place inject_hijack_place_asleep(pid_t pid, pid_t tid)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return HIJACK_NOWHERE;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return HIJACK_NOWHERE;
    text[size] = '\0';
    if (strncmp(text, "running", 7) == 0)
        return HIJACK_RUNS;
    long number = -1;
    unsigned long long argument[6] = {0}, sp, pc;
    if (sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &argument[0], &argument[1], &argument[2],
               &argument[3], &argument[4], &argument[5], &sp, &pc) != 9)
        return HIJACK_NOWHERE;
    if ((number == SYS_recvfrom && argument[3] & WAITS_FOR_ALL) ||
        (number == SYS_recvmsg && argument[2] & WAITS_FOR_ALL))
        return HIJACK_NOWHERE;
    return place_of_call(inject_hijack_call_number(pid, number, pc), argument[1]);
}

// Within a restartable sequence the kernel would send it to the sequence's abort handler when it is put back on another
// processor; but only if it is there at that moment, and it would not be.
static bool is_in_sequence(pid_t tid)
{
    struct rseq_configuration rseq;
    uint64_t critical = 1;
    if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, tid, sizeof rseq, &rseq) <= 0 || rseq.address == 0)
        return false;
    const struct iovec here = {&critical, sizeof critical},
                       there = {(void *)(uintptr_t)(rseq.address + 8), sizeof critical}; // rseq_cs
    return process_vm_readv(tid, &here, 1, &there, 1, 0) != sizeof critical || critical != 0;
}

enum hijack_place inject_hijack_place_stopped(pid_t tid)
{
    struct user_regs_struct registers;
    struct iovec bytes = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &bytes) != 0 || bytes.iov_len != sizeof registers)
        return HIJACK_NOWHERE;
    long number = (long)registers.orig_rax;
    if (number < 0)
        return is_in_sequence(tid) ? HIJACK_NOWHERE : HIJACK_RUNS;
    number = inject_hijack_call_number(tid, number, registers.rip);
    switch (number) {
    case SYS_write: // they are through: it was not asleep when it was asked to stop
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg: return HIJACK_WAITS;
    default: return place_of_call(number, registers.rsi);
    }
}
