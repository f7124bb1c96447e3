// SPDX-License-Identifier: Apache-2.0
// Children of fork that wait with their trace, as an agent's do.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/qut.h>

#include "libqut/host/host.h"
#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"

static const struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
static volatile sig_atomic_t follow_result;

static void on_signal(int number)
{
    (void)number;
    follow_result = feed_follow_now();
}

// With what it has it was there from the fork on, whichever way it began. 0, or what is wrong.
static int begin(pid_t parent, uint64_t before_ns, bool in_handler)
{
    const uint64_t after_ns = os_now_ns();
    modules_registry_pause_thread(); // a handler starts none
    follow_result = -77;
    if (in_handler) {
        signal(SIGUSR1, on_signal);
        raise(SIGUSR1);
    } else {
        follow_result = feed_follow_now();
    }
    if (follow_result != 0)
        return follow_result < 0 ? -follow_result : 99;
    if (feed_is_waiting() || feed_follow_now() != 0)
        return 20;
    struct view view;
    if (qut_trace_thread_register() != 0 || qut_trace_sample(NULL, &event) != QUT_STORED || !view_open(&view))
        return 202;
    if (view.header->start_ns < before_ns || view.header->start_ns > after_ns || view.header->realtime_ns == 0)
        return 203;
    if (view_self(&view)->start_ns != view.header->start_ns)
        return 204;
    if (view.header->pid != (uint32_t)getpid() || view.header->parent_pid != (uint32_t)parent)
        return 205;
    if (view.header->module_count == 0 || !*view_string(&view, view.modules[0].path) || view_imbalance() != 0)
        return 206;
    struct view_frame frames[64];
    if (view_stack(&view, view_last_node(view_self(&view), 0), frames, 64) < 2 || !frames[0].module)
        return 207;
    if (qut_trace_own_kind("mine") != 64)
        return 208;
    qut_trace_close();
    return 0;
}

static int status_of(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int in_child(pid_t parent, uint64_t before_ns, int generations, bool in_handler)
{
    const uintptr_t pc = 1;
    if (!feed_is_waiting() || qut_trace_fd() != -1 || qut_trace_append(&pc, 1, NULL, 0, &event) != QUT_STORED_NO_TRACE)
        return 11;
    if (generations == 1)
        return begin(parent, before_ns, in_handler);
    const pid_t own = getpid();
    before_ns = os_now_ns();
    const pid_t child = fork();
    if (child == 0)
        _exit(in_child(own, before_ns, generations - 1, in_handler));
    return status_of(child);
}

static uint64_t stored_now(void)
{
    struct qut_trace_counters_now counts;
    qut_trace_get_counts(&counts, sizeof counts);
    return counts.hits;
}

TEST(children_that_wait_begin_with_the_fork)
{
    const struct qut_trace_options options = {
        .size = sizeof options, .segment_bytes = 4 << 20, .flags = QUT_TRACE_FOLLOW_FORK};
    const pid_t parent = getpid();
    CHECK(qut_trace_open(&options) == 0, "a trace");
    CHECK(qut_trace_own_kind("mine") == 64, "a kind");
    CHECK(!feed_is_waiting() && feed_follow_now() == 0, "its parent has a trace");
    feed_follow_later(true);
    for (int generations = 1; generations <= 3; generations++) {
        for (int in_handler = 0; in_handler < 2; in_handler++) {
            qut_trace_sample(NULL, &event);
            const uint64_t before = stored_now(), before_ns = os_now_ns();
            fflush(stdout);
            const pid_t child = fork();
            if (child == 0)
                _exit(in_child(parent, before_ns, generations, in_handler));
            const int status = status_of(child);
            CHECK(status == 0, "generation %d%s: %d", generations, in_handler ? ", in a handler" : "", status);
            CHECK(stored_now() == before && view_imbalance() == 0, "its parent's are untouched");
        }
    }
    feed_follow_later(false);
    qut_trace_close();
    CHECK(feed_follow_now() == -EINVAL, "nothing to follow");
}

// 0, or what is wrong.
static int begin_as_planned(const char *path, pid_t parent, uint64_t before_ns, bool in_handler)
{
    if (!feed_is_waiting() || access(path, F_OK) == 0)
        return 30;
    const int result = begin(parent, before_ns, in_handler);
    if (result != 0)
        return result;
    return unlink(path) == 0 ? 0 : 31;
}

// Without a parent's; of a child of it with its own name; and none of both has a file before.
static int plan(bool in_handler)
{
    char path[64], childs[96];
    const uint64_t before_ns = os_now_ns();
    snprintf(path, sizeof path, "/dev/shm/qut-planned-%d", (int)getpid());
    const struct qut_trace_options options = {
        .size = sizeof options, .segment_bytes = 4 << 20, .path = path, .flags = QUT_TRACE_FOLLOW_FORK};
    if (feed_open_later(&options) != 0 || feed_open_later(&options) != -EALREADY || qut_trace_fd() != -1)
        return 40;
    const pid_t own = getpid();
    const pid_t child = fork();
    if (child == 0) {
        snprintf(childs, sizeof childs, "%s.%d", path, (int)getpid());
        _exit(access(path, F_OK) == 0 ? 41 : begin_as_planned(childs, own, before_ns, in_handler));
    }
    const int status = status_of(child);
    return status != 0 ? status : begin_as_planned(path, 0, before_ns, in_handler);
}

static int plan_alone(void)
{
    const struct qut_trace_options options = {
        .size = sizeof options, .segment_bytes = 4 << 20, .path = "/dev/shm/qut-none"};
    if (feed_open_later(&options) != 0)
        return 50;
    const pid_t child = fork();
    if (child == 0)
        _exit(feed_is_waiting() || feed_follow_now() != -EINVAL ? 51 : 0);
    return status_of(child);
}

TEST(what_is_planned_begins_with_its_plan)
{
    for (int in_handler = 0; in_handler < 3; in_handler++) {
        fflush(stdout);
        const pid_t child = fork(); // for which nothing is open, and nothing waits
        if (child == 0)
            _exit(in_handler == 2 ? plan_alone() : plan(in_handler != 0));
        const int status = status_of(child);
        if (status == 127 || status == 66)
            SKIP("qemu and ThreadSanitizer end a child that starts a thread");
        CHECK(status == 0, "planned, %d: %d", in_handler, status);
    }
}

int main(void)
{
    if (!discipline_start())
        return 1;
    RUN(what_is_planned_begins_with_its_plan);
    RUN(children_that_wait_begin_with_the_fork);
    return tap_finish();
}
