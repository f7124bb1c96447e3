// SPDX-License-Identifier: Apache-2.0
// Loaded into a program that runs: no hook is called then, since the program's calls are bound already. Threads are
// given ticks by a thread of ours, and it all ends before we are unloaded.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/qut.h>

#include "agent/folder.h"
#include "agent/own_memory.h"
#include "agent/start.h"
#include "agent/tell.h"
#include "agent/thread_start.h"
#include "agent/traced_calls.h"
#include "libqut/host/host.h"

enum {
    ADOPT_MS = 20, // a new thread is without ticks for so long
    // ... where it goes on for ever: looks are rarer the longer no thread has begun
    FOLDER_ADOPT_MS = 100,
    FOLDER_ADOPT_MOST_MS = 800,
    HEARTBEAT_MS = 500, // the recorder is looked for
    WAY_OUT_POLLS = 1000,
    WAY_OUT_US = 1000,
};

EXPORTED int qut_agent_inject(const char *settings);
EXPORTED int qut_agent_eject(void);

static struct os_thread *keeper;
static _Atomic uint32_t is_over;
static int tick_signal;

// Where a thread keeps its arena, as the injector found out: 0 if it did not. glibc would make one for each of
// our threads, and keep it.
static long arena_offset;
static void *main_arena;

static void set_arena(void *arena)
{
    if (arena_offset)
        memcpy((char *)pthread_self() + arena_offset, &arena, sizeof arena);
}

static void own_thread_begins(void)
{
    set_arena(main_arena);
    agent_threads_begin_own();
}

static void own_thread_ends(void)
{
    set_arena(NULL);
}

static void read_arena(const char *settings)
{
    const char *at = strstr(settings, ";a=");
    unsigned long long arena;
    if (at && sscanf(at, ";a=%ld,%llx", &arena_offset, &arena) == 2)
        main_arena = (void *)(uintptr_t)arena;
    else
        arena_offset = 0;
}

// What there is to look at besides new threads; returns in how many ms again, 0: it is over. A recorder that is gone
// takes no samples, and does not unload us: then we only stay. Into a folder we go on without anybody.
static int look_around(void)
{
    if (agent_folder_is_meant())
        return agent_folder_look();
    return agent_tell_is_heard() ? HEARTBEAT_MS : 0;
}

static int adopt_again_in(int adopted, int before_ms)
{
    if (!agent_folder_is_meant())
        return ADOPT_MS;
    if (adopted > 0)
        return FOLDER_ADOPT_MS;
    return before_ms < FOLDER_ADOPT_MOST_MS ? 2 * before_ms : before_ms;
}

static void keep(void *unused)
{
    (void)unused;
    int adopt_ms = FOLDER_ADOPT_MS, since_ms = 0, wait_ms = HEARTBEAT_MS;
    while (!atomic_load_explicit(&is_over, memory_order_acquire)) {
        adopt_ms = adopt_again_in(qut_sampling_adopt_threads(), adopt_ms);
        os_wait(&is_over, 0, adopt_ms);
        since_ms += adopt_ms;
        if (since_ms < wait_ms)
            continue;
        since_ms = 0;
        wait_ms = look_around();
        if (wait_ms)
            continue;
        agent_end();
        qut_stop(); // its thread would wait for ever
        return;
    }
}

// Nobody looks after new threads there.
static void forget_keeper(void)
{
    if (keeper)
        os_thread_forget(keeper);
    keeper = NULL;
}

int qut_agent_inject(const char *settings)
{
    static bool handles_forks;
    if (!handles_forks)
        handles_forks = pthread_atfork(NULL, NULL, forget_keeper) == 0;
    agent_threads_begin_own();
    read_arena(settings);
    os_thread_hooks = (struct os_thread_hooks){own_thread_begins, own_thread_ends};
    atomic_store_explicit(&is_over, 0, memory_order_relaxed);
    int error = agent_begin(settings, AGENT_BEGAN_BY_INJECTION);
    if (error != 0)
        return error;
    tick_signal = qut_sampling_signal();
    // This thread ends at once.
    qut_sampling_thread_end();
    qut_thread_unregister();
    error = os_thread_start(&keeper, keep, NULL);
    if (error != 0) {
        keeper = NULL;
        qut_agent_eject();
    }
    return error;
}

// ---- the end

static bool read_line(uint32_t tid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    if (got < 0)
        return false;
    text[got] = '\0';
    return true;
}

// Whether a thread can be in the last instructions of a handler of ours, which runs with all signals blocked: one that
// runs, or waits for a processor, and blocks the signal.
static bool may_be_inside(uint32_t tid)
{
    char text[4096];
    if (!read_line(tid, "status", text, sizeof text))
        return false;
    const char *state = strstr(text, "\nState:\t"), *blocked = strstr(text, "\nSigBlk:\t");
    if (!state || !blocked || state[8] != 'R')
        return false;
    return tick_signal > 0 && (strtoull(blocked + 9, NULL, 16) >> (tick_signal - 1) & 1);
}

struct way_out {
    uint32_t own_tid, inside;
};

static void look(void *context, uint32_t tid, uint64_t identity)
{
    (void)identity;
    struct way_out *way_out = context;
    way_out->inside += tid != way_out->own_tid && may_be_inside(tid);
}

// False: one blocks the signal by itself and never rests; it cannot be told from one that is inside.
static bool all_are_out(void)
{
    for (unsigned poll = 0; poll < WAY_OUT_POLLS; poll++) {
        struct way_out way_out = {os_thread_id(), 0};
        os_each_task(look, &way_out);
        if (way_out.inside == 0)
            return true;
        usleep(WAY_OUT_US);
    }
    return false;
}

int qut_agent_eject(void)
{
    agent_threads_begin_own();
    atomic_store_explicit(&is_over, 1, memory_order_release);
    os_wake(&is_over);
    if (keeper)
        os_thread_join(keeper);
    keeper = NULL;
    agent_end();
    qut_stop();
    qut_thread_unregister();
    if (!all_are_out())
        return -EBUSY;
    if (!agent_traced_calls_end())
        return -EBUSY;
    feed_forget();
    agent_memory_end();
    return 0;
}
