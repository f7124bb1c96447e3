// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/launch.h"

#include <errno.h>
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

// ---- the command's environment

enum { ADDED = 3 };

struct environment {
    char *added[ADDED];
    size_t added_count;
    char **strings; // ours, and those of this process that ours do not replace
};

static bool add(struct environment *environment, const char *name, const char *value)
{
    char **place = &environment->added[environment->added_count];
    if (asprintf(place, "%s=%s", name, value) < 0)
        return false;
    environment->added_count++;
    return true;
}

// gcc's AddressSanitizer ends a program that has anything before it in the list of libraries, unless it is told not to
// look.
static bool permit_sanitizers(struct environment *environment)
{
    static const char name[] = "ASAN_OPTIONS", option[] = "verify_asan_link_order=0";
    const char *already = getenv(name);
    char *both = NULL;
    if (already && *already && asprintf(&both, "%s:%s", already, option) < 0)
        return false;
    const bool is_added = add(environment, name, both ? both : option);
    free(both);
    return is_added;
}

static bool is_replaced(const struct environment *environment, const char *string)
{
    for (size_t i = 0; i < environment->added_count; i++) {
        const size_t name_bytes = strcspn(environment->added[i], "=") + 1;
        if (strncmp(string, environment->added[i], name_bytes) == 0)
            return true;
    }
    return false;
}

static void free_environment(struct environment *environment)
{
    for (size_t i = 0; i < environment->added_count; i++)
        free(environment->added[i]);
    free(environment->strings);
}

static bool make_environment(const struct launch *launch, struct environment *environment)
{
    *environment = (struct environment){.added_count = 0};
    size_t count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    environment->strings = calloc(count + ADDED + 1, sizeof *environment->strings);
    if (!environment->strings ||
        (launch->preload && (!add(environment, "LD_PRELOAD", launch->preload) || !permit_sanitizers(environment))) ||
        (launch->settings && !add(environment, AGENT_VARIABLE, launch->settings)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_replaced(environment, environ[i]))
            environment->strings[kept++] = environ[i];
    memcpy(environment->strings + kept, environment->added, environment->added_count * sizeof *environment->strings);
    return true;
}

// ---- beginning it

// Beside this process, in its memory, until it is another program: nothing is written there but what the caller gave
// for that. A copy of the address space, and of each page that both then write to, would cost more than the rest.
static void be_the_command(const struct launch *launch, char *const strings[], volatile int *failed)
{
    restore_signals(launch->mask);
    restore_limit();
    // execvpe: a file without a first line that says what it is goes to the shell.
    execvpe(launch->path, launch->arguments, strings);
    *failed = errno;
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

int record_launch(const struct launch *launch, struct launched *launched, struct base_error *error)
{
    struct environment environment;
    volatile int failed = 0;
    if (!make_environment(launch, &environment)) {
        free_environment(&environment);
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory for the command's environment");
    }
    launched->pid = vfork();
    if (launched->pid == 0)
        be_the_command(launch, environment.strings, &failed);
    if (launched->pid < 0)
        base_fail(error, BASE_ERR_IO, "", 0, "fork: %s", strerror(errno));
    free_environment(&environment);
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
