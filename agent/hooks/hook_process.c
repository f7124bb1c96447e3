// SPDX-License-Identifier: Apache-2.0
// exec, posix_spawn, and the ends of a process that no destructor sees. Children of fork are start.c's. Those of
// posix_spawn, system and popen begin without ticks, and need nothing.
//
// The environment that exec is given is passed on as it is: a program that clears it for its children on purpose has
// children that are not recorded. Only a loader that could not load us, and would complain, is not told to.
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>

#include "agent/follow.h"
#include "agent/hide.h"
#include "agent/inside.h"
#include "agent/real.h"
#include "agent/tell.h"
#include "agent/waiting.h"
#include "libqut/host/host.h"

// ---- exec: no tick may be pending when the new program begins, which handles none

struct exec {
    bool is_on;
    enum agent_left left;
};

// Where the program is: by a name, as PATH has it; or as execveat has it.
struct place {
    const char *path, *name;
    int fd, flags;
};

static enum agent_left look(const struct place *place, char *const environment[])
{
    // The recorder may have been the one who had the agent's file where all can read it, and be gone.
    if (!agent_follows())
        return agent_settings.follow && agent_follow_is_unreadable(environment) ? AGENT_LEFT_UNREADABLE
                                                                                : AGENT_LEFT_NOT;
    return place->name ? agent_follow_search(place->name, environment)
                       : agent_follow_look(place->fd, place->path, place->flags, environment);
}

static void before_exec(struct exec *exec, const struct place *place, char *const environment[])
{
    struct agent_quiet quiet;
    *exec = (struct exec){.is_on = agent_is_on_here()};
    if (!exec->is_on && !agent_settings.follow)
        return;
    agent_quiet_begin(&quiet);
    exec->left = look(place, environment);
    if (exec->left != AGENT_LEFT_NOT && agent_follows())
        agent_tell_left(exec->left, AGENT_TELL_THIS, 0);
    if (exec->is_on) {
        agent_ticks_end();
        agent_hide_drain();
        if (!agent_waits)
            agent_tell_counts(true);
    }
    agent_quiet_end(&quiet);
    if (exec->is_on)
        agent_hide_before_exec();
}

// It failed.
static void after_exec(const struct exec *exec)
{
    if (!exec->is_on && exec->left == AGENT_LEFT_NOT)
        return;
    int saved_errno = errno;
    if (exec->is_on)
        agent_hide_after_exec();
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    if (exec->left != AGENT_LEFT_NOT && agent_follows())
        agent_tell_left(exec->left, AGENT_TELL_TAKEN_BACK, 0);
    if (exec->is_on)
        agent_ticks_begin();
    agent_quiet_end(&quiet);
    errno = saved_errno;
}

// On the caller's stack: it may be a child of vfork.
#define FITTING(left, environment)                                                                                     \
    (agent_follow_room(left, environment)                                                                              \
         ? agent_follow_environment(__builtin_alloca(agent_follow_room(left, environment)), environment)               \
         : (environment))

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[])
{
    struct exec exec;
    before_exec(&exec, &(struct place){.path = path, .fd = AT_FDCWD}, environment);
    int result = agent_real()->execve(path, arguments, FITTING(exec.left, environment));
    after_exec(&exec);
    return result;
}

EXPORTED int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

EXPORTED int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    struct exec exec;
    before_exec(&exec, &(struct place){.name = file}, environment);
    int result = agent_real()->execvpe(file, arguments, FITTING(exec.left, environment));
    after_exec(&exec);
    return result;
}

EXPORTED int execvp(const char *file, char *const arguments[])
{
    return execvpe(file, arguments, environ);
}

EXPORTED int fexecve(int fd, char *const arguments[], char *const environment[])
{
    struct exec exec;
    before_exec(&exec, &(struct place){.path = "", .fd = fd, .flags = AT_EMPTY_PATH}, environment);
    int result = agent_real()->fexecve(fd, arguments, FITTING(exec.left, environment));
    after_exec(&exec);
    return result;
}

EXPORTED int execveat(int fd, const char *path, char *const arguments[], char *const environment[], int flags)
{
    struct exec exec;
    before_exec(&exec, &(struct place){.path = path, .fd = fd, .flags = flags}, environment);
    int result = agent_real()->execveat(fd, path, arguments, FITTING(exec.left, environment), flags);
    after_exec(&exec);
    return result;
}

// ---- posix_spawn: it says itself whether exec came about

static enum agent_left before_spawn(const struct place *place, char *const environment[])
{
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    enum agent_left left = look(place, environment);
    agent_quiet_end(&quiet);
    return left;
}

static int after_spawn(int error, enum agent_left left)
{
    struct agent_quiet quiet;
    if (error != 0 || left == AGENT_LEFT_NOT || !agent_follows())
        return error;
    agent_quiet_begin(&quiet);
    agent_tell_left(left, AGENT_TELL_CHILD, 0);
    agent_quiet_end(&quiet);
    return 0;
}

EXPORTED int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    enum agent_left left = before_spawn(&(struct place){.path = path, .fd = AT_FDCWD}, environment);
    return after_spawn(
        agent_real()->posix_spawn(child, path, actions, attributes, arguments, FITTING(left, environment)), left);
}

EXPORTED int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    enum agent_left left = before_spawn(&(struct place){.name = file}, environment);
    return after_spawn(
        agent_real()->posix_spawnp(child, file, actions, attributes, arguments, FITTING(left, environment)), left);
}

// ---- exec with its arguments one by one

// Arguments one by one: counted, then laid out on the stack as libc does it, so that it may be called after vfork and
// in a handler.
static size_t count_rest(va_list rest)
{
    size_t count = 0;
    while (va_arg(rest, char *))
        count++;
    return count;
}

static char *const *collect_rest(char **to, const char *first, va_list *rest)
{
    size_t i = 0;
    to[i++] = (char *)first;
    while ((to[i++] = va_arg(*rest, char *))) {
    }
    return to;
}

#define COLLECT(first)                                                                                                 \
    va_list rest, again;                                                                                               \
    va_start(rest, first);                                                                                             \
    va_copy(again, rest);                                                                                              \
    size_t count = count_rest(again);                                                                                  \
    va_end(again);                                                                                                     \
    char *const *arguments = collect_rest(__builtin_alloca((count + 2) * sizeof(char *)), first, &rest)

EXPORTED int execl(const char *path, const char *first, ...)
{
    COLLECT(first);
    va_end(rest);
    return execve(path, arguments, environ);
}

EXPORTED int execlp(const char *file, const char *first, ...)
{
    COLLECT(first);
    va_end(rest);
    return execvpe(file, arguments, environ);
}

EXPORTED int execle(const char *path, const char *first, ...)
{
    COLLECT(first);
    char *const *environment = va_arg(rest, char *const *);
    va_end(rest);
    return execve(path, arguments, environment);
}

// ---- ends without destructors: the recorder has the segment, and only wants the counts

static void before_end(void)
{
    if (!agent_is_on_here())
        return;
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    if (!agent_waiting_ends()) {
        feed_look_at_names();
        agent_tell_counts(false);
    }
    agent_quiet_end(&quiet);
}

EXPORTED void _exit(int status)
{
    before_end();
    agent_real()->_exit(status);
    __builtin_unreachable();
}

EXPORTED void _Exit(int status)
{
    before_end();
    agent_real()->_Exit(status);
    __builtin_unreachable();
}

// What the program wants done at its end is done behind the counts, which miss the ticks of that.
EXPORTED void quick_exit(int status)
{
    before_end();
    agent_real()->quick_exit(status);
    __builtin_unreachable();
}
