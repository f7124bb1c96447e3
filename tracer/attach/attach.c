// SPDX-License-Identifier: Apache-2.0
#include "tracer/attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "libqut/os/os.h"
#include "libqut/os/usage.h"
#include "tracer/attach/inside.h"

enum {
    DEFAULT_PERIOD_NS = 10000000,
    LEAST_PERIOD_NS = 100000,
    PROGRESS_NS = 200000000,
    NAMES_NS = 1000000000,
    REFUSED_MAX_NS = 1000000000, // then it stays so
    ASKED_POLL_NS = 200000,      // while a thread is about to stop
    SLACK_ROUNDS = 16,           // samples that chance may give a thread before its time
};

// ---- one thread, one round

static bool count_miss(struct attach_session *session, struct attach_thread *thread, uint64_t *reason)
{
    (void)session;
    thread->missed++;
    ++*reason;
    return false;
}

static bool take_running(struct attach_session *session, struct attach_thread *thread, uint64_t looked_ns)
{
    struct attach_result *result = session->result;
    const uint64_t slices = thread->slices, delay_ns = thread->delay_ns;
    switch (attach_take(session, thread, looked_ns)) {
    case ATTACH_TOOK: break;
    case ATTACH_TOOK_GONE: return count_miss(session, thread, &result->missed_gone);
    case ATTACH_TOOK_SLOW: return count_miss(session, thread, &result->missed_slow);
    case ATTACH_TOOK_NO_REGISTERS: return count_miss(session, thread, &result->missed_registers);
    case ATTACH_TOOK_REFUSED:
        session->last_refusal_ns = session->now_ns;
        if (!session->first_refusal_ns)
            session->first_refusal_ns = session->now_ns;
        return count_miss(session, thread, &result->missed_gone);
    }
    session->first_refusal_ns = 0;
    struct attach_sample sample = {
        .kind = session->options->wall ? QUT_TRACE_KIND_WALL : QUT_TRACE_KIND_CPU,
        .flags = QUT_TRACE_SAMPLE_ON_CPU,
        .time_ns = looked_ns,
    };
    bool moved;
    attach_look(session, thread, &moved); // as of the stop: it was put aside for that
    struct attach_kernel_tick kernel;
    struct segment_extra cpu = {.key = QUT_TRACE_EXTRA_CPU_NS};
    long call = attach_call_of(session->target->arch, session->taken.block);
    const struct attach_turn turn = {.is_new = thread->slices != slices,
                                     .is_in_call = call >= 0,
                                     .since_ns = session->still_ns - (thread->delay_ns - delay_ns),
                                     .round_ns = session->now_ns};
    if (!session->options->wall && !attach_place_had_processor(&session->place, &turn))
        return false;
    const struct attach_kernel_time *time = &thread->kernel_time;
    attach_place_follow(&session->place, time->is_known ? time->seen.processor : -1, session->now_ns);
    if (!session->options->wall && attach_kernel_look(session, thread, call, &kernel)) {
        sample.is_in_kernel = true;
        sample.kernel_code = kernel.code;
        thread->kernel_time.rest_ns += kernel.cpu_ns;
        cpu.value = segment_whole_units(&thread->kernel_time.rest_ns);
        sample.extras = &cpu;
        sample.extra_count = 1;
    }
    sample.frame_count = attach_walk(session, thread, &sample.end);
    attach_store_sample(session, thread, &sample);
    thread->taken++;
    result->taken++;
    return true;
}

// A thread that waits for a processor looks as if it ran: it gets no more samples than its processor time is worth.
static bool has_credit(const struct attach_thread *thread)
{
    if (thread->slices == 0) // was born, and has not run yet
        return false;
    uint64_t worth = (thread->cpu_ns - thread->first_cpu_ns) / thread->pace_ns;
    return thread->taken < worth + SLACK_ROUNDS;
}

