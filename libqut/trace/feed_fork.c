// SPDX-License-Identifier: Apache-2.0
// What a child gets. Before it runs a single instruction the page that names the trace is empty in it, so nothing that
// it does reaches the parent's segment; where the kernel cannot do that, nothing of the thread that forks does: from
// before the fork to the end of the child's handler its hits are lost, and counted. A process that was made without
// libc's fork has no trace. An agent's child may wait with a trace of its own, and so may its first process: most end,
// or become another program, before they have anything to store.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/host/host.h"
#include "libqut/javascript/javascript.h"
#include "libqut/os/process.h"
#include "libqut/os/task.h"
#include "libqut/python/python.h"
#include "libqut/trace/feed.h"

void feed_before_fork(void)
{
    feed_fork_begins();
}

void feed_in_parent(void)
{
    feed_fork_ends(false);
}

// A fork in a handler may have interrupted an append, which goes on when the handler returns. It then writes to
// pages that are never read.
static bool is_in_append(void)
{
    const struct runtime_thread *thread = runtime_thread_self();
    return thread ? atomic_load_explicit(&thread->walking, memory_order_relaxed) != 0
                  : os_thread_word(OS_WORD_LEVELS) != 0;
}

static void let_go(struct feed *feed)
{
    bool is_retired = feed->is_closed;
    if (!feed->segment.header) { // a plan
        feed_free(feed);
        return;
    }
    feed->is_unmapped = true;
    if (is_in_append()) {
        os_replace_pages(feed->segment.header, (size_t)feed->segment.segment_bytes);
        return;
    }
    segment_unmap(&feed->segment);
    if (!is_retired)
        feed_free(feed);
}

// Kinds that the parent gave numbers keep them.
static void copy_kinds(struct feed *to, const struct feed *from)
{
    const struct segment *segment = &from->segment;
    for (unsigned i = 0; i < QUT_TRACE_OWN_KIND_COUNT; i++) {
        size_t at = (size_t)segment->header->kind_names[i] * 4;
        if (at == 0 || at + 3 > segment->string_bytes)
            continue;
        const uint8_t *string = segment->strings + at;
        size_t length = (size_t)(string[0] | string[1] << 8);
        if (at + 2 + length <= segment->string_bytes)
            to->segment.header->kind_names[i] = segment_string(&to->segment, (const char *)string + 2, length);
    }
}

// Of a plan the process that made it has the path itself.
static int follow(const struct feed *parent, uint32_t parent_pid, uint64_t begun_ns)
{
    const bool has_segment = parent->segment.header != NULL;
    // Under the registry's lock; a handler's stack is small.
    static char command[sizeof((struct qut_trace_header *)0)->command], path[4096];
    struct segment_options options = parent->options;
    os_command(command, sizeof command);
    options.command = command;
    options.parent_pid = parent_pid;
    options.pid = (uint32_t)os_own_pid();
    options.begun_ns = begun_ns;
    if (options.path && (has_segment || parent_pid)) {
        int length = snprintf(path, sizeof path, "%s.%u", options.path, (unsigned)options.pid);
        if (length < 0 || (size_t)length >= sizeof path)
            return -ENAMETOOLONG;
        options.path = path;
    }
    struct feed *feed;
    int result = feed_new(&feed, &options, parent->flags, parent->depth_max);
    if (result != 0)
        return result;
    feed->options.begun_ns = 0;
    feed->begun_ns = begun_ns;
    if (has_segment)
        copy_kinds(feed, parent);
    feed_publish(feed);
    return 0;
}

static void let_all_go(struct feed *all)
{
    for (struct feed *next; all; all = next) {
        next = all->next;
        let_go(all);
    }
}

// ---- later

static bool follows_later;

// A process that waits: what it goes on from is a plan, its parent's trace, or what its parent had waited with. It
// stays mapped, which no process sees, and is not written to.
static struct {
    struct feed *feeds;           // NULL: it does not wait
    uint32_t parent_pid, own_pid; // parent_pid 0: it is no child
    uint64_t since_ns;
} waiting;

void feed_follow_later(bool later)
{
    follows_later = later;
}

bool feed_is_waiting(void)
{
    return waiting.feeds != NULL;
}

// An append that the fork interrupted would go on in the parent's memory.
static bool may_wait(void)
{
    return follows_later && !is_in_append();
}

static void begin_waiting(struct feed *all, uint32_t parent_pid)
{
    waiting.feeds = all;
    waiting.parent_pid = parent_pid;
    waiting.own_pid = (uint32_t)os_own_pid();
    waiting.since_ns = os_now_ns();
}

void feed_wait_with(struct feed *plan)
{
    begin_waiting(plan, 0);
}

int feed_follow_now(void)
{
    struct feed *feeds = waiting.feeds;
    if (!feeds)
        return feed_now() ? 0 : -EINVAL;
    if (!os_try_lock(&modules_registry.lock))
        return -EAGAIN;
    waiting.feeds = NULL;
    int result = follow(feeds, waiting.parent_pid, waiting.since_ns);
    let_all_go(feeds);
    os_unlock(&modules_registry.lock);
    return result;
}

// ---- the child

// Under the registry's lock. There is one thread.
void feed_in_child(void)
{
    struct feed *all = feed_all;
    struct feed_current *current = atomic_load_explicit(&feed_current, memory_order_relaxed);
    atomic_store_explicit(&current->feed, NULL, memory_order_seq_cst);
    atomic_store_explicit(&feed_control, 0, memory_order_relaxed);
    feed_all = NULL;
    feed_fork_ends(true);
    if (python_is_there())
        python_after_fork();
    if (javascript_is_there())
        javascript_after_fork();
    struct runtime_thread *thread = runtime_thread_self();
    if (thread)
        thread->node_generation = 0;
    const bool is_followed = all && !all->is_closed && (all->flags & QUT_TRACE_FOLLOW_FORK);
    if (waiting.feeds && !(waiting.feeds->flags & QUT_TRACE_FOLLOW_FORK)) {
        let_all_go(waiting.feeds);
        waiting.feeds = NULL;
    } else if (waiting.feeds) {
        begin_waiting(waiting.feeds, waiting.own_pid);
    } else if (is_followed && may_wait()) {
        begin_waiting(all, all->options.pid);
    } else {
        if (is_followed)
            follow(all, all->options.pid, 0);
        let_all_go(all);
    }
}
