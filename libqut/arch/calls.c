// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/calls.h"

#include <stddef.h>

#define NUMBERS(x86_64, aarch64, arm, x86, riscv64)                                                                    \
    {                                                                                                                  \
        -1, x86_64, aarch64, arm, x86, riscv64                                                                         \
    }
#define CALL(name, effect, ...)                                                                                        \
    {                                                                                                                  \
#name, NUMBERS(__VA_ARGS__), effect, ARCH_CALL_NO_FLAGS                                                        \
    }
#define CALL_WITH_FLAGS(name, effect, argument, ...)                                                                   \
    {                                                                                                                  \
#name, NUMBERS(__VA_ARGS__), effect, argument                                                                  \
    }

// signal(7), "Interruption of system calls and library functions by stop signals", and what the kernel's sources and
// tests/unit/libqut/target/eintr_test.c add: io_uring_enter and ioctl (binder, KVM_RUN, seccomp's: what a driver does
// with an unknown signal), and whatever writes or waits for several things: it returns early with what it has so
// far.
static const struct arch_call calls[] = {
    // First those that are asked for most.
    CALL(futex, ARCH_CALL_RESTARTED, 202, 98, 240, 240, 98),
    CALL(poll, ARCH_CALL_RESTARTED, 7, -1, 168, 168, -1),
    CALL(ppoll, ARCH_CALL_RESTARTED, 271, 73, 336, 309, 73),
    CALL(clock_nanosleep, ARCH_CALL_RESTARTED, 230, 115, 265, 267, 115),
    CALL(restart_syscall, ARCH_CALL_RESTARTED, 219, 128, 0, 0, 128),
    CALL(epoll_wait, ARCH_CALL_SEEN, 232, -1, 252, 256, -1),
    CALL(epoll_pwait, ARCH_CALL_SEEN, 281, 22, 346, 319, 22),
    CALL(read, ARCH_CALL_SOCKET_READ, 0, 63, 3, 3, 63),
    CALL_WITH_FLAGS(recvfrom, ARCH_CALL_SOCKET_READ, 3, 45, 207, 292, 371, 207),
    CALL_WITH_FLAGS(recvmsg, ARCH_CALL_SOCKET_READ, 2, 47, 212, 297, 372, 212),
    CALL(accept, ARCH_CALL_SOCKET_READ, 43, 202, 285, -1, 202),
    CALL(accept4, ARCH_CALL_SOCKET_READ, 288, 242, 366, 364, 242),

    CALL(ppoll_time64, ARCH_CALL_RESTARTED, -1, -1, 414, 414, -1),
    CALL(select, ARCH_CALL_RESTARTED, 23, -1, -1, 82, -1),
    CALL(_newselect, ARCH_CALL_RESTARTED, -1, -1, 142, 142, -1),
    CALL(pselect6, ARCH_CALL_RESTARTED, 270, 72, 335, 308, 72),
    CALL(pselect6_time64, ARCH_CALL_RESTARTED, -1, -1, 413, 413, -1),
    CALL(futex_time64, ARCH_CALL_RESTARTED, -1, -1, 422, 422, -1),
    CALL(futex_waitv, ARCH_CALL_RESTARTED, 449, 449, 449, 449, 449),
    CALL(clock_nanosleep_time64, ARCH_CALL_RESTARTED, -1, -1, 407, 407, -1),
    CALL(nanosleep, ARCH_CALL_RESTARTED, 35, 101, 162, 162, 101),
    CALL(pause, ARCH_CALL_RESTARTED, 34, -1, 29, 29, -1),
    CALL(rt_sigsuspend, ARCH_CALL_RESTARTED, 130, 133, 179, 179, 133),
    CALL(wait4, ARCH_CALL_RESTARTED, 61, 260, 114, 114, 260),
    CALL(waitid, ARCH_CALL_RESTARTED, 247, 95, 280, 284, 95),
    CALL(waitpid, ARCH_CALL_RESTARTED, -1, -1, -1, 7, -1),
    CALL(flock, ARCH_CALL_RESTARTED, 73, 32, 143, 143, 32),
    CALL(fcntl, ARCH_CALL_RESTARTED, 72, 25, 55, 55, 25),
    CALL(fcntl64, ARCH_CALL_RESTARTED, -1, -1, 221, 221, -1),
    CALL(mq_timedsend, ARCH_CALL_RESTARTED, 242, 182, 276, 279, 182),
    CALL(mq_timedreceive, ARCH_CALL_RESTARTED, 243, 183, 277, 280, 183),
    CALL(mq_timedsend_time64, ARCH_CALL_RESTARTED, -1, -1, 418, 418, -1),
    CALL(mq_timedreceive_time64, ARCH_CALL_RESTARTED, -1, -1, 419, 419, -1),

    CALL(readv, ARCH_CALL_SOCKET_READ, 19, 65, 145, 145, 65),
    CALL_WITH_FLAGS(recv, ARCH_CALL_SOCKET_READ, 3, -1, -1, 291, -1, -1),
    CALL(connect, ARCH_CALL_SOCKET_SEND, 42, 203, 283, 362, 203),
    CALL(socketcall, ARCH_CALL_SOCKETS, -1, -1, -1, 102, -1),
    CALL(ipc, ARCH_CALL_IPC, -1, -1, -1, 117, -1),

    CALL(epoll_pwait2, ARCH_CALL_SEEN, 441, 441, 441, 441, 441),
    CALL(semop, ARCH_CALL_SEEN, 65, 193, 298, -1, 193),
    CALL(semtimedop, ARCH_CALL_SEEN, 220, 192, 312, -1, 192),
    CALL(semtimedop_time64, ARCH_CALL_SEEN, -1, -1, 420, 420, -1),
    CALL(rt_sigtimedwait, ARCH_CALL_SEEN, 128, 137, 177, 177, 137),
    CALL(rt_sigtimedwait_time64, ARCH_CALL_SEEN, -1, -1, 421, 421, -1),
    CALL(io_getevents, ARCH_CALL_SEEN, 208, 4, 245, 247, 4),
    CALL(io_pgetevents, ARCH_CALL_RESTARTED, 333, 292, 399, 385, 292),
    CALL(io_pgetevents_time64, ARCH_CALL_RESTARTED, -1, -1, 416, 416, -1),
    CALL(io_uring_enter, ARCH_CALL_SEEN, 426, 426, 426, 426, 426),
    CALL(ioctl, ARCH_CALL_SEEN, 16, 29, 54, 54, 29),
    CALL(recvmmsg, ARCH_CALL_SEEN, 299, 243, 365, 337, 243),
    CALL(recvmmsg_time64, ARCH_CALL_SEEN, -1, -1, 417, 417, -1),
    CALL(write, ARCH_CALL_SEEN, 1, 64, 4, 4, 64),
    CALL(writev, ARCH_CALL_SEEN, 20, 66, 146, 146, 66),
    CALL(send, ARCH_CALL_SEEN, -1, -1, 289, -1, -1),
    CALL(sendto, ARCH_CALL_SEEN, 44, 206, 290, 369, 206),
    CALL(sendmsg, ARCH_CALL_SEEN, 46, 211, 296, 370, 211),
    CALL(sendmmsg, ARCH_CALL_SEEN, 307, 269, 374, 345, 269),
    CALL(sendfile, ARCH_CALL_SEEN, 40, 71, 187, 187, 71),
    CALL(sendfile64, ARCH_CALL_SEEN, -1, -1, 239, 239, -1),
    CALL(splice, ARCH_CALL_SEEN, 275, 76, 340, 313, 76),
    CALL(vmsplice, ARCH_CALL_SEEN, 278, 75, 343, 316, 75),
};

const struct arch_call *arch_call(enum qut_arch_id arch, long number)
{
    if (number < 0 || arch <= QUT_ARCH_NONE || arch >= QUT_ARCH_END)
        return NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number[arch] == number)
            return &calls[i];
    return NULL;
}

const struct arch_call *arch_call_at(unsigned index)
{
    return index < sizeof calls / sizeof *calls ? &calls[index] : NULL;
}
