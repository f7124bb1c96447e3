// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/traced/events.h"
#include "tracer/traced/inside.h"

static const uint64_t ns_per_s = 1000000000, ns_per_ms = 1000000;
enum {
    SLEEP_LEAST_US = 100,
    SLEEP_MOST_US = 2000, // within which the fastest thread fills half a ring of the usual size
    FULL_PERCENT = 25,    // from here on it is not slept at all
    BUSY_PERCENT = 5,
};

// ---- as long as it goes on

enum wake { WAKE_NOT, WAKE_STOP, WAKE_GONE };

static enum wake wait_for(struct traced_process *process, uint64_t sleep_us)
{
    struct pollfd fds[] = {{.fd = process->stop_fd, .events = POLLIN},
                           {.fd = process->replaced_fd, .events = POLLIN},
                           {.fd = process->begin.process_fd, .events = POLLIN},
                           {.fd = process->channel_fd, .events = 0}};
    const struct timespec timeout = {.tv_nsec = (long)(sleep_us * 1000)};
    if (ppoll(fds, sizeof fds / sizeof *fds, &timeout, NULL) <= 0)
        return WAKE_NOT;
    if (fds[1].revents || fds[2].revents)
        return WAKE_GONE;
    // The agent has gone, or its program has: exec closes the connection.
    if (fds[3].revents) {
        close(process->channel_fd);
        process->channel_fd = -1;
    }
    return fds[0].revents ? WAKE_STOP : WAKE_NOT;
}

static void look_after(struct traced_process *process, uint64_t now_ns)
{
    struct base_error error = {0};
    if (now_ns - process->modules_ns >= 20 * ns_per_ms && process->channel_fd >= 0) {
        pthread_mutex_lock(&process->code_lock);
        traced_modules_look(process, &error); // one that fails here has just ended
        pthread_mutex_unlock(&process->code_lock);
        error = (struct base_error){0};
        process->modules_ns = base_clock_now_ns();
    }
    if ((process->options->budget_hz || process->options->thin_hz) && now_ns - process->budget_ns >= ns_per_s / 4) {
        pthread_mutex_lock(&process->code_lock);
        traced_budget_look(process, now_ns - process->budget_ns);
        pthread_mutex_unlock(&process->code_lock);
        process->budget_ns = now_ns;
    }
    if (now_ns - process->clock_ns >= ns_per_s) {
        if (traced_write_clock(process, &error) != 0 || collect_calls_flush(process->writer, &error) != 0)
            traced_note_error(process, &error);
        process->clock_ns = now_ns;
    }
}

static enum wake go_on(struct traced_process *process)
{
    uint64_t sleep_us = SLEEP_LEAST_US;
    process->modules_ns = process->clock_ns = process->budget_ns = base_clock_now_ns();
    for (;;) {
        struct base_error error = {0};
        const int percent = traced_drain(process, &error);
        if (percent < 0)
            traced_note_error(process, &error);
        look_after(process, base_clock_now_ns());
        sleep_us = percent >= FULL_PERCENT ? 0 : percent < BUSY_PERCENT ? 2 * sleep_us + SLEEP_LEAST_US : sleep_us / 2;
        const enum wake wake = wait_for(process, sleep_us = sleep_us < SLEEP_MOST_US ? sleep_us : SLEEP_MOST_US);
        if (wake != WAKE_NOT)
            return wake;
        if (traced_probe_is_over(process))
            return WAKE_STOP;
    }
}

// ---- its thread

static int begin_for_children(struct traced_process *process, struct base_error *error)
{
    pthread_mutex_lock(&process->code_lock);
    const int status = traced_begin_process(process, error);
    process->has_begun = true;
    process->has_failed = status != 0;
    pthread_cond_broadcast(&process->has_begun_event);
    pthread_mutex_unlock(&process->code_lock);
    return status;
}

static void *run(void *context)
{
    enum { NICE = -10 };
    struct traced_process *process = context;
    struct base_error error = {0};
    // Who waits for a processor while rings fill loses events. Only root may; others do without.
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
    if (begin_for_children(process, &error) == 0) {
        if (process->begin.is_attached && !process->options->without_running)
            traced_running_take(process);
        traced_channel_go_on(process, NULL);
        traced_end_process(process, go_on(process) == WAKE_STOP);
    } else {
        char text[128];
        traced_note_error(process, &error);
        traced_channel_go_on(process, base_error_text(&process->error, text, sizeof text));
    }
    for (size_t i = 0; i < process->patterns.count; i++)
        process->result.pattern_matches[i] = process->patterns.items[i].functions;
    process->result.drain_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    traced_let_go(process);
    // Release: whoever sees it sees the result.
    atomic_store_explicit(&process->is_finished, true, memory_order_release);
    const uint64_t one = 1;
    if (write(process->begin.finished_fd, &one, sizeof one) < 0)
        return NULL; // it is told already
    return NULL;
}

// ---- the recorder's

static int start_thread(struct traced_process *process, struct base_error *error)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int failed = pthread_create(&process->thread, NULL, run, process);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? base_fail(error, BASE_ERR_IO, "", 0, "pthread_create: %s", strerror(failed)) : 0;
}

struct traced_process *traced_begin(const struct traced_begin *begin, struct base_error *error)
{
    struct traced_process *process = calloc(1, sizeof *process);
    const int fds[] = {begin->channel_fd, begin->process_fd, begin->memory_fd, begin->file_fd};
    if (process) {
        *process = (struct traced_process){.begin = *begin,
                                           .pid = begin->pid,
                                           .channel_fd = begin->channel_fd,
                                           .options = begin->options,
                                           .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                           .replaced_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                           .code_lock = PTHREAD_MUTEX_INITIALIZER,
                                           .has_begun_event = PTHREAD_COND_INITIALIZER,
                                           .users = 1};
        if (begin->parent)
            begin->parent->users++;
        snprintf(process->token, sizeof process->token, "%s", begin->token);
        if (process->stop_fd >= 0 && process->replaced_fd >= 0 && start_thread(process, error) == 0)
            return process;
        if (!error->reason)
            base_fail(error, BASE_ERR_IO, "", 0, "eventfd: %s", strerror(errno));
    } else {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    }
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (process)
        traced_release(process);
    return NULL;
}

static void tell(int fd)
{
    const uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0)
        return; // it is told already
}

void traced_stop(struct traced_process *process)
{
    tell(process->stop_fd);
}

void traced_replaced(struct traced_process *process)
{
    tell(process->replaced_fd);
}

bool traced_is_finished(const struct traced_process *process)
{
    return atomic_load_explicit(&process->is_finished, memory_order_acquire);
}

bool traced_join(struct traced_process *process, struct traced_result *result)
{
    pthread_join(process->thread, NULL);
    const bool is_whole = process->error.reason == BASE_OK;
    if (!is_whole) {
        process->result.processes_failed = 1;
        base_error_text(&process->error, process->result.first_failure, sizeof process->result.first_failure);
    }
    process->result.processes = 1;
    traced_result_add(result, &process->result);
    close(process->stop_fd);
    close(process->replaced_fd);
    return is_whole;
}

// A chain of parents may be long: each child of fork has forked the next one.
void traced_release(struct traced_process *process)
{
    while (process && --process->users == 0) {
        struct traced_process *parent = process->begin.parent;
        patch_close(process->patch);
        traced_modules_free(process);
        traced_probe_free(process);
        base_vector_free(&process->functions.vector);
        free(process);
        process = parent;
    }
}
