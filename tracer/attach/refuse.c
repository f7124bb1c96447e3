// SPDX-License-Identifier: Apache-2.0
// Why a process cannot be sampled, and what its owner can do about it. Asked of /proc before anything is done to it.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/attach/inside.h"

int attach_fail(struct attach_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return -1;
}

// What a file of a process says; -errno.
static ssize_t read_proc(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -errno : read(fd, text, size - 1);
    if (fd >= 0 && got < 0)
        got = -errno;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return got;
}

// The line of /proc/PID/status that begins so, behind its colon and blanks; "": there is none.
static const char *field(const char *status, const char *name)
{
    for (const char *line = status; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            return line + strlen(name) + 1 + strspn(line + strlen(name) + 1, " \t");
    return "";
}

static int yama_scope(void)
{
    char digit = 0;
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, &digit, 1) != 1)
        digit = 0;
    if (fd >= 0)
        close(fd);
    return digit >= '0' && digit <= '9' ? digit - '0' : 0;
}

// Whether we have CAP_SYS_PTRACE, in whatever user namespace we are in.
static bool may_trace_all(void)
{
    enum { CAP_SYS_PTRACE_BIT = 19 };
    char status[4096];
    read_proc(getpid(), "status", status, sizeof status);
    return strtoull(field(status, "CapEff"), NULL, 16) >> CAP_SYS_PTRACE_BIT & 1;
}

bool attach_same_namespace(pid_t pid, const char *name)
{
    char path[64], ours[64];
    struct stat theirs_status, ours_status;
    snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, name);
    snprintf(ours, sizeof ours, "/proc/self/ns/%s", name);
    // Of a process that may not be looked at nothing is told.
    return stat(path, &theirs_status) != 0 || stat(ours, &ours_status) != 0 ||
           theirs_status.st_ino == ours_status.st_ino;
}

static int not_permitted(pid_t pid, const char *status, struct attach_error *error)
{
    unsigned uid = (unsigned)strtoul(field(status, "Uid"), NULL, 10);
    int scope = yama_scope();
    char path[64];
    struct stat owner;
    if (scope == 3)
        return attach_fail(error,
                           "%d: not permitted: kernel.yama.ptrace_scope is 3: nobody may trace, until the next boot. "
                           "Start the program with qut record -- COMMAND instead",
                           (int)pid);
    if (may_trace_all())
        return attach_fail(error, "%d: not permitted, although we have CAP_SYS_PTRACE: %s. Run qut %s", (int)pid,
                           attach_same_namespace(pid, "user")
                               ? "a security module (AppArmor, SELinux) or seccomp forbids it"
                               : "it is in another user namespace",
                           attach_same_namespace(pid, "user") ? "outside of the container" : "in that of its parent");
    if (uid != geteuid())
        return attach_fail(error,
                           "%d: not permitted: it belongs to user %u, we are %u. Run qut as that user or with sudo",
                           (int)pid, uid, (unsigned)geteuid());
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid); // its directory would tell the user alone
    if (stat(path, &owner) == 0 && owner.st_uid != uid)
        return attach_fail(
            error,
            "%d: not permitted: it protects itself (it is not dumpable: setuid, with capabilities, or by "
            "prctl). With sudo it can be recorded",
            (int)pid);
    if (scope == 2)
        return attach_fail(error,
                           "%d: not permitted: kernel.yama.ptrace_scope is 2: only CAP_SYS_PTRACE may trace. Use sudo, "
                           "or start the program with qut record -- COMMAND",
                           (int)pid);
    if (scope == 1)
        return attach_fail(
            error,
            "%d: not permitted: kernel.yama.ptrace_scope is 1: only descendants may be traced. Use sudo, "
            "or sysctl kernel.yama.ptrace_scope=0, or start the program with qut record -- COMMAND",
            (int)pid);
    return attach_fail(error,
                       "%d: not permitted: it has capabilities that we do not have, or a container or seccomp forbids "
                       "it. Use sudo; in a container start that with --cap-add=SYS_PTRACE",
                       (int)pid);
}

void attach_read_state(pid_t pid, char *state)
{
    char status[4096];
    *state = read_proc(pid, "status", status, sizeof status) > 0 ? *field(status, "State") : 0;
}

static bool is_rescuer(pid_t tracer)
{
    char name[64] = "";
    return tracer > 0 && read_proc(tracer, "comm", name, sizeof name) > 0 && strcmp(name, "qut-rescue\n") == 0;
}

// Who puts back what a killed tool has left there (tracer/rescue) is soon done.
static void wait_for_rescuer(pid_t pid, char *status, size_t size)
{
    enum { NAP_US = 20000, NAPS = 750 };
    for (unsigned i = 0; i < NAPS && is_rescuer((pid_t)strtol(field(status, "TracerPid"), NULL, 10)); i++) {
        usleep(NAP_US);
        if (read_proc(pid, "status", status, size) <= 0)
            return;
    }
}

int attach_refuse(pid_t *pid, pid_t *tid, struct attach_error *error)
{
    char status[4096], text[256];
    pid_t asked = *pid;
    if (asked <= 0 || read_proc(asked, "status", status, sizeof status) <= 0)
        return attach_fail(error, "%d: no such process", (int)asked);
    pid_t group = (pid_t)strtol(field(status, "Tgid"), NULL, 10);
    if (group > 0 && group != asked) { // a thread
        *tid = *tid ? *tid : asked;
        *pid = group;
        if (read_proc(group, "status", status, sizeof status) <= 0)
            return attach_fail(error, "%d: no such process", (int)group);
    }
    if (*pid == getpid())
        return attach_fail(error, "%d: is this process", (int)*pid);
    wait_for_rescuer(*pid, status, sizeof status);
    long tracer = strtol(field(status, "TracerPid"), NULL, 10);
    char state = *field(status, "State");
    bool has_memory = *field(status, "VmSize") != 0;
    if ((state == 'Z' || state == 'X') && !has_memory && strtol(field(status, "Threads"), NULL, 10) <= 1)
        return attach_fail(error, "%d: has ended; its parent, %ld, has not asked how", (int)*pid,
                           strtol(field(status, "PPid"), NULL, 10));
    if (!has_memory && state != 'Z')
        return attach_fail(error, "%d: a kernel thread: it has no stack of a program", (int)*pid);
    if (tracer > 0) {
        char name[64];
        read_proc((pid_t)tracer, "comm", name, sizeof name);
        name[strcspn(name, "\n")] = 0;
        return attach_fail(error, "%d: is being traced by %ld (%s): a process has one tracer at a time", (int)*pid,
                           tracer, *name ? name : "unknown");
    }
    // It asks the kernel whether we may trace, and does nothing else.
    ssize_t got = read_proc(*pid, "syscall", text, sizeof text);
    if (got == -EPERM || got == -EACCES)
        return not_permitted(*pid, status, error);
    if (got == -ENOENT)
        return attach_fail(error, "%d: has ended, or this kernel has no /proc/PID/syscall", (int)*pid);
    if (*tid) {
        snprintf(text, sizeof text, "/proc/%d/task/%d", (int)*pid, (int)*tid);
        if (access(text, F_OK) != 0)
            return attach_fail(error, "%d: has no thread %d", (int)*pid, (int)*tid);
    }
    return 0;
}
