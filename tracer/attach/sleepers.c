// SPDX-License-Identifier: Apache-2.0
// Threads that wait (with options->wall). They are not stopped: a thread that sleeps leaves its stack alone, and the
// count of its turns on a processor says whether it slept all the while. Where it was is stored once for each sleep,
// when it is seen first; and when it has ended, once more, with how long it took. Sleeps that no round meets are not
// seen: of those that one does, as many as is their share of time.
#include <string.h>

#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "tracer/attach/inside.h"

enum {
    FUTEX_COMMAND = 0x7f,
    FUTEX_WAIT_COMMAND = 0,
    LOCKED_WITH_WAITERS = 2, // glibc: of a mutex's word
    OWNER_WORD = 2,          // int32_t: lock, count, owner
    MUTEX_WORDS = 5,
    TURNS_OF_A_STOP = 2, // on a processor, which a stop of a sleeper takes
};

// ---- locks

// The thread that holds the mutex that another one waits for; 0: it is none, or its holder is not known.
static pid_t owner_of(const struct attach_session *session, const struct target_sleep *sleep)
{
    int32_t words[MUTEX_WORDS];
    const struct target_live *live = attach_live(session);
    const struct arch_call *call = arch_call(session->target->arch->id, sleep->number);
    if (!call || strncmp(call->name, "futex", 5) != 0 || strcmp(call->name, "futex_waitv") == 0 ||
        (sleep->argument[1] & FUTEX_COMMAND) != FUTEX_WAIT_COMMAND || sleep->argument[2] != LOCKED_WITH_WAITERS)
        return 0;
    if (os_read_process(live->memory_tid, live->memory_fd, sleep->argument[0], words, sizeof words) != sizeof words ||
        words[0] != LOCKED_WITH_WAITERS)
        return 0;
    // What is no mutex has something else there.
    for (size_t i = 0; i < session->threads.count; i++)
        if (!session->threads.items[i].is_gone && session->threads.items[i].inner_tid == words[OWNER_WORD])
            return session->threads.items[i].tid;
    return 0;
}

static uint32_t lock_extras(const struct attach_thread *thread, struct segment_extra extras[2])
{
    if (thread->sleep_owner == 0)
        return 0;
    extras[0] = (struct segment_extra){.key = QUT_TRACE_EXTRA_LOCK, .value = thread->sleep_lock};
    extras[1] =
        (struct segment_extra){.key = QUT_TRACE_EXTRA_OWNER_TID, .value = (uint64_t)(uint32_t)thread->sleep_owner};
    return 2;
}

// ---- one sleep

void attach_sleep_ends(struct attach_session *session, struct attach_thread *thread)
{
    struct segment_extra extras[3];
    if (!thread->sleeps)
        return;
    thread->sleeps = false;
    extras[0] =
        (struct segment_extra){.key = QUT_TRACE_EXTRA_DURATION_NS, .value = session->now_ns - thread->sleep_begin_ns};
    const struct attach_sample sample = {
        .end = thread->sleep_end,
        .kind = thread->sleep_kind,
        .flags = QUT_TRACE_SAMPLE_OFF_CPU,
        .time_ns = session->now_ns,
        .extras = extras,
        .extra_count = 1 + lock_extras(thread, extras + 1),
    };
    attach_store_node(session, thread, thread->sleep_node, &sample);
    session->result->intervals++;
}

// Whether it slept since *sleep was read, and so the copy of its stack is of one moment.
static bool slept_on(struct attach_session *session, struct attach_thread *thread, const struct target_sleep *sleep)
{
    struct target_sleep now;
    bool moved, runs;
    return attach_look(session, thread, &moved) && !moved && attach_state(session, thread, &now, &runs) && !runs &&
           strcmp(now.text, sleep->text) == 0;
}

