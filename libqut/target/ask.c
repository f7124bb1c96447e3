// SPDX-License-Identifier: Apache-2.0
// One thread of a live process: asked to stop, or left asleep where being stopped would do harm; and let go.
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "libqut/target/live.h"

enum {
    REGISTERS_BYTES_MAX = 1024,
    WAIT_US = 50,
    WAIT_FIRST_US = 10,
    WAIT_LAST_US = 1000,
    WAIT_MAX_NS = 2000000000,
    LOOK_FROM_NS = 1000000,
    NAP_US = 1000,
    YIELDS = 64
};
#ifndef NT_ARM_PAC_MASK
enum { NT_ARM_PAC_MASK = 0x406 };
#endif

// Where the system call would return EINTR because of us. Also where nothing but the end of it wakes the thread (a
// parent in vfork, a dead file server): once asked to stop it could not be let go before that end.
static bool stays_asleep(struct qut_target *target, struct qut_target_thread *thread)
{
    const struct target_live *live = target->source;
    pid_t tid = thread->info.tid;
    struct target_sleep sleep;
    if (!target_live_look(live, tid, &sleep))
        return false;
    const char *call = "";
    enum target_wake wake = target_live_wake(target, tid, &sleep, &call);
    if (wake == TARGET_WAKE_SEEN && !target->interrupt) {
        // SIGSTOP has ended its call already.
        thread->keeps_result = target_live_thread_state(live, tid) == 'T';
        if (thread->keeps_result || target_live_can_mend(target->arch, &sleep) ||
            (target->restart_calls && strcmp(call, "ioctl") != 0))
            return false;
        target_live_fall_asleep(target, thread, &sleep, call);
        return true;
    }
    if (wake == TARGET_WAKE_UNSEEN || target_live_thread_state(live, tid) != 'D')
        return false;
    target_live_fall_asleep(target, thread, &sleep, "");
    return true;
}

int target_live_ask(struct qut_target *target, struct qut_target_thread *thread)
{
    // Between this and the interruption the thread can fall asleep in a call that does not begin anew as if nothing had
    // been: the two are kept as near to each other as they can be. Seizing first would not help: what is seized must be
    // interrupted to be let go.
    thread->keeps_result = false;
    if (stays_asleep(target, thread))
        return 0;
    thread->keeps_result |= target->interrupt;
    int result = os_trace_seize(thread->info.tid);
    if (result != 0)
        return result;
    os_trace_interrupt(thread->info.tid);
    thread->traced = true;
    return 0;
}

// At once: if we are killed, the call goes on all the same.
static void mend_call(const struct qut_target *target, const struct qut_target_thread *thread)
{
    const struct arch_register_layout *layout = target->arch->core_registers;
    uint8_t bytes[REGISTERS_BYTES_MAX];
    size_t size = sizeof bytes;
    if (!thread->keeps_result && layout && os_trace_registers(thread->info.tid, NT_PRSTATUS, bytes, &size) == 0 &&
        size == layout->size_bytes && target_live_mend_call(target->arch, bytes))
        os_trace_set_registers(thread->info.tid, NT_PRSTATUS, bytes, size);
}

// Another part of this process may have begun the target, and asks how it ended: `qut trace` looks at a command's
// threads while that ends, and had the answer in its place.
static enum os_stop wait_for(const struct qut_target *target, const struct qut_target_thread *thread, bool block,
                             int *signal_number)
{
    const struct target_live *live = target->source;
    if (live->is_child && thread->info.tid == live->pid)
        return os_trace_wait_once(thread->info.tid, block, true, signal_number);
    return os_trace_wait(thread->info.tid, block, signal_number);
}

static void await(const struct qut_target *target, struct qut_target_thread *thread, bool block)
{
    int signal_number;
    switch (wait_for(target, thread, block, &signal_number)) {
    case OS_STOP_NONE: break;
    case OS_STOP_ASKED: thread->stopped = true; break;
    case OS_STOP_SIGNAL:
        thread->stopped = true;
        thread->pending_signal = signal_number;
        break;
    case OS_STOP_GONE: thread->traced = false; break;
    }
    if (thread->stopped)
        mend_call(target, thread);
}

// The first thread of a process can have ended after it was asked (pthread_exit). While others live nobody is told of
// that: it neither stops nor is it gone. Its state tells.
static void look_for_ended(const struct qut_target *target, struct qut_target_thread *thread)
{
    const struct target_live *live = target->source;
    if (thread->info.tid != live->pid || !thread->traced || thread->stopped ||
        target_live_thread_state(live, live->pid) != 'Z')
        return;
    await(target, thread, false); // all of them have ended meanwhile: its parent is told once we know
    thread->traced = false;
}

