// SPDX-License-Identifier: Apache-2.0
// The watcher: a copy of this process, a grandchild, so that nobody waits for it. It reads from a pipe, whose other end
// closes with its tool however that ends.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libqut/os/process.h"
#include "tracer/rescue/rescue.h"

static const char all_is_well = 'e';

// Children of fork that came at the last moment are met in another round.
static void rescue_all(const struct inject_owner *owner, const struct inject_options *how)
{
    enum { ROUNDS = 3, NAP_US = 20000 };
    for (unsigned i = 0; i < ROUNDS; i++) {
        DIR *all = opendir("/proc");
        const struct dirent *entry;
        while (all && (entry = readdir(all))) {
            const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
            struct rescue_figures figures;
            struct base_error error = {0};
            if (pid > 0 && pid != getpid())
                rescue_process(pid, owner, how, &figures, &error); // nobody is there to be told
        }
        if (all)
            closedir(all);
        os_sleep_us(NAP_US);
    }
}

// Descriptors of the tool's would be held open: its output, its socket.
static void keep_only(int fd)
{
    DIR *all = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (all && (entry = readdir(all))) {
        const int other = (int)strtol(entry->d_name, NULL, 10);
        if (entry->d_name[0] != '.' && other != fd && other != dirfd(all))
            close(other);
    }
    if (all)
        closedir(all);
    if (fd <= STDERR_FILENO)
        return;
    for (int i = 0; i <= STDERR_FILENO; i++)
        if (open("/dev/null", O_RDWR) < 0) // the lowest that is free
            return;
}

static _Noreturn void watch(int fd, const struct inject_owner *owner, const struct inject_options *how)
{
    char told = 0;
    sigset_t none;
    setsid();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_NAME, "qut-rescue");
    keep_only(fd);
    ssize_t got;
    do
        got = read(fd, &told, sizeof told);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof told || told != all_is_well)
        rescue_all(owner, how);
    _exit(0);
}

int rescue_watch(const struct inject_options *how)
{
    const struct inject_owner self = inject_owner_self();
    int ends[2];
    if (!self.pid || pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    const pid_t between = fork();
    if (between == 0) {
        close(ends[1]);
        if (fork() == 0)
            watch(ends[0], &self, how);
        _exit(0);
    }
    close(ends[0]);
    if (between > 0) {
        while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
            continue;
        return ends[1];
    }
    close(ends[1]);
    return -1;
}

void rescue_watch_end(int fd)
{
    if (fd < 0)
        return;
    if (write(fd, &all_is_well, sizeof all_is_well) < 0)
        return; // it has gone before
    close(fd);
}