// Only pc and sp are known of a sleeper, and what it told before. Where that is not enough it is stopped after all,
// once for this sleep, if nothing in it notices that.
static bool walk_sleeper(struct attach_session *session, struct attach_thread *thread, const struct target_sleep *sleep,
                         struct attach_sample *sample)
{
    struct arch_frame_regs *regs = &session->taken.regs;
    struct attach_result *result = session->result;
    uint64_t looked_ns = os_now_ns();
    const char *name;
    thread->sleep_is_poked = false;
    attach_python_prepare(session, thread);
    attach_v8_prepare(session);
    attach_copy_stack(session, thread, sleep->sp);
    attach_python_take(session, thread);
    attach_v8_take(session);
    if (!slept_on(session, thread, sleep)) {
        result->missed_woke++;
        return false;
    }
    session->taken.block_bytes = 0;
    *regs = (struct arch_frame_regs){.pc = sleep->pc, .valid = (uint64_t)1 << session->target->arch->sp_reg};
    regs->reg[session->target->arch->sp_reg] = sleep->sp;
    sample->frame_count = attach_walk(session, thread, &sample->end);
    result->asleep++;
    bool needs_more = sample->end.reason == QUT_END_NO_REGISTER ||
                      (sample->end.reason == QUT_END_REFUSED && (sample->end.refusal == QUT_REFUSED_STACK_SWITCH ||
                                                                 sample->end.refusal == QUT_REFUSED_INSTRUMENTED));
    if (!needs_more || target_live_wake(session->target, thread->tid, sleep, &name) != TARGET_WAKE_UNSEEN)
        return true;
    result->asleep--;
    if (attach_take(session, thread, looked_ns) != ATTACH_TOOK) {
        result->missed_woke++;
        return false;
    }
    bool moved;
    attach_look(session, thread, &moved);
    thread->sleep_is_poked = true;
    sample->frame_count = attach_walk(session, thread, &sample->end);
    return true;
}

static void begin_sleep(struct attach_session *session, struct attach_thread *thread, const struct target_sleep *sleep)
{
    struct segment_extra extras[2];
    struct attach_sample sample = {.is_asleep = true};
    thread->sleep_owner = owner_of(session, sleep);
    thread->sleep_lock = sleep->argument[0];
    if (!walk_sleeper(session, thread, sleep, &sample)) {
        thread->missed++;
        return;
    }
    thread->sleeps = true;
    thread->sleep_begin_ns = session->now_ns;
    thread->sleep_slices = thread->slices;
    thread->sleep_sp = sleep->sp;
    thread->sleep_pc = sleep->pc;
    thread->sleep_end = sample.end;
    thread->sleep_kind = thread->sleep_owner   ? (uint16_t)QUT_TRACE_KIND_LOCK
                         : sleep->number == -1 ? (uint16_t)QUT_TRACE_KIND_WALL
                                               : attach_kind_of_call(session->target->arch->id, sleep);
    sample.kind = thread->sleep_kind;
    sample.flags = QUT_TRACE_SAMPLE_OFF_CPU | QUT_TRACE_SAMPLE_BEGINS;
    sample.time_ns = session->now_ns;
    sample.extras = extras;
    sample.extra_count = lock_extras(thread, extras);
    thread->sleep_node = attach_store_sample(session, thread, &sample);
    thread->taken++;
    session->result->taken++;
}

static bool is_same_sleep(struct attach_thread *thread, const struct target_sleep *sleep)
{
    if (!thread->sleeps)
        return false;
    uint64_t turns = thread->slices - thread->sleep_slices;
    bool is_ours = thread->sleep_is_poked && turns <= TURNS_OF_A_STOP && sleep->sp == thread->sleep_sp &&
                   sleep->pc == thread->sleep_pc;
    if (is_ours) { // what woke it was our stop
        thread->sleep_slices = thread->slices;
        thread->sleep_is_poked = false;
    }
    return turns == 0 || is_ours;
}

void attach_sleeper(struct attach_session *session, struct attach_thread *thread, const struct target_sleep *sleep)
{
    if (is_same_sleep(thread, sleep)) {
        thread->covered++;
        session->result->covered++;
        return;
    }
    attach_sleep_ends(session, thread);
    begin_sleep(session, thread, sleep);
}
