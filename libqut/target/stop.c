// SPDX-License-Identifier: Apache-2.0
// Stops a live process and lets it go again. Seized, not attached: no signal is sent, system calls go on as if nothing
// had happened, a process that was stopped before stays so, and if we die, the kernel lets go of everything.
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "libqut/target/process.h"

enum {
    REGISTERS_BYTES_MAX = 1024,
    WAIT_US = 50,
    WAIT_MAX_NS = 2000000000, // for a thread that sleeps where nothing wakes it
    ROUNDS_MAX = 1000,        // of looking for new threads
    STUCK_MAX = 64,
    STUCK_US = 20000,
};
#ifndef NT_ARM_PAC_MASK
enum { NT_ARM_PAC_MASK = 0x406 };
#endif

struct stopping {
    struct qut_target *target;
    size_t known;    // threads before this round, ascending by id
    int worst_error; // of seizing, where it was not that the thread had gone
    bool no_memory;
    // Threads that sleep where nothing but the end of it wakes them (a parent in vfork, a dead file server). Once
    // asked to stop they could not be let go before that end: they are left alone.
    pid_t stuck[STUCK_MAX];
    size_t stuck_count;
};

static int note_stuck(void *context, pid_t tid)
{
    struct stopping *stopping = context;
    const struct qut_live *live = stopping->target->source;
    if (stopping->stuck_count < STUCK_MAX && qut_live_thread_state(live->pid, tid) == 'D')
        stopping->stuck[stopping->stuck_count++] = tid;
    return 0;
}

static void find_stuck(struct stopping *stopping)
{
    const struct qut_live *live = stopping->target->source;
    qut_live_each_tid(live->pid, note_stuck, stopping);
    if (stopping->stuck_count == 0)
        return;
    qut_os_sleep_us(STUCK_US); // a disk is faster
    size_t kept = 0;
    for (size_t i = 0; i < stopping->stuck_count; i++)
        if (qut_live_thread_state(live->pid, stopping->stuck[i]) == 'D')
            stopping->stuck[kept++] = stopping->stuck[i];
    stopping->stuck_count = kept;
}

static bool is_stuck(const struct stopping *stopping, pid_t tid)
{
    for (size_t i = 0; i < stopping->stuck_count; i++)
        if (stopping->stuck[i] == tid)
            return true;
    return false;
}

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

static int seize(void *context, pid_t tid)
{
    struct stopping *stopping = context;
    struct qut_target *target = stopping->target;
    const struct qut_live *live = target->source;
    if (is_known(stopping, tid))
        return 0;
    if (is_stuck(stopping, tid)) {
        struct qut_target_thread *thread = qut_target_add_thread(target, tid);
        stopping->no_memory |= !thread;
        if (thread)
            thread->state = qut_live_fall_asleep(target, thread) ? QUT_REGISTERS_ASLEEP : QUT_REGISTERS_NONE;
        return thread ? 0 : -1;
    }
    int result = qut_os_trace_seize(tid);
    if (result != 0) {
        char state = qut_live_thread_state(live->pid, tid);
        // One that has ended, but whose process has not, cannot be seized and needs not be.
        if (result != -ESRCH && state != 0 && state != 'Z' && state != 'X')
            stopping->worst_error = result;
        return 0;
    }
    struct qut_target_thread *thread = qut_target_add_thread(target, tid);
    if (!thread) {
        stopping->no_memory = true;
        qut_os_trace_interrupt(tid);
        int signal_number;
        if (qut_os_trace_wait(tid, true, &signal_number) != QUT_OS_STOP_GONE)
            qut_os_trace_detach(tid, signal_number);
        return -1;
    }
    thread->traced = true;
    qut_os_trace_interrupt(tid);
    return 0;
}

// Every thread is asked before any is waited for.
static void seize_all(struct stopping *stopping)
{
    const struct qut_live *live = stopping->target->source;
    for (unsigned round = 0; round < ROUNDS_MAX && !stopping->worst_error && !stopping->no_memory; round++) {
        stopping->known = stopping->target->thread_count;
        int result = qut_live_each_tid(live->pid, seize, stopping);
        if (result == -ENOENT || stopping->target->thread_count == stopping->known)
            return;
        qut_target_sort_threads(stopping->target);
    }
}