static void look_at(struct attach_session *session, struct attach_thread *thread)
{
    bool moved, runs, wall = session->options->wall;
    struct target_sleep sleep;
    if (!attach_look(session, thread, &moved)) {
        attach_forget_thread(session, thread);
        return;
    }
    if (!moved && !thread->was_running && !wall)
        return;
    if (!attach_state(session, thread, &sleep, &runs)) {
        thread->was_running = false;
        return;
    }
    thread->was_running = runs;
    if (!runs && wall)
        attach_sleeper(session, thread, &sleep);
    if (!runs || (!wall && !has_credit(thread)))
        return;
    attach_sleep_ends(session, thread);
    take_running(session, thread, os_now_ns());
}

// From a quarter of a period to seven quarters, evenly: a program that works in a rhythm of its own, and even one whose
// timers the kernel lets expire together with ours, is met in all of it.
static uint64_t next_distance(struct attach_session *session, uint64_t pace_ns)
{
    uint64_t *state = &session->random;
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return pace_ns / 4 + *state % (pace_ns * 3 / 2 + 1);
}

static void round_of_all(struct attach_session *session, uint64_t pace_ns)
{
    attach_list_threads(session);
    for (size_t i = 0; i < session->threads.count; i++) {
        struct attach_thread *thread = &session->threads.items[i];
        if (thread->is_gone || thread->is_asked || session->now_ns < thread->next_ns)
            continue;
        if (thread->pace_ns != pace_ns) // slower than rounds are
            thread->next_ns = session->now_ns + next_distance(session, thread->pace_ns);
        look_at(session, thread);
    }
    if (session->asked_count)
        attach_poll_asked(session);
}

// ---- rounds

// Something ended it, or *end stays as it was. Waits until then.
static void wait_until(struct attach_session *session, uint64_t until_ns, enum attach_end *end)
{
    do {
        struct pollfd fds[2] = {{session->process_fd, POLLIN, 0}, {session->options->stop_fd, POLLIN, 0}};
        uint64_t now_ns = os_now_ns(), wait_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        if (session->asked_count && wait_ns > ASKED_POLL_NS)
            wait_ns = ASKED_POLL_NS;
        const struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
        if (ppoll(fds, 2, &wait, NULL) > 0)
            *end = fds[0].revents ? ATTACH_END_PROCESS : ATTACH_END_STOPPED;
        if (session->asked_count)
            attach_poll_asked(session);
    } while (*end == 0 && os_now_ns() < until_ns);
}

static void publish(struct attach_session *session)
{
    struct attach_result *result = session->result;
    result->elapsed_ns = session->now_ns - session->begin_ns;
    result->stop_median_ns = attach_times_at(&session->stops, 500);
    result->stop_p99_ns = attach_times_at(&session->stops, 990);
    result->stop_longest_ns = session->stops.longest_ns;
    result->stopped_ns = session->stops.all_ns;
    if (session->options->progress)
        session->options->progress(session->options->progress_context, result);
}

static void now_and_then(struct attach_session *session, uint64_t *progress_ns, uint64_t *names_ns)
{
    attach_refresh(session, false);
    if (session->now_ns >= *progress_ns) {
        *progress_ns = session->now_ns + PROGRESS_NS;
        publish(session);
    }
    if (session->now_ns < *names_ns)
        return;
    *names_ns = session->now_ns + NAMES_NS;
    for (size_t i = 0; i < session->threads.count; i++)
        if (!session->threads.items[i].is_gone)
            attach_read_name(session, &session->threads.items[i]);
}

