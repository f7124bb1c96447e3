// SPDX-License-Identifier: Apache-2.0
// One window, from the segments to the spool. What is to be remembered is written beside what was, with the requests'
// ids, before any of these reaches the spool; and takes its place when all have. Who finds both knows by the spool how
// far that had come.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/monitor/inside.h"

// ---- requests

static int keep_request(void *context, const struct upload_request *request, struct base_error *error)
{
    struct monitor_window *window = context;
    struct monitor_request *remembered = BASE_ADD(&window->next.requests);
    struct upload_request *place = remembered ? BASE_ADD(&window->bodies) : NULL;
    uint8_t *body = place ? malloc(request->body.size + 1) : NULL;
    if (place)
        *place = *request;
    if (place)
        place->body.data = body;
    if (!body)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "request");
    memcpy(body, request->body.data, request->body.size);
    *remembered = (struct monitor_request){.samples = request->samples};
    memcpy(remembered->id, request->id, sizeof remembered->id);
    return 0;
}

static int make_requests(struct monitor_window *window, const struct trace *trace, struct base_error *error)
{
    struct upload_wanted wanted = window->monitor->options.wanted;
    wanted.window = window->next.sums.windows;
    wanted.halvings = window->monitor->rate.halvings;
    struct names *names = names_of(trace, &window->monitor->options.names, error);
    const int result = names ? upload_make(trace, names, &wanted, keep_request, window, error) : -1;
    names_free(names);
    return result;
}

// A request of OTLP has many processes, a push of Pyroscope one.
int monitor_window_add(struct monitor_window *window, const struct trace *part, struct base_error *error)
{
    if (window->is_passed_over)
        return 0;
    if (window->monitor->options.wanted.form != UPLOAD_OTLP)
        return make_requests(window, part, error);
    if (!window->has_parts && !trace_merge_begin(&window->merger))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "window");
    window->has_parts = true;
    return trace_merge_add(&window->merger, part, error);
}

static int end_parts(struct monitor_window *window, struct base_error *error)
{
    struct trace trace;
    if (!window->has_parts)
        return 0;
    int result = trace_merge_end(&window->merger, &trace, error);
    if (result == 0)
        result = make_requests(window, &trace, error);
    return result;
}

// ---- what is remembered

static int sync_folder(const struct monitor *monitor, struct base_error *error)
{
    return fsync(monitor->folder) == 0 ? 0 : base_fail_errno(error, errno);
}

static int settle_state(struct monitor *monitor, struct base_error *error)
{
    if (rename(monitor->next_path, monitor->path) != 0 || fsync(monitor->folder) != 0)
        return base_fail_errno(error, errno);
    monitor->is_open = false;
    return 0;
}

// Those that the spool does not know never came there. How many it knows.
static size_t count_known(struct monitor *monitor, struct monitor_state *state)
{
    size_t known = 0;
    for (size_t i = 0; i < state->requests.count; i++)
        known += upload_spool_knows(monitor->spool, state->requests.items[i].id);
    for (size_t i = 0; known && i < state->requests.count; i++) {
        const struct monitor_request *request = &state->requests.items[i];
        if (upload_spool_knows(monitor->spool, request->id))
            continue;
        state->sums.in_windows -= request->samples < state->sums.in_windows ? request->samples : state->sums.in_windows;
        state->sums.cut_off += request->samples;
    }
    return known;
}

// What a process left that ended between the two.
static int recover(struct monitor *monitor, struct base_error *error)
{
    struct monitor_state next;
    const int found = monitor_state_read(&next, monitor->next_path, error);
    if (found != 0)
        return found < 0 ? -1 : 0;
    if (next.requests.count && !count_known(monitor, &next)) {
        monitor_state_free(&next);
    } else {
        monitor_state_free(&monitor->state);
        monitor->state = next;
        monitor->state.requests.count = 0;
        if (monitor_state_write(&monitor->state, monitor->path, error) != 0 || sync_folder(monitor, error) != 0)
            return -1;
    }
    return unlink(monitor->next_path) == 0 ? sync_folder(monitor, error) : base_fail_errno(error, errno);
}

// ---- to the spool

static int take_all(struct monitor_window *window, struct base_error *error)
{
    for (size_t i = 0; i < window->bodies.count; i++) {
        enum upload_taken how;
        if (upload_spool_take(window->monitor->spool, &window->bodies.items[i], &how, error) != 0)
            return -1;
    }
    return 0;
}

static void adopt(struct monitor_window *window)
{
    struct monitor *monitor = window->monitor;
    monitor_state_free(&monitor->state);
    monitor->state = window->next;
    monitor->state.requests.count = 0;
    window->next = (struct monitor_state){.from_ns = 0};
}

