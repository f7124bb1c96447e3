// SPDX-License-Identifier: Apache-2.0
#include "tracer/traced/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/traced/clock.h"
#include "tracer/traced/events.h"
#include "tracer/traced/inside.h"

static const uint64_t ns_per_s = 1000000000, ns_per_ms = 1000000;
enum {
    SLEEP_LEAST_US = 100,
    SLEEP_MOST_US = 2000, // within which the fastest thread fills half a ring of the usual size
    FULL_PERCENT = 25,    // from here on it is not slept at all
    BUSY_PERCENT = 5,
    FULL_WAIT_US = 1000000, // of a thread for us: no longer, should we hang
};

// ---- clocks

struct moment {
    uint64_t ticks, ns;
};

// The same moment by both clocks: the closest of some attempts.
static struct moment now_by_both(void)
{
    enum { ATTEMPTS = 5 };
    struct moment best = {0, 0};
    uint64_t closest = UINT64_MAX;
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        const uint64_t before = traced_ticks(), ns = base_clock_now_ns(), after = traced_ticks();
        if (after - before >= closest)
            continue;
        closest = after - before;
        best = (struct moment){before + closest / 2, ns};
    }
    return best;
}

static int write_clock(struct traced_process *process, struct base_error *error)
{
    const struct moment now = now_by_both();
    return collect_calls_clock(process->writer, now.ticks, now.ns, error);
}

// So that durations can be compared at once: a few milliseconds are exact enough for that.
static uint64_t ticks_of(uint64_t ns)
{
    const struct timespec nap = {.tv_nsec = 5000000};
    if (!ns)
        return 0;
    const struct moment begin = now_by_both();
    nanosleep(&nap, NULL);
    const struct moment end = now_by_both();
    return (uint64_t)((double)ns * (double)(end.ticks - begin.ticks) / (double)(end.ns - begin.ns));
}

// ---- begin

static int map_memory(struct traced_process *process, struct base_error *error)
{
    struct stat status;
    const int fd = process->begin.memory_fd;
    if (fstat(fd, &status) != 0 || status.st_size < QUT_CALLS_HEADER_BYTES)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "the agent's memory for calls is none");
    process->memory_bytes = (size_t)status.st_size;
    void *memory = mmap(NULL, process->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED)
        return base_fail(error, BASE_ERR_IO, "", 0, "mmap: %s", strerror(errno));
    process->memory = memory;
    memcpy(&process->header, memory, sizeof process->header);
    if (!qut_calls_header_is_sound(&process->header, process->memory_bytes))
        return base_fail(error, BASE_ERR_MALFORMED, "", 0,
                         "the agent's memory for calls is of another version, or damaged");
    if (process->options->waits_for_room)
        __atomic_store_n(&((struct qut_calls_header *)memory)->full_wait_us, FULL_WAIT_US, __ATOMIC_RELAXED);
    return 0;
}

static int open_process(struct traced_process *process, struct base_error *error)
{
    process->patch = patch_open(process->pid, error);
    if (process->patch)
        traced_use_stub(process, process->patch);
    if (process->patch || !process->begin.parent)
        return process->patch ? 0 : -1;
    // A child of fork that has ended already: its events are there.
    *error = (struct base_error){0};
    return 0;
}

void traced_use_stub(const struct traced_process *process, struct patch_process *patch)
{
    const struct qut_calls_header *header = &process->header;
    const struct patch_stub stub = {.start = header->stub_begin,
                                    .end = header->stub_end,
                                    .exit_return = header->exit_return,
                                    .exit_end = header->exit_end,
                                    .shadow_distance = header->shadow_distance,
                                    .words_distance = header->words_distance,
                                    .granules_address = header->granules_address};
    patch_set_stub(patch, &stub);
}

static int open_file(struct traced_process *process, struct base_error *error)
{
    const struct collect_calls_process told = {.pid = (uint32_t)process->pid,
                                               .arch = process->header.arch,
                                               .begin_ns = base_clock_now_ns(),
                                               .command = process->command[0] ? process->command : NULL};
    process->writer = collect_calls_begin(process->begin.file_fd, &told, error);
    return process->writer ? write_clock(process, error) : -1;
}

static void read_command(struct traced_process *process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)process->pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(process->command, 1, sizeof process->command - 1, file) : 0;
    if (file)
        fclose(file);
    process->command[size] = 0;
    process->command[strcspn(process->command, "\n")] = 0;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    ssize_t length = readlink(path, process->program_path, sizeof process->program_path - 1);
    process->program_path[length > 0 ? length : 0] = 0;
    // As it was started: of a file with several names the one that people know.
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)process->pid);
    file = fopen(path, "re");
    size = file ? fread(process->started_as, 1, sizeof process->started_as - 1, file) : 0;
    if (file)
        fclose(file);
    process->started_as[size] = 0;
}

// The first place of functions is nobody's: an event's id is never 0.
static int begin_code(struct traced_process *process, struct base_error *error)
{
    if (process->begin.parent)
        return traced_inherit(process, error);
    struct traced_function *none = BASE_ADD(&process->functions);
    if (!none)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    *none = (struct traced_function){.address = 0};
    return traced_modules_look(process, error);
}

