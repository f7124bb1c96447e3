// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/qut_agent.h"
#include "tracer/record/command_file.h"

int record_launch_take_signals(bool with_children, sigset_t *mask_before)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    if (with_children)
        sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action;
        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &set, mask_before);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static const int ignored[] = {SIGPIPE, SIGXFSZ}; // a write fails then, which is dealt with
static struct sigaction before[sizeof ignored / sizeof *ignored];
static bool is_ignoring;

void record_launch_ignore_signals(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        sigaction(ignored[i], &action, &before[i]);
    is_ignoring = true;
}

static struct rlimit limit_before;
static bool is_raised;

void record_launch_raise_limit(void)
{
    struct rlimit limit;
    if (is_raised || getrlimit(RLIMIT_NOFILE, &limit_before) != 0)
        return;
    limit = limit_before;
    limit.rlim_cur = limit.rlim_max;
    is_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static void restore_limit(void)
{
    if (is_raised)
        setrlimit(RLIMIT_NOFILE, &limit_before);
}

static void restore_signals(const sigset_t *mask)
{
    for (size_t i = 0; is_ignoring && i < sizeof ignored / sizeof *ignored; i++)
        sigaction(ignored[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
}

// gcc's AddressSanitizer ends a program that has anything before it in the list of libraries, unless it is told not to
// look.
static int permit_sanitizers(void)
{
    static const char option[] = "verify_asan_link_order=0";
    const char *already = getenv("ASAN_OPTIONS");
    if (!already || !*already)
        return setenv("ASAN_OPTIONS", option, 1);
    char *both = malloc(strlen(already) + 1 + sizeof option);
    if (!both)
        return -1;
    sprintf(both, "%s:%s", already, option);
    int result = setenv("ASAN_OPTIONS", both, 1);
    free(both);
    return result;
}

static void be_the_command(const struct launch *launch, int error_fd)
{
    int failed = 0;
    if (launch->preload && (setenv("LD_PRELOAD", launch->preload, 1) != 0 || permit_sanitizers() != 0))
        failed = errno;
    if (launch->settings && setenv(AGENT_VARIABLE, launch->settings, 1) != 0)
        failed = errno;
    restore_signals(launch->mask);
    restore_limit();
    if (!failed) {
        // execvp: a file without a first line that says what it is goes to the shell.
        execvp(launch->path, launch->arguments);
        failed = errno;
    }
    if (write(error_fd, &failed, sizeof failed) < 0)
        _exit(PROGRAM_NOT_EXECUTABLE);
    _exit(PROGRAM_NOT_EXECUTABLE);
}

static int status_of(int failed)
{
    return failed == ENOENT ? PROGRAM_NOT_FOUND : PROGRAM_NOT_EXECUTABLE;
}

int record_launch_instead(const struct launch *launch, struct base_error *error)
{
    restore_signals(launch->mask);
    restore_limit();
    execvp(launch->path, launch->arguments);
    const int failed = errno;
    base_fail(error, BASE_ERR_IO, "", 0, "%s", strerror(failed));
    return status_of(failed);
}

// Waits until it is another program, or says why it cannot be.
static int wait_for_exec(int error_fd)
{
    int failed = 0;
    ssize_t size;
    do
        size = read(error_fd, &failed, sizeof failed);
    while (size < 0 && errno == EINTR);
    return size == (ssize_t)sizeof failed ? failed : 0;
}

int record_launch(const struct launch *launch, struct launched *launched, struct base_error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "pipe: %s", strerror(errno));
    launched->pid = fork();
    if (launched->pid == 0)
        be_the_command(launch, ends[1]);
    if (launched->pid < 0)
        base_fail(error, BASE_ERR_IO, "", 0, "fork: %s", strerror(errno));
    close(ends[1]);
    int failed = launched->pid < 0 ? 0 : wait_for_exec(ends[0]);
    close(ends[0]);
    if (launched->pid < 0)
        return -1;
    if (!failed) {
        launched->process_fd = (int)syscall(SYS_pidfd_open, launched->pid, 0);
        return 0;
    }
    waitpid(launched->pid, NULL, 0);
    base_fail(error, BASE_ERR_IO, "", 0, "%s", strerror(failed));
    return status_of(failed);
}