static enum attach_end run_rounds(struct attach_session *session)
{
    const struct attach_options *options = session->options;
    uint64_t pace_ns = options->period_ns;
    session->random = os_now_ns() | 1;
    if (options->main_period_ns && options->main_period_ns < pace_ns)
        pace_ns = options->main_period_ns;
    uint64_t round_ns = session->begin_ns, progress_ns = 0, names_ns = session->begin_ns + NAMES_NS;
    uint64_t end_ns = options->duration_ns ? session->begin_ns + options->duration_ns : UINT64_MAX;
    enum attach_end end = 0;
    while (end == 0) {
        session->now_ns = os_now_ns();
        round_of_all(session, pace_ns);
        now_and_then(session, &progress_ns, &names_ns);
        if (session->first_refusal_ns && session->last_refusal_ns - session->first_refusal_ns > REFUSED_MAX_NS)
            return ATTACH_END_TAKEN;
        uint64_t now_ns = os_now_ns();
        round_ns += next_distance(session, pace_ns);
        if (round_ns + pace_ns < now_ns) {
            session->result->late += (now_ns - round_ns) / pace_ns;
            round_ns = now_ns;
        }
        wait_until(session, round_ns < end_ns ? round_ns : end_ns, &end);
        if (end == 0 && os_now_ns() >= end_ns)
            end = ATTACH_END_DURATION;
    }
    session->now_ns = os_now_ns();
    return end;
}

// ---- begin and end

struct collecting {
    struct collect_options options;
    struct collect_result result;
    struct base_error error;
    struct attach_naming naming;
};

// What goes into the file beside samples. Asked for when rounds are over.
static const struct trace_note *tell_notes(void *context, size_t *count)
{
    struct attach_session *session = context;
    const struct attach_result *result = session->result;
    const struct trace_note notes[] = {
        {"trigger",
         session->options->wall ? "stopped from outside, by time" : "stopped from outside, by processor time", 0},
        {"ticks-due", NULL, result->due},
        {"ticks-lost", NULL, result->due - result->taken - result->covered},
        {"rounds-late", NULL, result->late},
        {"stops", NULL, result->stops},
        {"stop-median-ns", NULL, result->stop_median_ns},
        {"stop-p99-ns", NULL, result->stop_p99_ns},
        {"stop-longest-ns", NULL, result->stop_longest_ns},
        {"stopped-ns", NULL, result->stopped_ns},
        {"calls-restarted", NULL, result->restarted},
        {"calls-disturbed", NULL, result->disturbed},
        {"execs", NULL, result->execs},
        {"python-stacks", NULL, result->python},
        {"python-uncertain", NULL, result->python_uncertain},
        {"kernel-tick-ns", NULL, os_coarse_step_ns()},
    };
    static_assert(sizeof notes == sizeof session->notes, "room for all");
    memcpy(session->notes, notes, sizeof notes);
    *count = sizeof notes / sizeof *notes;
    return session->notes;
}

static void *collect_in_thread(void *context)
{
    struct collecting *collecting = context;
    if (collect(&collecting->options, &collecting->result, &collecting->error) == 0)
        collecting->error = (struct base_error){0};
    collect_made_code_close(&collecting->naming.made_code);
    return NULL;
}

static size_t piece_bytes(unsigned piece)
{
    return piece == 0 || piece == 2 ? ATTACH_STACK_BYTES : ATTACH_SECOND_BYTES;
}

static bool make_room(struct attach_session *session)
{
    struct target_window *pieces = session->taken.copy.pieces;
    session->frames = malloc(ATTACH_FRAMES_MAX * sizeof *session->frames);
    bool is_there = session->frames;
    for (unsigned i = 0; i < TARGET_COPY_PIECES; i++)
        is_there &= (pieces[i].bytes = malloc(piece_bytes(i))) != NULL;
    if (!is_there)
        return false;
    // Touched now, so that no page of it is made while a thread stands still.
    memset(session->frames, 0, ATTACH_FRAMES_MAX * sizeof *session->frames);
    for (unsigned i = 0; i < TARGET_COPY_PIECES; i++)
        memset(pieces[i].bytes, 1, piece_bytes(i));
    return true;
}

