// SPDX-License-Identifier: Apache-2.0
// Stops the process, so that nobody runs what is changed.
#include <stdlib.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/os/process.h"
#include "libqut/os/scheduling.h"
#include "libqut/target/live.h"
#include "tracer/patch/inside.h"

// On a machine that is overloaded a thread may take seconds until it stops.
enum { ATTEMPTS_LEAST = 4, NAP_FIRST_US = 200, NAP_LAST_US = 5000, TURN_NAP_US = 500, LINE_BYTES = 128 };
static const uint64_t patience_ns = 2000000000, turn_patience_ns = 200000000;

// A thread that nothing wakes may be a parent in vfork, whose child runs in the same memory, and is not stopped.
static bool has_unwakable(const struct qut_target *target)
{
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].info.asleep_in && !*target->threads[i].info.asleep_in)
            return true;
    return false;
}

static void count_threads(const struct qut_target *target, struct patch_figures *figures)
{
    figures->threads = (unsigned)target->thread_count;
    figures->asleep = 0;
    for (size_t i = 0; i < target->thread_count; i++)
        figures->asleep += target->threads[i].info.asleep_in != NULL;
}

// One that was asked and did not stop (for two seconds) may run.
static bool all_stand(const struct qut_target *target)
{
    for (size_t i = 0; i < target->thread_count; i++)
        if (target->threads[i].traced && !target->threads[i].stopped)
            return false;
    return true;
}

// While others stand still no other program takes the processor from this thread, if it may ask for that: on a busy
// machine it would wait for as long as they do.
static void hurry(struct patch_process *process)
{
    process->hurries = os_scheduling_get(&process->usual) && os_scheduling_go_first();
    process->target->goes_first = process->hurries;
}

static void let_go(struct patch_process *process, struct patch_figures *figures)
{
    qut_target_resume(process->target);
    if (process->hurries)
        os_scheduling_set(&process->usual);
    process->hurries = false;
    uint64_t stopped_ns = qut_target_stopped_ns(process->target);
    if (stopped_ns > figures->stopped_ns)
        figures->stopped_ns = stopped_ns;
}

int patch_stop(struct patch_process *process, struct patch_figures *figures, struct base_error *error)
{
    struct qut_target *target = process->target;
    uint64_t end_ns = os_now_ns() + patience_ns;
    unsigned nap_us = NAP_FIRST_US;
    for (unsigned attempt = 1;; attempt++) {
        struct qut_target_error why;
        figures->attempts++;
        hurry(process);
        if (qut_target_stop(target, &why) != 0) {
            let_go(process, figures);
            return base_fail(error, BASE_ERR_IO, "", 0, "%s", why.text);
        }
        count_threads(target, figures);
        bool is_unwakable = has_unwakable(target);
        if (!is_unwakable && all_stand(target))
            return 0;
        let_go(process, figures);
        if (os_now_ns() > end_ns && attempt >= ATTEMPTS_LEAST)
            return base_fail(error, BASE_ERR_LIMIT, "", 0, "%d: a thread %s: code cannot be changed meanwhile",
                             (int)process->pid,
                             is_unwakable ? "waits where nothing wakes it, in vfork or for a file" : "does not stop");
        os_sleep_us(nap_us);
        nap_us = nap_us * 2 < NAP_LAST_US ? nap_us * 2 : NAP_LAST_US;
    }
}

void patch_resume(struct patch_process *process, struct patch_figures *figures)
{
    let_go(process, figures);
}

// How often the thread has come onto a processor; 0: it has gone, or that is not known.
static uint64_t turns_of(const struct patch_process *process, pid_t tid)
{
    const struct target_live *live = process->target->source;
    char text[LINE_BYTES] = "", *at = text;
    int fd = os_open_task_file(live->tasks_fd, tid, "schedstat");
    if (fd >= 0) {
        os_read_line(fd, text, sizeof text);
        os_close_file(fd);
    }
    strtoull(at, &at, 10); // time on a processor
    strtoull(at, &at, 10); // time that it waited for one
    return strtoull(at, NULL, 10);
}

// One that waits for a processor until it is asked to stop again never gets any farther: seen with 8 busy threads on 2
// busy processors, where naps of 50 ms were too short for one of them twelve times in a row.
bool patch_let_inner_run(struct patch_process *process, struct patch_figures *figures)
{
    const struct target_live *live = process->target->source;
    size_t count = process->inner.count, awake = 0;
    uint64_t *turns = calloc(count + 1, sizeof *turns), end_ns = os_now_ns() + turn_patience_ns;
    for (size_t i = 0; turns && i < count; i++)
        turns[i] = turns_of(process, process->inner.items[i]);
    patch_resume(process, figures);
    os_sleep_us(NAP_FIRST_US);
    for (size_t i = 0; turns && i < count; i++) {
        pid_t tid = process->inner.items[i];
        while (turns_of(process, tid) == turns[i] && os_now_ns() < end_ns && target_live_thread_state(live, tid) == 'R')
            os_sleep_us(TURN_NAP_US);
        awake += target_live_thread_state(live, tid) == 'R';
    }
    free(turns);
    return awake != 0;
}
