// SPDX-License-Identifier: Apache-2.0
// Whether a thread that sleeps would notice that it was stopped: the kernel does not restart every system call.
#include <string.h>

#include "libqut/arch/calls.h"
#include "libqut/os/process.h"
#include "libqut/target/live.h"

enum { IPC_SEMOP = 1, IPC_SEMTIMEDOP = 4 };
// Of socketcall(2), <linux/net.h>.
enum {
    SOCKETS_CONNECT = 3,
    SOCKETS_ACCEPT = 5,
    SOCKETS_RECV = 10,
    SOCKETS_RECVFROM = 12,
    SOCKETS_RECVMSG = 17,
    SOCKETS_ACCEPT4 = 18,
};
enum { FLAG_WAIT_FOR_ALL = 0x100 }; // MSG_WAITALL

// One that cannot be asked counts as having a timeout.
static enum target_wake of_socket(const struct target_live *live, pid_t tid, uint64_t fd, bool reading)
{
    char link[32];
    if (!os_task_file_link(live->tasks_fd, tid, (int)fd, link, sizeof link))
        return TARGET_WAKE_UNKNOWN;
    if (strncmp(link, "pipe:", 5) == 0)
        return TARGET_WAKE_UNSEEN;
    if (strncmp(link, "socket:", 7) != 0)
        return TARGET_WAKE_UNKNOWN;
    return os_socket_has_timeout(live->pid, (int)fd, reading) == 0 ? TARGET_WAKE_UNSEEN : TARGET_WAKE_SEEN;
}

// The arguments are in the process's memory.
static enum target_wake of_sockets(struct qut_target *target, pid_t tid, const struct target_sleep *sleep,
                                   const char **name)
{
    static const struct {
        const char *name;
        uint8_t number, reads, flags_argument;
    } known[] = {
        {"connect", SOCKETS_CONNECT, false, ARCH_CALL_NO_FLAGS},
        {"accept", SOCKETS_ACCEPT, true, ARCH_CALL_NO_FLAGS},
        {"recv", SOCKETS_RECV, true, 3},
        {"recvfrom", SOCKETS_RECVFROM, true, 3},
        {"recvmsg", SOCKETS_RECVMSG, true, 2},
        {"accept4", SOCKETS_ACCEPT4, true, ARCH_CALL_NO_FLAGS},
    };
    uint32_t words[4] = {0};
    size_t size = target_read_any(target, sleep->argument[1], words, sizeof words);
    *name = "socketcall";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].number != sleep->argument[0])
            continue;
        *name = known[i].name;
        unsigned flags = known[i].flags_argument;
        if (size < sizeof *words || (flags != ARCH_CALL_NO_FLAGS && words[flags] & FLAG_WAIT_FOR_ALL))
            return TARGET_WAKE_SEEN;
        return of_socket(target->source, tid, words[0], known[i].reads);
    }
    return TARGET_WAKE_SEEN; // sends, which return what went so far, and what waits for several messages
}

enum target_wake target_live_wake(struct qut_target *target, pid_t tid, const struct target_sleep *sleep,
                                  const char **name)
{
    const struct arch_call *call = arch_call(target->arch->id, sleep->number);
    if (!call)
        return TARGET_WAKE_UNKNOWN;
    *name = call->name;
    switch (call->effect) {
    case ARCH_CALL_RESTARTED: return TARGET_WAKE_UNSEEN;
    case ARCH_CALL_SEEN: return TARGET_WAKE_SEEN;
    case ARCH_CALL_IPC: {
        uint64_t which = sleep->argument[0] & 0xffff; // above it a version
        *name = which == IPC_SEMOP ? "semop" : "semtimedop";
        return which == IPC_SEMOP || which == IPC_SEMTIMEDOP ? TARGET_WAKE_SEEN : TARGET_WAKE_UNKNOWN;
    }
    case ARCH_CALL_SOCKETS: return of_sockets(target, tid, sleep, name);
    default: break;
    }
    if (call->flags_argument != ARCH_CALL_NO_FLAGS && sleep->argument[call->flags_argument] & FLAG_WAIT_FOR_ALL)
        return TARGET_WAKE_SEEN;
    return of_socket(target->source, tid, sleep->argument[0], call->effect == ARCH_CALL_SOCKET_READ);
}
