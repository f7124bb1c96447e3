// SPDX-License-Identifier: Apache-2.0
// Threads begin in a function of ours, which gives them their ticks before theirs runs.
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/blocked.h"
#include "agent/calls/calls.h"
#include "agent/hide.h"
#include "agent/inside.h"
#include "agent/real.h"
#include "agent/thread_start.h"
#include "agent/traced_calls.h"
#include "agent/waiting.h"
#include "libqut/host/host.h"

enum {
    // What a tick takes of a thread's stack, at most: the kernel's frame with all vector registers, and the walk.
    TICK_STACK_BYTES = 24 << 10,
    SMALL_STACK_BYTES = 64 << 10, // those that are larger have that much to spare
};

struct start {
    void *(*function)(void *);
    int (*c11_function)(void *);
    void *argument;
    bool hides_mask; // inherited
    bool is_agents;
    bool has_no_room; // for ticks, on a stack that the program made
};

// ---- our own threads

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static bool is_ours(const void *function)
{
    return (uintptr_t)function >= (uintptr_t)__ehdr_start && (uintptr_t)function < (uintptr_t)_end;
}

static _Atomic uint32_t agents_tid;

uint32_t agent_threads_own_tid(void)
{
    return atomic_load_explicit(&agents_tid, memory_order_relaxed);
}

void agent_threads_set_own_tid(uint32_t tid)
{
    atomic_store_explicit(&agents_tid, tid, memory_order_relaxed);
}

// A thread of ours has a table of descriptors of its own, which begins empty: what it opens takes no number from the
// program, and no look finds it. And its own working directory, since setns wants that not to be shared.
void agent_threads_begin_own(void)
{
    enum { UNSHARE = 2 }; // CLOSE_RANGE_UNSHARE: Linux 5.9. Before, its descriptors are the program's for moments
    agent_thread.is_agents = 1;
    calls_thread_is_agents();
    atomic_store_explicit(&agents_tid, agent_tid(), memory_order_relaxed);
    syscall(SYS_close_range, 0u, ~0u, UNSHARE);
    agent_real()->unshare(CLONE_FS);
}

// ---- beginning and end

static pthread_key_t end_key;
static _Atomic bool has_end_key;

// Each of them, whatever is due: how long a thread was there is of interest, and there are few.
static void take(uint32_t kind)
{
    struct qut_event event = {.kind = kind, .flags = QUT_EVENT_ON_CPU, .skip_frames = 1};
    qut_sync_take(&event);
}

// A process ends with its last thread, but libqut's own would stay: it goes first. The program's threads, beginning
// with the one that starts or forks; those that libc makes for itself are not known here, and do without libqut's.
static _Atomic uint32_t live_count;
static _Atomic uint32_t is_paused; // a word: riscv64 exchanges nothing smaller without a library of its own

static void last_ends(void)
{
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    agent_traced_calls_leave();
    atomic_store_explicit(&is_paused, 1, memory_order_relaxed);
    modules_registry_pause_thread();
    agent_quiet_end(&quiet);
}

static void thread_ends(void *value)
{
    (void)value;
    if (!agent_is_on_here())
        return;
    if (agent_enter(AGENT_SYNC_THREAD)) {
        take(QUT_SAMPLE_THREAD_END);
        agent_leave();
    }
    agent_blocked_thread_ends();
    calls_thread_ends();
    if (atomic_fetch_sub_explicit(&live_count, 1, memory_order_acq_rel) == 1)
        last_ends();
}

void agent_threads_count_from(void)
{
    atomic_store_explicit(&live_count, 1, memory_order_relaxed);
    if (has_end_key)
        pthread_setspecific(end_key, &end_key);
}

// Keys are cleared in the order in which they were made: ours comes before libqut's, which lets go of the thread.
// Loaded into a program that runs, the agent is unloaded before the program ends.
__attribute__((destructor)) static void delete_end_key(void)
{
    if (has_end_key)
        pthread_key_delete(end_key);
    has_end_key = false;
}

void agent_threads_prepare(void)
{
    if (!has_end_key && pthread_key_create(&end_key, thread_ends) == 0)
        has_end_key = true;
}

static _Atomic uint64_t without_room;

uint64_t agent_threads_without_room(void)
{
    return atomic_load_explicit(&without_room, memory_order_relaxed);
}