// Two for each thread of the process.
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int record(struct attach_session *session, struct attach_error *error)
{
    struct attach_result *result = session->result;
    if (attach_open_target(session, error) != 0)
        return -1;
    attach_make_tables(session);
    attach_python_open(session);
    attach_v8_open(session);
    if (!make_room(session))
        return attach_fail(error, "%d: out of memory", (int)session->options->pid);
    struct made_code made_code = {.pid = (uint32_t)session->options->pid};
    collect_made_code_begin(&made_code); // before the samples' time begins
    if (attach_store_open(session, error) != 0) {
        collect_made_code_close(&made_code);
        return -1;
    }
    // Its own descriptor: that of the segment is closed with it, before the last of it is collected.
    int segment_fd = fcntl(session->store.segment.fd, F_DUPFD_CLOEXEC, 0);
    if (segment_fd < 0) {
        collect_made_code_close(&made_code);
        return attach_fail(error, "%d: no descriptor for samples: %s", (int)session->options->pid, strerror(errno));
    }
    struct collecting collecting = {.options = {.segment_fd = segment_fd,
                                                .file_fd = session->options->file_fd,
                                                .follow = true,
                                                .live = session->options->live,
                                                .stop_fd = -1,
                                                .process_fd = -1,
                                                .notes = tell_notes,
                                                .notes_context = session,
                                                .name_code = attach_name_code,
                                                .name_past_code = attach_name_past_code,
                                                .levels_of_code = attach_levels_of_code},
                                    .naming = {.v8 = &session->v8, .python = &session->python, .made_code = made_code}};
    collecting.options.name_context = &collecting.naming;
    pthread_t collector;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); // signals are for our caller
    int failed = pthread_create(&collector, NULL, collect_in_thread, &collecting);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        close(segment_fd);
        collect_made_code_close(&collecting.naming.made_code);
        return attach_fail(error, "%d: no thread to collect samples: %s", (int)session->options->pid, strerror(failed));
    }
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);
    attach_patience_begin(&session->patience);
    attach_place_begin(&session->place);
    session->begin_ns = session->now_ns = os_now_ns();
    result->end = run_rounds(session);
    attach_release_asked(session);
    attach_place_end(&session->place);
    attach_patience_end(&session->patience);
    prctl(PR_SET_TIMERSLACK, slack_ns > 0 ? slack_ns : 0);
    attach_free_threads(session);
    publish(session);
    attach_store_close(session);
    pthread_join(collector, NULL);
    close(segment_fd);
    result->collected = collecting.result;
    result->collect_error = collecting.error;
    return 0;
}

int attach_record(const struct attach_options *given, struct attach_result *result, struct attach_error *error)
{
    struct attach_options options = *given;
    *result = (struct attach_result){0};
    error->text[0] = 0;
    options.period_ns = options.period_ns ? options.period_ns : DEFAULT_PERIOD_NS;
    if (options.period_ns < LEAST_PERIOD_NS || (options.main_period_ns && options.main_period_ns < LEAST_PERIOD_NS))
        return attach_fail(error, "%d: from outside at most %d samples a second", (int)options.pid,
                           1000000000 / LEAST_PERIOD_NS);
    if (attach_refuse(&options.pid, &options.tid, error) != 0)
        return -1;
    struct qutc_provide_options provide = {.size = sizeof provide,
                                           .cache_directory = options.cache_directory,
                                           .debug_root = options.debug_root,
                                           .take = options.take,
                                           .take_context = options.take_context};
    struct attach_session *session = calloc(1, sizeof *session);
    if (!session)
        return attach_fail(error, "%d: out of memory", (int)options.pid);
    session->options = &options;
    session->result = result;
    session->provide = &provide;
    session->is_child = target_live_status_number(options.pid, "PPid") == getpid();
    session->has_namespace = !attach_same_namespace(options.pid, "pid");
    raise_descriptor_limit();
    session->process_fd = (int)syscall(SYS_pidfd_open, options.pid, 0);
    int status = record(session, error);
    if (session->process_fd >= 0)
        close(session->process_fd);
    attach_store_close(session);
    attach_python_close(session);
    attach_v8_close(session);
    if (session->target)
        qut_target_close(session->target);
    free(session->frames);
    for (unsigned i = 0; i < TARGET_COPY_PIECES; i++)
        free(session->taken.copy.pieces[i].bytes);
    free(session);
    return status;
}
