// SPDX-License-Identifier: Apache-2.0
// Children of fork that fork children, and one whose parent has gone; each with an account of its own. usage: FAMILIES
// CHILDREN DEPTH. Exit status 1: some code was not as in its file at the end, where TRACE_OVER asks for that.
// Or: FAMILIES stray FILE: leaves a child that tells nobody of itself, and at the end writes into FILE whether its code
// is as in its file; FAMILIES many N: so many children, one after the other, of which each ends at once.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/proof/trace_calls/account.h"

#define FUNCTIONS(X)     X(fib) X(family) X(fork)
#define DEFINE(function) static struct account account_##function = {.name = "traced_" #function};
FUNCTIONS(DEFINE)
#define POINT(function) &account_##function,
static const struct account *const accounts[] = {FUNCTIONS(POINT) NULL};

enum { CHILDREN_MAX = 8 };
static unsigned children;

static void forget(void)
{
#define FORGET(function) account_##function = (struct account){.name = account_##function.name};
    FUNCTIONS(FORGET)
}

static TRACED uint64_t traced_fib(uint64_t n)
{
    ENTER(fib);
    uint64_t result = n < 2 ? n : traced_fib(n - 1) + traced_fib(n - 2);
    LEAVE(fib);
    return result;
}

// Entered once, left twice.
static TRACED pid_t traced_fork(void)
{
    ENTER(fork);
    const pid_t pid = fork();
    if (pid < 0)
        abort();
    LEAVE(fork);
    return pid;
}

static int end(const char *which, uint64_t result)
{
    account_write(which, accounts, result);
    account_linger();
    const bool is_restored = !getenv("TRACE_OVER") || (account_is_restored((const void *)(uintptr_t)traced_fib) &&
                                                       account_is_restored((const void *)(uintptr_t)traced_fork));
    int status, all = is_restored ? 0 : 1;
    while (wait(&status) > 0)
        all |= status != 0;
    return all;
}

static TRACED uint64_t traced_family(unsigned depth)
{
    ENTER(family);
    uint64_t result = depth;
    for (unsigned i = 0; depth && i < children; i++) {
        if (traced_fork() != 0) {
            result += traced_fib(i);
            continue;
        }
        forget();
        result = traced_fib(3 + depth + i) + traced_family(depth - 1);
        _exit(end("child", result));
    }
    LEAVE(family);
    return result;
}

// Its parent ends at once: whoever looks at it then finds nothing of that.
static void make_orphan(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        forget();
        const uint64_t result = traced_fib(10);
        _exit(end("orphan", result));
    }
    waitpid(pid, NULL, 0);
}

// By the kernel's call alone: nobody's handlers of fork know of it.
static int leave_stray(const char *path)
{
    traced_fib(5);
    const long pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid != 0)
        return pid < 0;
    account_linger();
    FILE *file = fopen(path, "we");
    if (file)
        fputs(account_is_restored((const void *)(uintptr_t)traced_fib) ? "restored\n" : "not restored\n", file);
    return file && fclose(file) == 0 ? 0 : 1;
}

static int fork_many(unsigned count)
{
    int status = 0, all = 0;
    for (unsigned i = 0; i < count; i++) {
        const pid_t pid = traced_fork();
        if (pid == 0)
            _exit(traced_fib(3) != 2);
        waitpid(pid, &status, 0);
        all |= status;
    }
    return all != 0;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "stray") == 0)
        return leave_stray(argv[2]);
    if (argc > 2 && strcmp(argv[1], "many") == 0)
        return fork_many((unsigned)atoi(argv[2]));
    children = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    if (!account_wait_for_patch((const void *)(uintptr_t)traced_fib))
        return 3;
    make_orphan();
    return end("parent", traced_family(argc > 2 ? (unsigned)atoi(argv[2]) : 2));
}
