// SPDX-License-Identifier: Apache-2.0
// The segments of a folder, as they are found there: being made, written to, left by processes that are gone.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/monitor/inside.h"

void monitor_say_error(const struct monitor_window *window, const char *name, const struct base_error *error)
{
    const struct monitor_options *options = &window->monitor->options;
    char text[256];
    if (options->say)
        options->say(options->context, name, base_error_text(error, text, sizeof text));
}

// Whether no process has it open for writing, or mapped so, any more: then one may have a lease for reading. It knows
// no numbers of processes, which are other ones in each container. Where leases cannot be had: false.
static bool is_left(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return false;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return true;
}

// Of the window alone: what was lost in it, when it was.
static void settle(const struct monitor_window *window, struct trace *part, uint64_t missing, uint64_t lost)
{
    struct trace_process *process = &part->processes[0];
    part->is_complete = true; // that the process goes on is no loss, and what is one is counted
    part->overwritten_samples = missing;
    part->stored += missing;
    part->counts.hits += missing + lost;
    part->counts.lost[QUT_TRACE_LOST_POOL] = lost;
    process->overwritten_samples = missing;
    process->stored = part->stored;
    process->counts = part->counts;
    const uint64_t start_ns = part->start_ns > window->from_ns ? part->start_ns : window->from_ns;
    part->boottime_ns += start_ns - part->start_ns;
    part->realtime_ns = window->realtime_ns + (start_ns - window->from_ns);
    part->start_ns = process->start_ns = start_ns < window->to_ns ? start_ns : window->to_ns;
    part->end_ns = process->end_ns = window->to_ns;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static int take_part(struct monitor_window *window, const struct trace_segment_view *view,
                     struct monitor_segment *segment, struct base_error *error)
{
    struct newer_seen now = {.items = NULL};
    struct newer_told told;
    struct trace part;
    if (newer_read(view, &segment->seen, &part, &told, &now, error) != 0)
        return -1;
    const uint64_t missing_before = less(segment->told, segment->taken), lost_before = segment->lost;
    newer_seen_free(&segment->seen);
    segment->seen = now;
    segment->taken += part.present_samples;
    segment->told = told.samples;
    segment->lost = told.lost;
    segment->is_damaged = segment->is_damaged || part.damaged_chunks;
    segment->is_ended = segment->is_ended || told.is_closed;
    window->is_changed = true;
    window->samples += part.present_samples;
    const uint64_t missing = less(less(told.samples, segment->taken), missing_before);
    const uint64_t lost = less(told.lost, lost_before);
    int result = 0;
    if (part.present_samples || missing || lost) {
        settle(window, &part, missing, lost);
        result = monitor_window_add(window, &part, error);
    }
    trace_free(&part);
    return result;
}

static struct monitor_segment *segment_of(struct monitor_window *window, const struct qut_trace_header *header)
{
    struct monitor_segment *segment = monitor_state_find(&window->next, header->identity);
    if (segment)
        return segment;
    segment = BASE_ADD(&window->next);
    if (!segment)
        return NULL;
    *segment = (struct monitor_segment){.told = 0};
    memcpy(segment->identity, header->identity, sizeof segment->identity);
    return segment;
}

// 0; 1: it can be read no more than it was; -1: the window cannot be taken.
static int take_view(struct monitor_window *window, const struct trace_segment_view *view, bool was_left,
                     struct monitor_segment *segment, struct base_error *error)
{
    struct newer_told told;
    if (newer_count_told(view, &told, error) != 0)
        return error->reason == BASE_ERR_NO_MEMORY ? -1 : 1;
    const bool is_new = told.samples != segment->told || told.lost != segment->lost;
    if ((was_left || told.is_closed) && !segment->is_ended)
        window->is_changed = segment->is_ended = true;
    return is_new && take_part(window, view, segment, error) != 0 ? (error->reason == BASE_ERR_NO_MEMORY ? -1 : 1) : 0;
}

int monitor_segment_take(struct monitor_window *window, int fd, const char *name, bool is_left, bool *is_ended,
                         struct base_error *error)
{
    static const uint8_t none[16];
    struct qut_trace_header header;
    struct trace_segment_view view;
    struct base_error why = {0};
    *is_ended = false;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        memcmp(header.magic, QUT_TRACE_MAGIC, sizeof header.magic) != 0 ||
        memcmp(header.identity, none, sizeof none) == 0)
        return 0; // it is none, or not yet
    struct monitor_segment *segment = segment_of(window, &header);
    if (!segment)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "segments");
    if (segment->is_there)
        return 0; // a copy
    segment->is_there = true;
    int result = 0;
    if (!segment->is_ended) { // else that is remembered, and its file stayed
        result = trace_segment_map(&view, fd, false, &why);
        if (result == 0) {
            result = take_view(window, &view, is_left, segment, &why);
            trace_segment_unmap(&view);
        }
        if (result != 0)
            monitor_say_error(window, name, &why);
    }
    *is_ended = segment->is_ended;
    return result < 0 && why.reason == BASE_ERR_NO_MEMORY ? base_fail_as(error, &why) : 0;
}

static int take_file(struct monitor_window *window, int fd, const char *path, struct base_error *error)
{
    bool is_ended;
    const bool was_left = is_left(fd); // before it is read: all that it had is in there then
    const int result = monitor_segment_take(window, fd, path, was_left, &is_ended, error);
    if (result != 0 || !is_ended)
        return result;
    char **place = BASE_ADD(&window->ended);
    char *copy = place ? strdup(path) : NULL;
    if (place)
        *place = copy;
    return copy ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "segments");
}

static int take_entry(struct monitor_window *window, const char *folder, const char *name, struct base_error *error)
{
    struct stat status;
    char *path = NULL;
    if (name[0] == '.')
        return 0;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "segments");
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int result = 0;
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        result = take_file(window, fd, path, error);
    } else if (fd < 0 && errno != ENOENT && errno != ELOOP && errno != ENXIO) {
        struct base_error why = {0};
        base_fail_errno(&why, errno);
        monitor_say_error(window, path, &why);
        window->is_all = false;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return result;
}

static int take_folder(struct monitor_window *window, const char *folder, struct base_error *error)
{
    DIR *stream = opendir(folder);
    int result = 0;
    errno = stream ? 0 : errno;
    for (struct dirent *entry; result == 0 && stream && (entry = readdir(stream)) != NULL; errno = 0)
        if (monitor_note_is(entry->d_name))
            monitor_note_take(window, dirfd(stream), entry->d_name);
        else
            result = take_entry(window, folder, entry->d_name, error);
    if (result == 0 && errno) {
        struct base_error why = {0};
        base_fail_errno(&why, errno);
        monitor_say_error(window, folder, &why);
        window->is_all = false;
    }
    if (stream)
        closedir(stream);
    return result;
}

int monitor_segments(struct monitor_window *window, struct base_error *error)
{
    const struct monitor_options *options = &window->monitor->options;
    for (size_t i = 0; i < options->folder_count; i++)
        if (take_folder(window, options->folders[i], error) != 0)
            return -1;
    return 0;
}
