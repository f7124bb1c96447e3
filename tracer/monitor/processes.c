// SPDX-License-Identifier: Apache-2.0
// Segments that are memory without a name, through /proc/PID/fd: whatever mounts a process sees, and whatever its
// number is there. Such a segment is gone with its last descriptor, so each is held open from when it was found until
// it was read to its end; its writers are over when no process has it open for writing any more.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/monitor/inside.h"

static const char memory_name[] = "/memfd:qut-trace";
enum { NAME_BYTES = 48, LINK_BYTES = 64 };

static struct monitor_held *find_held(struct monitor *monitor, const struct stat *status)
{
    for (size_t i = 0; i < monitor->held.count; i++) {
        struct monitor_held *held = &monitor->held.items[i];
        if (held->inode == status->st_ino && held->device == status->st_dev)
            return held;
    }
    return NULL;
}

// A flight recorder's: others have a collector that empties them.
bool monitor_segment_is_ring(int fd)
{
    static const uint8_t none[16];
    struct qut_trace_header header;
    return pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
           memcmp(header.magic, QUT_TRACE_MAGIC, sizeof header.magic) == 0 && header.mode == QUT_TRACE_OVERWRITE &&
           memcmp(header.identity, none, sizeof none) != 0;
}

// False: no memory. One that is not ready yet is found next time.
static bool hold(struct monitor *monitor, int folder, const char *name, const struct stat *status, uint32_t pid)
{
    const int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || !monitor_segment_is_ring(fd)) {
        if (fd >= 0)
            close(fd);
        return true;
    }
    struct monitor_held *held = BASE_ADD(&monitor->held);
    if (held)
        *held = (struct monitor_held){
            .fd = fd, .pid = pid, .inode = status->st_ino, .device = status->st_dev, .is_written = true};
    else
        close(fd);
    return held;
}

static bool look_at(struct monitor *monitor, int folder, const char *name, uint32_t pid)
{
    char target[LINK_BYTES];
    struct stat link, status;
    const ssize_t length = readlinkat(folder, name, target, sizeof target);
    if (length < (ssize_t)sizeof memory_name - 1 || memcmp(target, memory_name, sizeof memory_name - 1) != 0)
        return true;
    // The link's own mode tells how it is open: who reads only keeps nobody's trace going.
    if (fstatat(folder, name, &link, AT_SYMLINK_NOFOLLOW) != 0 || !(link.st_mode & S_IWUSR) ||
        fstatat(folder, name, &status, 0) != 0)
        return true;
    struct monitor_held *held = find_held(monitor, &status);
    if (!held)
        return hold(monitor, folder, name, &status, pid);
    held->is_written = true;
    return true;
}

static void may_be_written(struct monitor *monitor, uint32_t pid)
{
    for (size_t i = 0; i < monitor->held.count; i++)
        monitor->held.items[i].is_written |= !pid || monitor->held.items[i].pid == pid;
}

static bool look_through(struct monitor *monitor, int proc, uint32_t pid)
{
    char path[NAME_BYTES];
    snprintf(path, sizeof path, "%" PRIu32 "/fd", pid);
    const int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) {
        if (errno != ENOENT && errno != ESRCH)
            may_be_written(monitor, pid); // it was allowed once
        if (fd >= 0)
            close(fd);
        return true;
    }
    bool is_good = true;
    for (struct dirent *entry; is_good && (entry = readdir(folder)) != NULL;)
        is_good = look_at(monitor, fd, entry->d_name, pid);
    closedir(folder);
    return is_good;
}

// Our own number as this /proc has it: what we hold is open here, too.
static uint32_t own_pid(int proc)
{
    char text[LINK_BYTES] = "";
    const ssize_t length = readlinkat(proc, "self", text, sizeof text - 1);
    return length > 0 ? (uint32_t)strtoul(text, NULL, 10) : (uint32_t)getpid();
}

int monitor_processes_find(struct monitor_window *window, struct base_error *error)
{
    struct monitor *monitor = window->monitor;
    if (!monitor->options.processes)
        return 0;
    DIR *stream = opendir("/proc");
    if (!stream) {
        struct base_error why = {0};
        base_fail_errno(&why, errno);
        monitor_say_error(window, "/proc", &why);
        window->is_all = false;
        may_be_written(monitor, 0);
        return 0;
    }
    const uint32_t own = own_pid(dirfd(stream));
    bool is_good = true;
    for (struct dirent *entry; is_good && (entry = readdir(stream)) != NULL;) {
        const uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        if (pid && pid != own)
            is_good = look_through(monitor, dirfd(stream), pid);
    }
    closedir(stream);
    return is_good ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "segments");
}

int monitor_processes(struct monitor_window *window, struct base_error *error)
{
    struct monitor *monitor = window->monitor;
    for (size_t i = 0; i < monitor->held.count; i++)
        monitor->held.items[i].is_written = false;
    int result = monitor_processes_find(window, error);
    for (size_t i = 0; i < monitor->held.count && result == 0; i++) {
        const struct monitor_held *held = &monitor->held.items[i];
        char name[NAME_BYTES];
        bool is_ended;
        snprintf(name, sizeof name, "process %" PRIu32, held->pid);
        result = monitor_segment_take(window, held->fd, name, !held->is_written, &is_ended, error);
    }
    return result;
}

void monitor_processes_let_go(struct monitor *monitor, bool of_all)
{
    size_t kept = 0;
    for (size_t i = 0; i < monitor->held.count; i++)
        if (of_all || !monitor->held.items[i].is_written)
            close(monitor->held.items[i].fd);
        else
            monitor->held.items[kept++] = monitor->held.items[i];
    monitor->held.count = kept;
}
