// SPDX-License-Identifier: Apache-2.0
// Threads of a process that are not stopped: those that sleep in a system call, as /proc/PID/task/TID/syscall tells.
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/process.h"
#include "libqut/target/live.h"

enum { STAT_BYTES = 1024 };

static bool read_task(const struct target_live *live, pid_t tid, const char *name, char *text, size_t size)
{
    int fd = os_open_task_file(live->tasks_fd, tid, name);
    if (fd < 0)
        return false;
    bool got = os_read_line(fd, text, size);
    os_close_file(fd);
    return got;
}

static bool take_number(const char **at, int base, uint64_t *number)
{
    char *end;
    *number = strtoull(*at, &end, base);
    bool is_number = end != *at;
    *at = end;
    return is_number;
}

// "NR ARG0 ... ARG5 SP PC", or "running", or "-1 SP PC" outside of system calls.
bool target_live_parse_sleep(struct target_sleep *sleep)
{
    uint64_t number;
    const char *at = sleep->text;
    bool good = take_number(&at, 10, &number);
    sleep->number = (long)number;
    for (unsigned i = 0; good && sleep->number != -1 && i < sizeof sleep->argument / sizeof *sleep->argument; i++)
        good = take_number(&at, 16, &sleep->argument[i]);
    return good && take_number(&at, 16, &sleep->sp) && take_number(&at, 16, &sleep->pc);
}

bool target_live_look(const struct target_live *live, pid_t tid, struct target_sleep *sleep)
{
    return read_task(live, tid, "syscall", sleep->text, sizeof sleep->text) && target_live_parse_sleep(sleep);
}

void target_live_fall_asleep(const struct qut_target *target, struct qut_target_thread *thread,
                             const struct target_sleep *sleep, const char *call)
{
    memcpy(thread->asleep, sleep->text, sizeof thread->asleep);
    thread->regs.pc = sleep->pc;
    thread->regs.reg[target->arch->sp_reg] = sleep->sp;
    thread->regs.valid = (uint64_t)1 << target->arch->sp_reg;
    thread->state = TARGET_REGISTERS_ASLEEP;
    thread->info.asleep_in = call;
    // New threads sleep in the call that made them, too, where all processors are busy.
    thread->is_newborn = target_live_is_clone(target->arch, sleep->number);
}

static int add_sleeper(void *context, pid_t tid)
{
    struct qut_target *target = context;
    struct target_sleep sleep;
    if (!target_live_look(target->source, tid, &sleep) || sleep.number == -1)
        return 0;
    struct qut_target_thread *thread = target_add_thread(target, tid);
    if (!thread)
        return -1;
    target_live_fall_asleep(target, thread, &sleep, "");
    return 0;
}

void target_live_list_sleepers(struct qut_target *target)
{
    const struct target_live *live = target->source;
    target->thread_count = 0;
    target_live_each_tid(live->pid, add_sleeper, target);
    target_sort_threads(target);
}

bool target_live_still_asleep(struct qut_target *target, struct qut_target_thread *thread)
{
    struct target_sleep now;
    return target_live_look(target->source, thread->info.tid, &now) && strcmp(now.text, thread->asleep) == 0;
}

char target_live_thread_state(const struct target_live *live, pid_t tid)
{
    char text[STAT_BYTES];
    if (!read_task(live, tid, "stat", text, sizeof text))
        return 0;
    // The name before it can hold anything, parentheses included.
    const char *behind = strrchr(text, ')');
    return behind && behind[1] == ' ' ? behind[2] : 0;
}

void target_live_name_thread(struct qut_target *target, struct qut_target_thread *thread)
{
    char *name = thread->info.name;
    if (!read_task(target->source, thread->info.tid, "comm", name, sizeof thread->info.name))
        *name = '\0';
    name[strcspn(name, "\n")] = '\0';
}