static int begin(struct traced_process *process, struct base_error *error)
{
    read_command(process);
    for (size_t i = 0; i < process->options->pattern_count; i++) {
        if (calls_patterns_add(&process->patterns, process->options->patterns[i], process->options->is_excluded[i],
                               error) != 0)
            return -1;
        process->patterns.items[i].is_caller = process->options->is_caller[i];
    }
    process->least_ticks = ticks_of(process->options->least_ns);
    return map_memory(process, error) == 0 && traced_rings_begin(process, error) == 0 &&
                   open_file(process, error) == 0 && open_process(process, error) == 0 &&
                   begin_code(process, error) == 0
               ? 0
               : -1;
}

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

static void note_error(struct traced_process *process, struct base_error *error)
{
    if (error->reason && !process->error.reason)
        process->error = *error;
    *error = (struct base_error){0};
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
    if (process->options->budget_hz && now_ns - process->budget_ns >= ns_per_s / 4) {
        pthread_mutex_lock(&process->code_lock);
        traced_budget_look(process, now_ns - process->budget_ns);
        pthread_mutex_unlock(&process->code_lock);
        process->budget_ns = now_ns;
    }
    if (now_ns - process->clock_ns >= ns_per_s) {
        if (write_clock(process, &error) != 0 || collect_calls_flush(process->writer, &error) != 0)
            note_error(process, &error);
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
            note_error(process, &error);
        look_after(process, base_clock_now_ns());
        sleep_us = percent >= FULL_PERCENT ? 0 : percent < BUSY_PERCENT ? 2 * sleep_us + SLEEP_LEAST_US : sleep_us / 2;
        const enum wake wake = wait_for(process, sleep_us = sleep_us < SLEEP_MOST_US ? sleep_us : SLEEP_MOST_US);
        if (wake != WAKE_NOT)
            return wake;
    }
}

// ---- end

static int write_counts(struct traced_process *process, struct base_error *error)
{
    int status = 0;
    for (uint32_t id = 1; id < process->functions.count && status == 0; id++) {
        const struct traced_function *function = &process->functions.items[id];
        const uint64_t count = (function->is_counted ? traced_cell(process, id) : 0) + function->short_calls;
        process->result.counted += count;
        if (count)
            status = collect_calls_counted(process->writer, id, count, error);
    }
    return status;
}

static void end_file(struct traced_process *process, enum wake wake)
{
    struct base_error error = {0};
    const struct qut_calls_header *now = (const void *)process->memory;
    const uint64_t misaligned = __atomic_load_n(&now->passed_misaligned, __ATOMIC_RELAXED);
    process->result.lost_enters += __atomic_load_n(&now->lost_enters, __ATOMIC_RELAXED);
    process->result.lost_exits += __atomic_load_n(&now->lost_exits, __ATOMIC_RELAXED);
    process->result.passed += misaligned + __atomic_load_n(&now->passed_no_shadow, __ATOMIC_RELAXED);
    if (write_counts(process, &error) != 0 || write_clock(process, &error) != 0)
        note_error(process, &error);
    struct trace_note notes[32];
    const struct collect_calls_ending ending = {
        // Its memory outlives it: nothing is missing, however it ended.
        .end = wake == WAKE_STOP ? QUT_TRACE_FILE_END_STOPPED : QUT_TRACE_FILE_END_CLOSED,
        .end_ns = base_clock_now_ns(),
        .misaligned = misaligned,
        .notes = notes,
        .note_count = traced_notes(&process->result, notes, sizeof notes / sizeof *notes)};
    if (collect_calls_end(process->writer, &ending, &error) != 0)
        note_error(process, &error);
    process->writer = NULL;
}

static void end(struct traced_process *process, enum wake wake)
{
    struct base_error error = {0};
    if (wake == WAKE_STOP) {
        pthread_mutex_lock(&process->code_lock);
        traced_take_out(process);
        pthread_mutex_unlock(&process->code_lock);
    }
    if (traced_drain_last(process, &error) != 0 || traced_running_rest(process, &error) != 0)
        note_error(process, &error);
    end_file(process, wake);
}

static void let_go(struct traced_process *process)
{
    if (process->writer)
        collect_calls_end(process->writer, &(struct collect_calls_ending){.end = QUT_TRACE_FILE_END_STOPPED}, NULL);
    patch_let_go(process->patch);
    traced_rings_end(process);
    calls_patterns_free(&process->patterns);
    base_vector_free(&process->running.vector);
    if (process->memory)
        munmap(process->memory, process->memory_bytes);
    const int fds[] = {process->channel_fd, process->begin.process_fd, process->begin.memory_fd,
                       process->begin.file_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static int begin_for_children(struct traced_process *process, struct base_error *error)
{
    pthread_mutex_lock(&process->code_lock);
    const int status = begin(process, error);
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
        end(process, go_on(process));
    } else {
        char text[128];
        note_error(process, &error);
        traced_channel_go_on(process, base_error_text(&process->error, text, sizeof text));
    }
    for (size_t i = 0; i < process->patterns.count; i++)
        process->result.pattern_matches[i] = process->patterns.items[i].functions;
    process->result.drain_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    let_go(process);
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
        base_vector_free(&process->functions.vector);
        free(process);
        process = parent;
    }
}