static void wait_for(struct qut_target_thread *thread, bool block)
{
    int signal_number;
    switch (qut_os_trace_wait(thread->info.tid, block, &signal_number)) {
    case QUT_OS_STOP_NONE: break;
    case QUT_OS_STOP_ASKED: thread->stopped = true; break;
    case QUT_OS_STOP_SIGNAL:
        thread->stopped = true;
        thread->pending_signal = signal_number;
        break;
    case QUT_OS_STOP_GONE: thread->traced = false; break;
    }
}

static void wait_for_all(struct qut_target *target)
{
    uint64_t start_ns = qut_os_now_ns();
    for (;;) {
        bool all = true;
        for (size_t i = 0; i < target->thread_count; i++) {
            struct qut_target_thread *thread = &target->threads[i];
            if (thread->traced && !thread->stopped)
                wait_for(thread, false);
            all &= !thread->traced || thread->stopped;
        }
        if (all || qut_os_now_ns() - start_ns > WAIT_MAX_NS)
            return;
        qut_os_sleep_us(WAIT_US);
    }
}

static void drop_gone(struct qut_target *target)
{
    size_t kept = 0;
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].traced || target->threads[i].state != QUT_REGISTERS_UNREAD)
            target->threads[kept++] = target->threads[i];
    target->thread_count = kept;
}

static int explain(struct qut_target *target, const struct stopping *stopping, struct qut_target_error *error)
{
    const struct qut_live *live = target->source;
    int pid = (int)live->pid;
    if (stopping->no_memory)
        return qut_target_fail(error, "%d: out of memory", pid);
    if (stopping->worst_error) {
        long tracer = qut_live_status_number(live->pid, "TracerPid");
        if (tracer > 0)
            return qut_target_fail(error, "%d: is being traced by %ld", pid, tracer);
        return qut_live_fail(error, live->pid, stopping->worst_error);
    }
    return qut_target_fail(error, "%d: has ended", pid);
}

int qut_live_stop(struct qut_target *target, struct qut_target_error *error)
{
    struct stopping stopping = {.target = target};
    // What takes long is done while it runs.
    if (qut_live_refresh_maps(target, error) != 0)
        return -1;
    for (size_t i = 0; i < target->range_count; i++)
        if (target->ranges[i].image->is_elf)
            qut_target_make_table(target, target->ranges[i].image);

    target->thread_count = 0;
    target->stop_began_ns = qut_os_now_ns();
    find_stuck(&stopping);
    // A thread that was asked to stop can have started another one before it did.
    for (size_t before = SIZE_MAX; before != target->thread_count;) {
        before = target->thread_count;
        seize_all(&stopping);
        wait_for_all(target); // one that does not stop in time has no registers
    }
    drop_gone(target);
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
            thread->state = QUT_REGISTERS_NONE;
        thread->info.signal_number = thread->pending_signal;
    }
    if (qut_live_refresh_maps(target, error) != 0) {
        qut_target_resume(target);
        return -1;
    }
    return 0;
}

void qut_live_resume_thread(struct qut_target *target, struct qut_target_thread *thread)
{
    (void)target;
    if (!thread->traced)
        return;
    // One that did not stop cannot be let go before it does.
    while (thread->traced && !thread->stopped)
        wait_for(thread, true);
    if (thread->traced)
        qut_os_trace_detach(thread->info.tid, thread->pending_signal);
    thread->traced = thread->stopped = false;
    if (thread->state == QUT_REGISTERS_UNREAD)
        thread->state = QUT_REGISTERS_NONE;
}

bool qut_live_registers(struct qut_target *target, struct qut_target_thread *thread)
{
    const struct qut_register_layout *layout = target->arch->core_registers;
    uint8_t bytes[REGISTERS_BYTES_MAX];
    size_t size = sizeof bytes;
    // The kernel gives 32-bit registers of a 32-bit thread: a set of another size is of another mode.
    if (!thread->stopped || !layout || qut_os_trace_registers(thread->info.tid, NT_PRSTATUS, bytes, &size) != 0 ||
        size != layout->size_bytes)
        return false;
    qut_registers_from_block(layout, bytes, &thread->regs);

    uint64_t masks[2]; // of data and of code addresses
    size = sizeof masks;
    if (target->arch->has_signed_ra && qut_os_trace_registers(thread->info.tid, NT_ARM_PAC_MASK, masks, &size) == 0 &&
        size == sizeof masks && !target->pac_mask_given)
        target->pac_mask = masks[1];
    return true;
}