// A quarter of what was waited for already. Where this thread goes first, one that looks every 10 us takes the most of
// a processor from the very threads that it waits for: seen with 20 programs on 2 processors, where 8 threads did not
// get to where they stop within 2 seconds, and did so in 50 ms where it slept.
static unsigned next_nap_us(const struct qut_target *target, uint64_t waited_ns)
{
    const uint64_t least_us = target->goes_first ? WAIT_FIRST_US : WAIT_US, nap_us = waited_ns / 4000;
    return (unsigned)(nap_us < least_us ? least_us : nap_us < WAIT_LAST_US ? nap_us : WAIT_LAST_US);
}

void target_live_await_all(const struct qut_target *target, struct qut_target_thread *threads, size_t count)
{
    uint64_t start_ns = os_now_ns();
    unsigned yields = 0; // a thread that can run stops within microseconds, far less than the shortest sleep
    for (size_t i = 0; i < count;) {
        struct qut_target_thread *thread = &threads[i];
        if (thread->traced && !thread->stopped)
            await(target, thread, false);
        const uint64_t waited_ns = os_now_ns() - start_ns;
        if (waited_ns > LOOK_FROM_NS)
            look_for_ended(target, thread);
        // Those after one that does not stop in time are still asked once.
        if (!thread->traced || thread->stopped || waited_ns > WAIT_MAX_NS)
            i++;
        else if (!target->goes_first && yields++ < YIELDS)
            os_yield();
        else
            os_sleep_us(next_nap_us(target, waited_ns));
    }
}

bool target_live_retake(struct qut_target *target, struct qut_target_thread *thread)
{
    struct target_live *live = target->source;
    if (!target->stopped)
        return false;
    // What waits for a disk is given the time that a disk needs.
    while (thread->info.asleep_in && !*thread->info.asleep_in && live->patience_us >= NAP_US &&
           target_live_thread_state(live, thread->info.tid) == 'D') {
        os_sleep_us(NAP_US);
        live->patience_us -= NAP_US;
    }
    thread->state = TARGET_REGISTERS_UNREAD;
    thread->info.asleep_in = NULL;
    target->taken_ns = os_now_ns();
    if (target_live_ask(target, thread) == 0 && thread->state == TARGET_REGISTERS_ASLEEP)
        return true;
    target_live_await_all(target, thread, 1);
    thread->info.signal_number = thread->pending_signal;
    thread->state = target_live_registers(target, thread) ? TARGET_REGISTERS_READ : TARGET_REGISTERS_NONE;
    return thread->state == TARGET_REGISTERS_READ;
}

void target_live_resume_thread(struct qut_target *target, struct qut_target_thread *thread)
{
    if (!thread->traced)
        return;
    // One that did not stop cannot be let go before it does.
    while (thread->traced && !thread->stopped) {
        const bool is_first = thread->info.tid == ((const struct target_live *)target->source)->pid;
        await(target, thread, !is_first);
        look_for_ended(target, thread);
        if (is_first && thread->traced && !thread->stopped)
            os_sleep_us(WAIT_LAST_US);
    }
    if (thread->traced)
        os_trace_detach(thread->info.tid, thread->pending_signal);
    thread->traced = thread->stopped = false;
    uint64_t stopped_ns = target->one_by_one ? os_now_ns() - target->taken_ns : 0;
    if (stopped_ns > target->longest_ns)
        target->longest_ns = stopped_ns;
    if (thread->state == TARGET_REGISTERS_UNREAD)
        thread->state = TARGET_REGISTERS_NONE;
}

bool target_live_registers(struct qut_target *target, struct qut_target_thread *thread)
{
    const struct arch_register_layout *layout = target->arch->core_registers;
    uint8_t bytes[REGISTERS_BYTES_MAX];
    size_t size = sizeof bytes;
    // The kernel gives 32-bit registers of a 32-bit thread: a set of another size is of another mode.
    if (!thread->stopped || !layout || os_trace_registers(thread->info.tid, NT_PRSTATUS, bytes, &size) != 0 ||
        size != layout->size_bytes)
        return false;
    arch_registers_from_block(layout, bytes, &thread->regs);
    thread->is_newborn = target_live_has_just_begun(target, bytes);
    thread->thread_pointer = target_core_word(target->arch, bytes, target->arch->core_thread_pointer_offset);
    thread->art_thread = target_art_thread(target->arch, bytes);

    uint64_t masks[2]; // of data and of code addresses
    size = sizeof masks;
    if (target->arch->has_signed_ra && os_trace_registers(thread->info.tid, NT_ARM_PAC_MASK, masks, &size) == 0 &&
        size == sizeof masks && !target->pac_mask_given)
        target->pac_mask = masks[1];
    return true;
}