void agent_threads_after_fork(void)
{
    atomic_store_explicit(&without_room, 0, memory_order_relaxed);
    agent_threads_go_on();
    agent_threads_count_from();
}

void agent_threads_hold(void)
{
    atomic_store_explicit(&without_room, 0, memory_order_relaxed);
    atomic_store_explicit(&is_paused, 1, memory_order_relaxed);
    modules_registry_pause_thread();
    agent_threads_count_from();
}

void agent_threads_go_on(void)
{
    if (atomic_exchange_explicit(&is_paused, 0, memory_order_relaxed))
        modules_registry_resume_thread();
}

static void begin(const struct start *start)
{
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    if (start->has_no_room)
        atomic_fetch_add_explicit(&without_room, 1, memory_order_relaxed);
    else
        agent_ticks_begin();
    calls_thread_is(agent_tid());
    agent_thread.hidden_mask = start->hides_mask;
    uint64_t without = agent_hide_blocked(quiet.blocked);
    agent_thread.hidden_mask |= start->hides_mask;
    quiet.blocked = without;
    if (has_end_key)
        pthread_setspecific(end_key, &end_key);
    agent_threads_go_on();
    agent_quiet_end(&quiet);
    if (agent_enter(AGENT_SYNC_THREAD)) {
        take(QUT_SAMPLE_THREAD_START);
        agent_leave();
    }
}

static struct start take_over(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    if (start.is_agents)
        agent_threads_begin_own();
    else
        begin(&start);
    return start;
}

static void *run(void *argument)
{
    struct start start = take_over(argument);
    return start.function(start.argument);
}

static int run_c11(void *argument)
{
    struct start start = take_over(argument);
    return start.c11_function(start.argument);
}

// ---- hooks

static void drop_start(struct start *start)
{
    if (!start->is_agents)
        atomic_fetch_sub_explicit(&live_count, 1, memory_order_relaxed);
    free(start);
}

static struct start *make_start(const void *function, void *argument)
{
    bool is_agents = is_ours(function);
    if (!is_agents)
        agent_wait_no_more();
    if (!is_agents && !agent_is_on_here())
        return NULL;
    struct start *start = malloc(sizeof *start); // our own memory: libc's makes each thread that frees some an arena
    if (start)
        *start =
            (struct start){.argument = argument, .hides_mask = agent_thread.hidden_mask != 0, .is_agents = is_agents};
    if (start && !is_agents)
        atomic_fetch_add_explicit(&live_count, 1, memory_order_relaxed);
    return start;
}

// A stack that libc makes, and that has no room for our ticks beside what the program expects of it, is made larger.
// The copy is used for one call only, and what the original points to lives as long.
static const pthread_attr_t *with_room(const pthread_attr_t *attributes, pthread_attr_t *copy, bool *has_no_room)
{
    void *address = NULL;
    size_t size = 0;
    if (!attributes || pthread_attr_getstacksize(attributes, &size) != 0 || size >= SMALL_STACK_BYTES)
        return attributes;
    *has_no_room = true;
    if (pthread_attr_getstack(attributes, &address, &size) == 0 && (uintptr_t)address + size != 0)
        return attributes; // the program's own memory
    *copy = *attributes;
    if (pthread_attr_setstacksize(copy, size + TICK_STACK_BYTES) != 0)
        return attributes;
    *has_no_room = false;
    return copy;
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
                            void *argument)
{
    const struct agent_real *real = agent_real();
    struct start *start = make_start((const void *)(uintptr_t)function, argument);
    if (!start)
        return real->pthread_create(thread, attributes, function, argument);
    start->function = function;
    pthread_attr_t copy;
    if (!start->is_agents)
        attributes = with_room(attributes, &copy, &start->has_no_room);
    int error = real->pthread_create(thread, attributes, run, start);
    if (error != 0)
        drop_start(start);
    return error;
}

EXPORTED int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    const struct agent_real *real = agent_real();
    struct start *start = make_start((const void *)(uintptr_t)function, argument);
    if (!start)
        return real->thrd_create(thread, function, argument);
    start->c11_function = function;
    int error = real->thrd_create(thread, run_c11, start);
    if (error != thrd_success)
        drop_start(start);
    return error;
}
