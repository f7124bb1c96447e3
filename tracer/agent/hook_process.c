// SPDX-License-Identifier: Apache-2.0
// exec and the ends of a process that no destructor sees. Children of fork are start.c's. Those of posix_spawn, system
// and popen begin without ticks, and need nothing.
//
// The environment that exec is given is passed on as it is: a program that clears it for its children on purpose has
// children that are not recorded.
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "tracer/agent/hide.h"
#include "tracer/agent/real.h"
#include "tracer/agent/start.h"
#include "tracer/agent/tell.h"

// ---- exec: no tick may be pending when the new program begins, which handles none

struct exec {
    bool is_on;
};

static void before_exec(struct exec *exec)
{
    exec->is_on = agent_is_on_here();
    if (!exec->is_on)
        return;
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    agent_ticks_end();
    agent_hide_drain();
    agent_tell_counts(true);
    agent_quiet_end(&quiet);
    agent_hide_before_exec();
}

// It failed.
static void after_exec(const struct exec *exec)
{
    if (!exec->is_on)
        return;
    int saved_errno = errno;
    agent_hide_after_exec();
    struct agent_quiet quiet;
    agent_quiet_begin(&quiet);
    agent_ticks_begin();
    agent_quiet_end(&quiet);
    errno = saved_errno;
}

EXPORTED int execve(const char *path, char *const arguments[], char *const environment[])
{
    struct exec exec;
    before_exec(&exec);
    int result = agent_real()->execve(path, arguments, environment);
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
    before_exec(&exec);
    int result = agent_real()->execvpe(file, arguments, environment);
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
    before_exec(&exec);
    int result = agent_real()->fexecve(fd, arguments, environment);
    after_exec(&exec);
    return result;
}

EXPORTED int execveat(int fd, const char *path, char *const arguments[], char *const environment[], int flags)
{
    struct exec exec;
    before_exec(&exec);
    int result = agent_real()->execveat(fd, path, arguments, environment, flags);
    after_exec(&exec);
    return result;
}

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
    agent_tell_counts(true);
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
