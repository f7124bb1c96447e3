// SPDX-License-Identifier: Apache-2.0
// Threads of a process that is not stopped: those that sleep in a system call, as /proc/PID/task/TID/syscall tells.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/target/process.h"

enum { SYSCALL_TEXT_BYTES = 256 };

// "NR ARG0 ... ARG5 SP PC", or "running", or "-1 SP PC" outside of system calls.
static bool read_syscall(pid_t pid, pid_t tid, struct qut_target_thread *thread, const struct qut_arch *arch)
{
    char path[64], *text = NULL;
    size_t size;
    unsigned long long sp, pc;
    long number;
    snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
    if (qut_os_read_text(path, SYSCALL_TEXT_BYTES, &text, &size) != 0)
        return false;
    bool asleep =
        sscanf(text, "%ld %*x %*x %*x %*x %*x %*x %llx %llx", &number, &sp, &pc) == 3 && size < sizeof thread->asleep;
    if (asleep) {
        memcpy(thread->asleep, text, size + 1);
        thread->regs.pc = pc;
        thread->regs.reg[arch->sp_reg] = sp;
        thread->regs.valid = (uint64_t)1 << arch->sp_reg;
        thread->state = QUT_REGISTERS_ASLEEP;
    }
    free(text);
    return asleep;
}

static int add_sleeper(void *context, pid_t tid)
{
    struct qut_target *target = context;
    const struct qut_live *live = target->source;
    struct qut_target_thread *thread = qut_target_add_thread(target, tid);
    if (!thread)
        return -1;
    if (!read_syscall(live->pid, tid, thread, target->arch))
        target->thread_count--;
    return 0;
}

void qut_live_list_sleepers(struct qut_target *target)
{
    const struct qut_live *live = target->source;
    target->thread_count = 0;
    qut_live_each_tid(live->pid, add_sleeper, target);
    qut_target_sort_threads(target);
}

bool qut_live_fall_asleep(struct qut_target *target, struct qut_target_thread *thread)
{
    const struct qut_live *live = target->source;
    return read_syscall(live->pid, thread->info.tid, thread, target->arch);
}

bool qut_live_still_asleep(struct qut_target *target, struct qut_target_thread *thread)
{
    const struct qut_live *live = target->source;
    struct qut_target_thread now = {0};
    return read_syscall(live->pid, thread->info.tid, &now, target->arch) && strcmp(now.asleep, thread->asleep) == 0;
}

char qut_live_thread_state(pid_t pid, pid_t tid)
{
    char path[64], *text = NULL;
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    if (qut_os_read_text(path, 4096, &text, &size) != 0)
        return 0;
    // The name before it can hold anything, parentheses included.
    const char *behind = strrchr(text, ')');
    char state = behind && behind[1] == ' ' ? behind[2] : 0;
    free(text);
    return state;
}
