// SPDX-License-Identifier: Apache-2.0
// What is recorded in the tests: commands that do one thing each and can say what they see of themselves.
//     subject burn MS [STATUS]    uses so much processor time, then ends with STATUS
//     subject works               uses some, says "done", ends with 7
//     subject raise N             ends by signal N
//     subject view                prints what a program can see of its surroundings: descriptors, mask, ignored signals
//     subject spawn COUNT MS      COUNT children, one after the other, fork and exec of itself: burn MS
//     subject forks COUNT MS      COUNT children at the same time, no exec
//     subject start HOW PROGRAM   one child, without arguments; prints what it ended with. HOW: a name of begin(), below
//     subject sleeps              says "ready", ends when its standard input does
//     subject interrupted         says "ready", burns until SIGINT comes, ends with 42
#ifndef _GNU_SOURCE // also built alone
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;
static volatile double sum;

static void note(int number)
{
    (void)number;
    came = 1;
}

static long used_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((noinline)) static void burn(long ms)
{
    for (long until = used_ms() + ms; used_ms() < until;)
        for (int i = 0; i < 20000; i++)
            sum += i;
}

static int view(void)
{
    sigset_t mask;
    char path[64], target[256];
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 64; i++) {
        struct sigaction action;
        if (sigismember(&mask, i) == 1)
            printf("blocked %d\n", i);
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("handled %d %d\n", i, action.sa_handler == SIG_IGN);
    }
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0)
            printf("fd %d %.*s\n", fd, (int)length, target);
    }
    return 0;
}

static int children(char **argv, int count, int together)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0 && together) {
            burn(atol(argv[3]));
            exit(0);
        }
        if (pid == 0) {
            execl("/proc/self/exe", argv[0], "burn", argv[3], (char *)NULL);
            _exit(1);
        }
        int status;
        if (!together)
            failed |= waitpid(pid, &status, 0) != pid || status;
    }
    for (int status; wait(&status) > 0;)
        failed |= status;
    return failed != 0;
}

static void begin(const char *how, char *const program[])
{
    char *const clean[] = {"A=B", NULL};
    if (strcmp(how, "execv") == 0)
        execv(program[0], program);
    else if (strcmp(how, "execvp") == 0)
        execvp(program[0], program);
    else if (strcmp(how, "execle") == 0)
        execle(program[0], program[0], (char *)NULL, environ);
    else if (strcmp(how, "fexecve") == 0)
        fexecve(open(program[0], O_RDONLY | O_CLOEXEC), program, environ);
    else if (strcmp(how, "execveat") == 0)
        execveat(AT_FDCWD, program[0], program, environ, 0);
    else if (strcmp(how, "empty") == 0)
        execveat(open(program[0], O_RDONLY | O_CLOEXEC), "", program, environ, AT_EMPTY_PATH);
    else if (strcmp(how, "nowhere") == 0)
        execve((const char *)-1, program, environ); // NOLINT: not to be read
    else if (strcmp(how, "clean") == 0)
        execve(program[0], program, clean);
    _exit(99);
}

static pid_t start(const char *how, char *const program[])
{
    pid_t pid = 0;
    if (strcmp(how, "posix_spawn") == 0)
        return posix_spawn(&pid, program[0], NULL, NULL, program, environ) == 0 ? pid : -1;
    if (strcmp(how, "posix_spawnp") == 0)
        return posix_spawnp(&pid, program[0], NULL, NULL, program, environ) == 0 ? pid : -1;
    pid = vfork();
    if (pid == 0)
        begin(how, program);
    return pid;
}

static int start_one(const char *how, char *const program[])
{
    int status = -1;
    waitpid(start(how, program), &status, 0);
    printf("status %x\n", (unsigned)status);
    return 0;
}

static int wait_for_end(void)
{
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return 0;
}

static int wait_for_interrupt(void)
{
    signal(SIGINT, note);
    puts("ready");
    fflush(stdout);
    while (!came)
        burn(1);
    return 42;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "burn") == 0 && argc > 2) {
        burn(atol(argv[2]));
        return argc > 3 ? atoi(argv[3]) : 0;
    }
    if (strcmp(what, "works") == 0) {
        for (int i = 0; i < 50000000; i++) // no clock: it may be denied
            sum += i;
        puts("done");
        return 7;
    }
    if (strcmp(what, "raise") == 0 && argc > 2)
        return raise(atoi(argv[2]));
    if (strcmp(what, "view") == 0)
        return view();
    if ((strcmp(what, "spawn") == 0 || strcmp(what, "forks") == 0) && argc > 3)
        return children(argv, atoi(argv[2]), what[0] == 'f');
    if (strcmp(what, "start") == 0 && argc > 3)
        return start_one(argv[2], argv + 3);
    if (strcmp(what, "sleeps") == 0)
        return wait_for_end();
    return strcmp(what, "interrupted") == 0 ? wait_for_interrupt() : 2;
}
