// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/record/inside.h"
#include "tracer/record/launch.h"
#include "tracer/record/probe.h"
#include "tracer/rescue/rescue.h"

enum { STATUS_EVERY_MS = 200, LOOK_EVERY_MS = 1000, ORPHANS_EVERY_MS = 50 };

// ---- what happens

static void drain_event(struct loop_source *source)
{
    uint64_t count;
    if (read(source->fd, &count, sizeof count) > 0) {
        recorder_reap(source->context);
        recorder_calls_reap(source->context);
    }
}

static uint64_t time_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static void command_ended(struct loop_source *source)
{
    struct recorder *recorder = source->context;
    struct rusage used;
    int status;
    if (recorder->options->command && wait4(recorder->command_pid, &status, WNOHANG, &used) == recorder->command_pid) {
        recorder->result->command_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        recorder->result->command_cpu_ns = time_ns(used.ru_utime) + time_ns(used.ru_stime);
    }
    record_loop_remove(&recorder->loop, source);
}

// What was injected is taken out by its injector: until then the loop goes on.
static void leave(struct recorder *recorder)
{
    if (recorder->options->command)
        recorder_stop(recorder);
    recorder->is_left = true;
}

// Where no descriptor of the command's tells of its end, this makes ours do so.
static void child_ended(struct recorder *recorder)
{
    siginfo_t info = {.si_pid = 0};
    if (recorder->is_told_by_signal && recorder->command.fd >= 0 &&
        waitid(P_PID, (id_t)recorder->command_pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == recorder->command_pid)
        record_loop_event_set(recorder->command.fd);
}

// The first one: the command got it as well where it came from a terminal; what was sent to us alone to end us is
// passed on. The next one: nothing is waited for any more.
static void signal_came(struct loop_source *source)
{
    struct recorder *recorder = source->context;
    struct signalfd_siginfo info;
    if (read(source->fd, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    int number = (int)info.ssi_signo;
    if (number == SIGCHLD) {
        child_ended(recorder);
        return;
    }
    bool is_again = recorder->result->left_by != 0;
    bool has_command = recorder->options->command && recorder->command.fd >= 0;
    recorder->result->left_by = number;
    if (!has_command || is_again) {
        leave(recorder);
        return;
    }
    if (info.ssi_code <= 0 && (number == SIGTERM || number == SIGHUP))
        kill(recorder->command_pid, number);
    if (recorder->is_stopped)
        recorder->is_left = true;
}

static int watch(struct recorder *recorder, struct base_error *error)
{
    record_launch_ignore_signals();
    record_launch_raise_limit();
    recorder->signals.fd = record_launch_take_signals(true, &recorder->mask_before);
    if (recorder->signals.fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "signalfd: %s", strerror(errno));
    recorder->finished.fd = record_loop_event();
    if (recorder->finished.fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "eventfd: %s", strerror(errno));
    return record_loop_add(&recorder->loop, &recorder->signals, error) == 0 &&
                   record_loop_add(&recorder->loop, &recorder->finished, error) == 0
               ? 0
               : -1;
}

// ---- begin

// LD_PRELOAD is a list: what is in it already comes after the agent.
static int make_preload(struct recorder *recorder, struct base_error *error)
{
    const char *agent = recorder->options->agent_path, *before = getenv("LD_PRELOAD");
    if (record_agent_hand_over(agent, recorder->server.directory, recorder->server.is_for_all, recorder->link,
                               sizeof recorder->link, error) != 0)
        return -1;
    if (recorder->link[0])
        agent = recorder->link;
    int length = snprintf(recorder->preload, sizeof recorder->preload, "%s%s%s", agent, before && *before ? ":" : "",
                          before ? before : "");
    if ((size_t)length >= sizeof recorder->preload)
        return base_fail(error, BASE_ERR_IO, "", 0, "LD_PRELOAD is too long");
    return 0;
}

static int make_settings(struct recorder *recorder, struct base_error *error)
{
    struct agent_settings settings = recorder->options->settings;
    const char *before = getenv("LD_PRELOAD");
    snprintf(settings.token, sizeof settings.token, "%s", recorder->server.token);
    snprintf(settings.socket, sizeof settings.socket, "%s", recorder->server.socket_path);
    if (before && strlen(before) < sizeof settings.preload)
        memcpy(settings.preload, before, strlen(before) + 1);
    else if (before)
        return base_fail(error, BASE_ERR_IO, "", 0, "LD_PRELOAD is too long");
    if (!agent_settings_write(&settings, recorder->settings, sizeof recorder->settings))
        return base_fail(error, BASE_ERR_IO, "", 0,
                         "what the agent is told does not fit: a path with a semicolon, or too many groups");
    return make_preload(recorder, error);
}

static void ask_table(void *context, const struct agent_channel_table *table, const struct server_peer *peer,
                      int memory_fd, int client_fd)
{
    struct recorder *recorder = context;
    record_tables_ask(&recorder->tables, table, peer, memory_fd, client_fd);
}

// Only where we change what we do not leave with the process: its code, or what it has loaded.
static void begin_rescue(struct recorder *recorder)
{
    const struct inject_options how =
        record_injector_options(recorder->options, recorder->settings, &recorder->provide);
    if (recorder->options->calls || !recorder->options->command)
        recorder->rescue_fd = rescue_watch(&how);
}

// The table of the program is begun first: it is mostly the largest, and all else is made ready meanwhile.
static int begin_tables(struct recorder *recorder, struct base_error *error)
{
    const struct record_options *options = recorder->options;
    const char *cache = *options->settings.cache ? options->settings.cache : NULL;
    if (record_tables_begin(&recorder->tables, cache, options->take, options->take_context, error) != 0)
        return -1;
    recorder->has_tables = true;
    if (options->command)
        record_tables_expect(&recorder->tables, options->program);
    return 0;
}

// What a filter of system calls may deny.
static int begin_to_serve(struct recorder *recorder, struct base_error *error)
{
    const struct server_events events = {.hello = recorder_hello,
                                         .table = ask_table,
                                         .add = recorder_add,
                                         .left = recorder_left,
                                         .calls = recorder->options->calls ? recorder_calls : NULL,
                                         .context = recorder};
    const bool needs_copy = recorder->options->command && record_agent_needs_copy(recorder->options->agent_path);
    recorder->start_ns = base_clock_now_ns();
    begin_rescue(recorder);
    return record_probe(error) == 0 && record_loop_begin(&recorder->loop, error) == 0 && watch(recorder, error) == 0 &&
                   begin_tables(recorder, error) == 0 &&
                   record_server_begin(&recorder->server, &recorder->loop, &events, needs_copy, error) == 0
               ? 0
               : -1;
}

static int begin(struct recorder *recorder, struct base_error *error)
{
    return make_settings(recorder, error) == 0 &&
                   record_output_begin(&recorder->output, recorder->options->path, error) == 0
               ? 0
               : -1;
}

static void begin_time(struct recorder *recorder)
{
    recorder->start_ns = base_clock_now_ns();
    if (recorder->options->duration_ns)
        recorder->stop_ns = recorder->start_ns + recorder->options->duration_ns;
}

static int start_command(struct recorder *recorder, struct base_error *error)
{
    const struct launch how = {.path = recorder->options->program->path,
                               .arguments = recorder->options->command,
                               .preload = recorder->preload,
                               .settings = recorder->settings,
                               .mask = &recorder->mask_before};
    struct launched launched;
    // A process that asks for its parent sees us then, not the init process: only where we are told to wait for it.
    if (recorder->options->wait_for_all)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    int failed = record_launch(&how, &launched, error);
    if (failed)
        return failed;
    recorder->command_pid = launched.pid;
    recorder->is_told_by_signal = launched.process_fd < 0;
    recorder->command.fd = launched.process_fd < 0 ? record_loop_event() : launched.process_fd;
    record_loop_add(&recorder->loop, &recorder->command, NULL);
    begin_time(recorder);
    return 0;
}

// ---- a process that runs

static bool waits_for_injector(const struct recorder *recorder, int state)
{
    return atomic_load_explicit(&recorder->injector.state, memory_order_acquire) == state;
}

static int start_injection(struct recorder *recorder, struct base_error *error)
{
    enum { STATUS_BAD = 2 };
    const struct record_options *options = recorder->options;
    const struct inject_options how = record_injector_options(options, recorder->settings, &recorder->provide);
    recorder->command.fd = (int)syscall(SYS_pidfd_open, options->pid, 0);
    if (recorder->command.fd < 0) {
        const bool is_gone = errno == ESRCH;
        base_fail(error, BASE_ERR_IO, "", 0, "%s%s",
                  is_gone ? "no such process" : "pidfd_open: ", is_gone ? "" : strerror(errno));
        return STATUS_BAD;
    }
    record_loop_add(&recorder->loop, &recorder->command, NULL);
    if (record_injector_begin(&recorder->injector, options->pid, &how, recorder->finished.fd, error) != 0)
        return STATUS_BAD;
    while (waits_for_injector(recorder, INJECTOR_LOADS))
        record_loop_wait(&recorder->loop, LOOK_EVERY_MS);
    begin_time(recorder);
    if (recorder->injector.was_loaded) {
        recorder_calls_begin(recorder);
        return 0;
    }
    *error = recorder->injector.error;
    record_injector_join(&recorder->injector);
    return STATUS_BAD;
}

// It closes its trace, and says what it has counted.
static void end_injection(struct recorder *recorder)
{
    if (waits_for_injector(recorder, INJECTOR_NONE))
        return;
    recorder_calls_stop(recorder); // as long as the agent is there
    size_t child_count;
    pid_t *children = recorder_forked(recorder, &child_count);
    record_injector_remove(&recorder->injector, children, child_count);
    while (!waits_for_injector(recorder, INJECTOR_DONE))
        record_loop_wait(&recorder->loop, LOOK_EVERY_MS);
    // One that has ended has taken the agent with it.
    if (recorder->injector.error.reason && recorder->command.fd >= 0) {
        char text[256];
        recorder_say(recorder, NULL, "the agent was not taken out: %s",
                     base_error_text(&recorder->injector.error, text, sizeof text));
        recorder->result->is_agent_left = true;
    }
    if (recorder->injector.children_left) {
        char text[256];
        recorder_say(recorder, NULL, "the agent was not taken out of %u children; the first: %s",
                     recorder->injector.children_left,
                     base_error_text(&recorder->injector.child_error, text, sizeof text));
        recorder->result->is_agent_left = true;
    }
    recorder->result->inject_stopped_ns = recorder->injector.figures.stopped_ns;
    record_injector_join(&recorder->injector);
    // Its collector sees at its next look that the trace is closed.
    enum { LOOKS = 20 };
    for (int i = 0; i < LOOKS && recorder->live_count && !recorder->result->is_agent_left; i++) {
        record_loop_wait(&recorder->loop, ORPHANS_EVERY_MS);
        recorder_reap(recorder);
    }
}

// ---- as long as it goes on

// Whether a process that the command had started lives: those whose parents have ended are our children then.
static bool has_orphans(void)
{
    pid_t pid;
    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid == 0;
}

static bool is_over(const struct recorder *recorder)
{
    if (recorder->is_left)
        return true;
    return recorder->command.fd < 0 &&
           (!recorder->options->wait_for_all || recorder->is_stopped || (!has_orphans() && recorder->live_count == 0));
}

static int next_look_ms(const struct recorder *recorder, uint64_t now)
{
    uint64_t wait_ms = recorder->command.fd < 0 ? ORPHANS_EVERY_MS
                       : recorder->options->status || (recorder->options->tells_waits && !recorder->has_told_waits)
                           ? STATUS_EVERY_MS
                           : LOOK_EVERY_MS;
    if (recorder->stop_ns && !recorder->is_stopped) {
        uint64_t left_ms = recorder->stop_ns > now ? (recorder->stop_ns - now + 999999) / 1000000 : 0;
        wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
    }
    return (int)wait_ms;
}

static void serve(struct recorder *recorder)
{
    uint64_t shown_ns = recorder->start_ns;
    while (!is_over(recorder)) {
        uint64_t now = base_clock_now_ns();
        record_loop_wait(&recorder->loop, next_look_ms(recorder, now));
        now = base_clock_now_ns();
        record_server_tidy(&recorder->server, now);
        recorder_look_for_ends(recorder);
        recorder_tell_waits(recorder, now);
        if (recorder->stop_ns && now >= recorder->stop_ns && !recorder->is_stopped && !recorder->is_left) {
            if (recorder->options->command)
                recorder_stop(recorder);
            else
                leave(recorder);
            if (recorder->options->command && recorder->command.fd >= 0)
                recorder_say(recorder, NULL, "the time is up; waiting for the command to end (Ctrl-C: leave it)");
        }
        if (now - shown_ns >= (uint64_t)STATUS_EVERY_MS * 1000000u) {
            recorder_show(recorder, 0, 0);
            shown_ns = now;
        }
    }
    // Those that ended with the command said so before it did.
    record_loop_wait(&recorder->loop, 0);
    recorder_reap(recorder);
}

static void end(struct recorder *recorder)
{
    struct base_error error = {0};
    struct record_result *result = recorder->result;
    result->elapsed_ns = base_clock_now_ns() - recorder->start_ns;
    recorder_finish(recorder);
    result->is_kept = recorder->process_count != 0;
    result->packets_refused = recorder->server.refused;
    result->agents_strange = recorder->server.strange;
    result->is_short_of_descriptors |= recorder->server.turned_away != 0;
    if (record_output_end(&recorder->output, result->is_kept, &error) !=
        0) // a file that is gone says more than the rest
        base_error_text(&error, result->first_failure, sizeof result->first_failure);
    memcpy(result->kept_as, recorder->output.kept_as, sizeof result->kept_as);
    recorder->has_tables = !record_tables_end(&recorder->tables);
    result->tables_refused = recorder->tables.refused;
}

static void let_go(struct recorder *recorder)
{
    // What goes on may be about to begin a program, whose loader would say that the file is not there. The next
    // recorder takes it away.
    if (recorder->link[0] && recorder->result->processes_left == 0)
        unlink(recorder->link);
    rescue_watch_end(recorder->rescue_fd);
    record_server_end(&recorder->server);
    record_loop_remove(&recorder->loop, &recorder->command);
    record_loop_remove(&recorder->loop, &recorder->signals);
    record_loop_remove(&recorder->loop, &recorder->finished);
    record_loop_end(&recorder->loop);
    sigprocmask(SIG_SETMASK, &recorder->mask_before, NULL);
}

// A command is worth more than its recording: where there can be none, it takes our place.
static int go_without(struct recorder *recorder, struct base_error *error)
{
    const struct launch how = {.path = recorder->options->program->path,
                               .arguments = recorder->options->command,
                               .mask = &recorder->mask_before};
    char text[256];
    recorder_say(recorder, NULL, "nothing is recorded, and the command runs without: %s",
                 base_error_text(error, text, sizeof text));
    let_go(recorder);
    return record_launch_instead(&how, error);
}

int record_run(const struct record_options *options, struct record_result *result, int *status,
               struct base_error *error)
{
    enum { STATUS_BAD = 2 };
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    *result = (struct record_result){.command_status = -1};
    *recorder = (struct recorder){.options = options,
                                  .result = result,
                                  .loop = {.epoll_fd = -1},
                                  .server = {.abstract = {.fd = -1}, .in_directory = {.fd = -1}, .spare_fd = -1},
                                  .output = {.fd = -1},
                                  .rescue_fd = -1,
                                  .signals = {.fd = -1, .ready = signal_came, .context = recorder},
                                  .finished = {.fd = -1, .ready = drain_event, .context = recorder},
                                  .command = {.fd = -1, .ready = command_ended, .context = recorder}};
    sigprocmask(SIG_SETMASK, NULL, &recorder->mask_before);
    if (begin_to_serve(recorder, error) != 0)
        *status = options->command ? go_without(recorder, error) : STATUS_BAD;
    else
        *status = begin(recorder, error) != 0 ? STATUS_BAD
                  : options->command          ? start_command(recorder, error)
                                              : start_injection(recorder, error);
    if (*status < 0) { // the command could not be begun beside us
        record_output_end(&recorder->output, false, NULL);
        *status = go_without(recorder, error);
    }
    if (*status == 0) {
        serve(recorder);
        end_injection(recorder);
        end(recorder);
    } else {
        record_output_end(&recorder->output, false, NULL);
        if (recorder->has_tables)
            recorder->has_tables = !record_tables_end(&recorder->tables);
    }
    let_go(recorder);
    int failed = *status;
    if (!recorder->has_tables) // else a thread works with it until the process ends
        free(recorder);
    return failed ? -1 : 0;
}
