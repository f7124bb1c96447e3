// SPDX-License-Identifier: Apache-2.0
// Linux system calls in which threads sleep, by what a thread notices that is stopped in one and goes on. As data: the
// numbers of each architecture, of a 32-bit process those of its own.
#ifndef QUT_ARCH_CALLS_H
#define QUT_ARCH_CALLS_H

#include "libqut/arch/arch.h"

enum arch_call_effect {
    ARCH_CALL_RESTARTED = 1, // nothing; and a sleep in it can always be ended
    ARCH_CALL_SEEN,          // it returns EINTR, or having done less than it was asked to
    ARCH_CALL_SOCKET_READ,   // EINTR from a socket with a receive timeout, less with MSG_WAITALL; else nothing
    ARCH_CALL_SOCKET_SEND,   // EINTR from a socket with a send timeout; else nothing
    ARCH_CALL_IPC,           // one number for many: ipc(2), which is semop with 1 and semtimedop with 4
    ARCH_CALL_SOCKETS,       // socketcall(2)
};

enum { ARCH_CALL_NO_FLAGS = 0xff };

struct arch_call {
    const char *name;
    int16_t number[QUT_ARCH_END]; // by enum qut_arch_id; -1 where there is no such call
    uint8_t effect;
    uint8_t flags_argument; // which argument holds MSG_* flags
};

// NULL: not one of those we know; nearly all of them are restarted. Signal-safe, no allocation.
const struct arch_call *arch_call(enum qut_arch_id arch, long number);
// For tests: all of them, one after another; NULL behind the last.
const struct arch_call *arch_call_at(unsigned index);

#endif
