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

// -1: the spool cannot take it. What is wrong with the segment is said.
static int take_ring(struct ringer *ringer, int segment_fd, const char *name, struct base_error *error)
{
    char path[NAME_BYTES];
    struct base_error why = {0};
    struct collect_result result;
    const int fd = memfd_create("qut-ring", MFD_CLOEXEC);
    if (fd < 0)
        return base_fail_errno(error, errno);
    const struct collect_options options = {.segment_fd = segment_fd, .file_fd = fd, .stop_fd = -1, .process_fd = -1};
    int status = 0;
    if (collect(&options, &result, &why) != 0) {
        monitor_say_error(&ringer->window, name, &why);
    } else if (result.failed_writes) {
        monitor_say_error(&ringer->window, name, &result.first_failure);
    } else if (result.sample_count) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        status = upload_make_file(path, take_request, ringer, error);
    }
    close(fd);
    return status;
}

static int take_folder(struct ringer *ringer, const char *folder, struct base_error *error)
{
    DIR *stream = opendir(folder);
    int status = 0;
    if (!stream) {
        struct base_error why = {0};
        base_fail_errno(&why, errno);
        monitor_say_error(&ringer->window, folder, &why);
        return 0;
    }
    for (struct dirent *entry; status == 0 && (entry = readdir(stream)) != NULL;) {
        if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
            continue;
        const int fd = openat(dirfd(stream), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0 && monitor_segment_is_ring(fd))
            status = take_ring(ringer, fd, entry->d_name, error);
        if (fd >= 0)
            close(fd);
    }
    closedir(stream);
    return status;
}

int monitor_rings(struct monitor *monitor, struct upload_spool *rings, uint64_t *taken, struct base_error *error)
{
    const struct monitor_options *options = &monitor->options;
    struct ringer ringer = {.window = {.monitor = monitor}, .rings = rings};
    int status = monitor_processes_find(&ringer.window, error);
    for (size_t i = 0; i < options->folder_count && status == 0; i++)
        status = take_folder(&ringer, options->folders[i], error);
    for (size_t i = 0; i < monitor->held.count && status == 0; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "process %" PRIu32, monitor->held.items[i].pid);
        status = take_ring(&ringer, monitor->held.items[i].fd, name, error);
    }
    *taken = ringer.taken;
    return status;
}
