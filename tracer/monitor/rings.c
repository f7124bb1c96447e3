// SPDX-License-Identifier: Apache-2.0
// What segments keep, with all times, as .qtrace files in a spool of their own: windows have no times, and a ring is
// larger than many windows, so that it must not take their room.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/collect/collect.h"
#include "tracer/monitor/inside.h"

enum { NAME_BYTES = 48 };

struct ringer {
    struct monitor_window window; // of none, for what finds and says
    struct upload_spool *rings;
    uint64_t taken;
};

static int take_request(void *context, const struct upload_request *request, struct base_error *error)
{
    struct ringer *ringer = context;
    enum upload_taken how;
    if (upload_spool_take(ringer->rings, request, &how, error) != 0)
        return -1;
    ringer->taken += how == UPLOAD_TAKEN;
    return 0;
}

// Also those that are in open chunks alone, where all of a thread's first seconds are: what is copied counts others
// only.
static bool has_samples(int fd)
{
    struct trace_segment_view view;
    struct newer_told told = {.samples = 0};
    if (trace_segment_map(&view, fd, false, NULL) != 0)
        return true; // whoever copies it says what is wrong
    const bool is_known = newer_count_told(&view, &told, NULL) == 0;
    trace_segment_unmap(&view);
    return !is_known || told.samples;
}

// -1: the spool cannot take it. What is wrong with the segment is said.
static int take_ring(void *context, int segment_fd, const char *name, struct base_error *error)
{
    struct ringer *ringer = context;
    char path[NAME_BYTES];
    struct base_error why = {0};
    struct collect_result result;
    if (!has_samples(segment_fd))
        return 0;
    const int fd = memfd_create("qut-ring", MFD_CLOEXEC);
    if (fd < 0)
        return base_fail_errno(error, errno);
    const struct collect_options options = {.segment_fd = segment_fd, .file_fd = fd, .stop_fd = -1, .process_fd = -1};
    int status = 0;
    if (collect(&options, &result, &why) != 0) {
        monitor_say_error(&ringer->window, name, &why);
    } else if (result.failed_writes) {
        monitor_say_error(&ringer->window, name, &result.first_failure);
    } else {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        status = upload_make_file(path, take_request, ringer, error);
    }
    close(fd);
    return status;
}

static int each_of_folder(struct monitor_window *window, const char *folder, monitor_each_segment *each, void *context,
                          struct base_error *error)
{
    DIR *stream = opendir(folder);
    int status = 0;
    if (!stream) {
        struct base_error why = {0};
        base_fail_errno(&why, errno);
        monitor_say_error(window, folder, &why);
        return 0;
    }
    for (struct dirent *entry; status == 0 && (entry = readdir(stream)) != NULL;) {
        if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
            continue;
        const int fd = openat(dirfd(stream), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && monitor_segment_is_ring(fd))
            status = each(context, fd, entry->d_name, error);
        if (fd >= 0)
            close(fd);
    }
    closedir(stream);
    return status;
}

int monitor_each_ring(struct monitor_window *window, monitor_each_segment *each, void *context,
                      struct base_error *error)
{
    const struct monitor *monitor = window->monitor;
    int status = 0;
    for (size_t i = 0; i < monitor->options.folder_count && status == 0; i++)
        status = each_of_folder(window, monitor->options.folders[i], each, context, error);
    for (size_t i = 0; i < monitor->held.count && status == 0; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "process %" PRIu32, monitor->held.items[i].pid);
        status = each(context, monitor->held.items[i].fd, name, error);
    }
    return status;
}

int monitor_rings(struct monitor *monitor, struct upload_spool *rings, uint64_t *taken, struct base_error *error)
{
    struct ringer ringer = {.window = {.monitor = monitor}, .rings = rings};
    int status = monitor_processes_find(&ringer.window, error);
    if (status == 0)
        status = monitor_each_ring(&ringer.window, take_ring, &ringer, error);
    *taken = ringer.taken;
    return status;
}