static int commit(struct monitor_window *window, struct base_error *error)
{
    struct monitor *monitor = window->monitor;
    if (monitor_state_write(&window->next, monitor->next_path, error) != 0)
        return -1;
    int result = sync_folder(monitor, error);
    if (result == 0)
        result = take_all(window, error);
    if (result != 0 && (!window->bodies.count || !count_known(monitor, &window->next))) {
        unlink(monitor->next_path); // nothing has happened
        return -1;
    }
    adopt(window);
    if (result != 0) // some came there
        monitor_state_write(&monitor->state, monitor->next_path, NULL);
    monitor->is_open = true;
    return settle_state(monitor, error) == 0 ? result : -1;
}

static int take_window(struct monitor_window *window, struct base_error *error)
{
    struct monitor_state *next = &window->next;
    next->sums.windows++; // of which requests are
    if (monitor_segments(window, error) != 0 || monitor_processes(window, error) != 0 || end_parts(window, error) != 0)
        return -1;
    const size_t before = next->count;
    monitor_state_fold(next, window->is_all);
    if (!window->bodies.count)
        next->sums.windows--;
    if (!window->bodies.count && !window->is_changed && next->count == before)
        return 0;
    uint64_t sent = 0;
    for (size_t i = 0; i < next->requests.count; i++)
        sent += next->requests.items[i].samples;
    sent = sent < window->samples ? sent : window->samples; // an interval that is cut in two counts in both
    next->sums.in_windows += sent;
    next->sums.left_out += window->samples - sent;
    next->from_ns = window->to_ns;
    return commit(window, error);
}

// By lot, so that what happens at certain times has the same chance as anything else; each host's lots are its own.
static bool is_passed_over(const struct monitor *monitor, uint64_t now_ns)
{
    const unsigned percent = monitor->options.wanted.window_share_percent;
    const char *host = monitor->options.wanted.labels.host;
    return percent && base_hash_word(host ? base_hash_bytes(0, host, strlen(host)) : 0, now_ns) % 100 >= percent;
}

int monitor_window(struct monitor *monitor, struct base_error *error)
{
    struct monitor_window window = {.monitor = monitor, .to_ns = base_clock_now_ns(), .is_all = true};
    window.is_passed_over = is_passed_over(monitor, window.to_ns);
    if (monitor->is_open && settle_state(monitor, error) != 0)
        return -1;
    if (!monitor_state_copy(&window.next, &monitor->state))
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "window");
    window.from_ns = monitor->state.from_ns < window.to_ns ? monitor->state.from_ns : 0; // else of another boot
    window.realtime_ns = base_clock_ns(CLOCK_REALTIME) - (window.to_ns - window.from_ns);
    const int result = take_window(&window, error);
    // Only now: who began again would read them once more.
    if (result == 0)
        monitor_processes_let_go(monitor, false);
    for (size_t i = 0; i < window.ended.count; i++) {
        if (result == 0 && window.ended.items[i])
            unlink(window.ended.items[i]);
        free(window.ended.items[i]);
    }
    for (size_t i = 0; i < window.bodies.count; i++)
        free((uint8_t *)(uintptr_t)window.bodies.items[i].body.data);
    if (window.has_parts) {
        trace_merge_free(&window.merger);
        trace_memory_free(window.merger.memory);
    }
    base_vector_free(&window.ended.vector);
    base_vector_free(&window.bodies.vector);
    monitor_state_free(&window.next);
    return result;
}

void monitor_balance(const struct monitor *monitor, struct monitor_balance *balance)
{
    monitor_state_add_up(&monitor->state, balance);
}

// ---- opening

static int open_folder(struct monitor *monitor, struct base_error *error)
{
    const char *folder = monitor->options.spool_folder;
    if (asprintf(&monitor->path, "%s/monitor", folder) < 0)
        monitor->path = NULL;
    if (asprintf(&monitor->next_path, "%s/monitor.next", folder) < 0)
        monitor->next_path = NULL;
    if (!monitor->path || !monitor->next_path)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "windows");
    monitor->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (monitor->folder < 0)
        return base_fail_errno(error, errno);
    return monitor_state_read(&monitor->state, monitor->path, error) < 0 ? -1 : recover(monitor, error);
}

struct monitor *monitor_open(const struct monitor_options *options, struct upload_spool *spool,
                             struct base_error *error)
{
    struct monitor *monitor = calloc(1, sizeof *monitor);
    if (!monitor) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "windows");
        return NULL;
    }
    *monitor = (struct monitor){.options = *options, .spool = spool, .folder = -1, .begin_ns = base_clock_now_ns()};
    if (open_folder(monitor, error) == 0) {
        monitor_rate_begin(monitor);
        return monitor;
    }
    monitor_close(monitor);
    return NULL;
}

void monitor_close(struct monitor *monitor)
{
    if (!monitor)
        return;
    if (monitor->folder >= 0)
        close(monitor->folder);
    monitor_processes_let_go(monitor, true);
    base_vector_free(&monitor->held.vector);
    monitor_marks_free(monitor);
    monitor_state_free(&monitor->state);
    free(monitor->path);
    free(monitor->next_path);
    free(monitor);
}
