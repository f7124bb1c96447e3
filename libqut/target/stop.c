// SPDX-License-Identifier: Apache-2.0
// Stops a live process and lets it go again. Seized, not attached: no signal is sent, system calls go on as if nothing
// had happened (threads in those that would not are left asleep), a process that was stopped before stays so, and if we
// die, the kernel lets go of everything.
#include <errno.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "libqut/target/live.h"

enum { PATIENCE_US = 20000 };

struct stopping {
    struct qut_target *target;
    size_t known;    // threads before this round, ascending by id
    int worst_error; // of seizing, where it was not that the thread had gone
    bool no_memory;
};

static bool is_known(const struct stopping *stopping, pid_t tid)
{
    size_t low = 0, high = stopping->known;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        pid_t there = stopping->target->threads[middle].info.tid;
        if (there == tid)
            return true;
        if (there < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

// /proc may list a thread twice while others end, and one that is traced cannot be seized again.
static bool is_traced_already(const struct qut_target *target, pid_t tid)
{
    for (size_t i = 0; i + 1 < target->thread_count; i++)
        if (target->threads[i].info.tid == tid && target->threads[i].traced)
            return true;
    return false;
}

// One that has ended, but whose process has not, cannot be seized and needs not be.
static bool has_ended(const struct qut_target *target, pid_t tid, int result)
{
    char state = result == -ESRCH ? 0 : target_live_thread_state(target->source, tid);
    return state == 0 || state == 'Z' || state == 'X';
}

static int ask(void *context, pid_t tid)
{
    struct stopping *stopping = context;
    struct qut_target *target = stopping->target;
    if (is_known(stopping, tid))
        return 0;
    struct qut_target_thread *thread = target_add_thread(target, tid);
    stopping->no_memory |= !thread;
    if (!thread)
        return -1;
    int result = target_live_ask(target, thread);
    if (result == 0)
        return 0;
    if (!has_ended(target, tid, result) && !is_traced_already(target, tid))
        stopping->worst_error = result;
    target->thread_count--;
    return 0;
}

// Every thread is asked before any is waited for. One that was asked to stop can have started another before it did.
static void ask_all(struct stopping *stopping)
{
    struct qut_target *target = stopping->target;
    const struct target_live *live = target->source;
    for (;;) {
        size_t before = target->thread_count;
        stopping->known = before;
        int result = target_live_each_tid(live->pid, ask, stopping);
        if (result == -ENOENT || target->thread_count == before || stopping->worst_error || stopping->no_memory)
            break;
        target_live_await_all(target, target->threads + before, target->thread_count - before);
        target_sort_threads(target);
    }
}

static int note(void *context, pid_t tid)
{
    struct stopping *stopping = context;
    stopping->no_memory |= !target_add_thread(stopping->target, tid);
    return stopping->no_memory ? -1 : 0;
}

// Only one is stopped, for a moment: it tells whether we may.
static void note_all(struct stopping *stopping)
{
    struct qut_target *target = stopping->target;
    const struct target_live *live = target->source;
    target_live_each_tid(live->pid, note, stopping);
    target_sort_threads(target);
    for (size_t i = 0; i < target->thread_count; i++) {
        struct qut_target_thread *thread = &target->threads[i];
        int result = target_live_ask(target, thread);
        if (result == 0 && thread->traced)
            target_live_await_all(target, thread, 1);
        target_live_resume_thread(target, thread);
        thread->state = TARGET_REGISTERS_UNREAD;
        thread->info.asleep_in = NULL;
        if (result == 0) {
            stopping->worst_error = 0; // the one before was about to end
            break;
        }
        if (!has_ended(target, thread->info.tid, result))
            stopping->worst_error = result;
    }
    target->longest_ns = 0;
}

static void drop_gone(struct qut_target *target)
{
    size_t kept = 0;
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].traced || target->threads[i].state != TARGET_REGISTERS_UNREAD)
            target->threads[kept++] = target->threads[i];
    target->thread_count = kept;
}

static int explain(struct qut_target *target, const struct stopping *stopping, struct qut_target_error *error)
{
    const struct target_live *live = target->source;
    int pid = (int)live->pid;
    if (stopping->no_memory)
        return target_fail(error, "%d: out of memory", pid);
    if (stopping->worst_error) {
        long tracer = target_live_status_number(live->pid, "TracerPid");
        if (tracer > 0)
            return target_fail(error, "%d: is being traced by %ld", pid, tracer);
        return target_live_fail(error, live->pid, stopping->worst_error);
    }
    return target_fail(error, "%d: has ended", pid);
}

int target_live_stop(struct qut_target *target, struct qut_target_error *error)
{
    struct stopping stopping = {.target = target};
    struct target_live *live = target->source;
    // What takes long is done while it runs.
    if (target_live_refresh_maps(target, error) != 0)
        return -1;
    for (size_t i = 0; i < target->range_count; i++)
        if (target->ranges[i].image->is_elf)
            target_make_table(target, target->ranges[i].image);

    target->thread_count = 0;
    live->patience_us = PATIENCE_US;
    target->stop_began_ns = os_now_ns();
    if (target->one_by_one) {
        note_all(&stopping);
    } else {
        ask_all(&stopping);
        drop_gone(target);
    }
    if (stopping.worst_error || stopping.no_memory || target->thread_count == 0) {
        explain(target, &stopping, error);
        qut_target_resume(target);
        target->thread_count = 0;
        return -1;
    }
    target->stopped = true;
    for (size_t i = 0; i < target->thread_count; i++) {
        struct qut_target_thread *thread = &target->threads[i];
        if (thread->traced && !thread->stopped)
            thread->state = TARGET_REGISTERS_NONE;
        thread->info.signal_number = thread->pending_signal;
    }
    if (target_live_refresh_maps(target, error) != 0) {
        qut_target_resume(target);
        return -1;
    }
    return 0;
}
