// SPDX-License-Identifier: Apache-2.0
// What a program can see of its surroundings, said on stdout: the same with the agent and without.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/agent/subject.h"

static const char *own_path;

// ---- state

static void print_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    if (!directory)
        return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            printf("descriptor %s\n", entry->d_name);
    printf("next descriptor %d\n", dup(0));
    closedir(directory);
}

static void print_mask(const char *what)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    printf("%s:", what);
    for (int i = 1; i < 65; i++)
        if (sigismember(&mask, i) == 1)
            printf(" %d", i);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < 65; i++)
        if (sigismember(&mask, i) == 1)
            printf(" %d", i);
    puts("");
}

static void print_actions(void)
{
    for (int i = 1; i < 65; i++) {
        struct sigaction action;
        memset(&action, 0, sizeof action);
        int result = sigaction(i, NULL, &action);
        printf("action %d: %d %d %x\n", i, result,
               action.sa_handler == SIG_DFL   ? 0
               : action.sa_handler == SIG_IGN ? 1
                                              : 2,
               (unsigned)action.sa_flags & ~0x04000000u);
    }
}

static void print_environment(char **main_environment)
{
    for (char **entry = main_environment; *entry; entry++)
        printf("environment %s\n", *entry);
    for (char **entry = environ; *entry; entry++)
        printf("environ %s\n", *entry);
}

static void print_errnos(void)
{
    void *memory;
    volatile size_t too_large = SIZE_MAX;
#define SAY(call)                                                                                                      \
    errno = 77;                                                                                                        \
    printf("%s: %d, errno %d\n", #call, (int)((call) != 0), errno)
    SAY(malloc(10));
    SAY(malloc(too_large / 2));
    SAY(calloc(10, 10));
    SAY(calloc(too_large, 10));
    SAY(reallocarray(NULL, too_large, 10));
    SAY(reallocarray(NULL, 10, 10));
    SAY(realloc(malloc(10), 1000000));
    SAY(realloc(malloc(10), 0));
    SAY(posix_memalign(&memory, 3, 100));
    SAY(posix_memalign(&memory, 64, 100));
    SAY(aligned_alloc(64, 128));
    SAY(memalign(64, 128));
    SAY(valloc(100));
    SAY(pvalloc(100));
    SAY(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    SAY(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    SAY(munmap((void *)1, 1));
    SAY(sbrk(0) == (void *)-1);
    SAY(execl("/nonexistent", "a", "b", NULL));
    SAY(execlp("nonexistent-command", "a", NULL));
    SAY(execv("/proc", (char *[]){"a", NULL}));
    SAY(execvp("/etc/passwd", (char *[]){"a", NULL}));
    SAY(sigaction(65, NULL, NULL));
    SAY(sigaction(SIGKILL, &(struct sigaction){.sa_handler = SIG_IGN}, NULL));
    SAY(signal(SIGSTOP, SIG_IGN) == SIG_ERR);
    SAY(pthread_sigmask(99, &(sigset_t){{0}}, NULL));
    SAY(sigprocmask(99, &(sigset_t){{0}}, NULL));
    SAY(unshare(1));
    SAY(setns(-1, 0));
    errno = 77;
    free(malloc(5000000));
    free(NULL);
    printf("free: errno %d\n", errno);
}

// ---- our signal

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    handled += number;
}

static void on_signal_info(int number, siginfo_t *info, void *context)
{
    printf("handler: %d %d %d\n", number, info->si_code, context != NULL);
    print_mask("mask in it");
}

static int status_of_child(void (*body)(void))
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        body();
        _exit(3);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static void die_by_it(void)
{
    raise(SIGSTKFLT);
}

static void spin_and_die(void)
{
    subject_spin_ms(5);
    kill(getpid(), SIGSTKFLT);
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGSTKFLT);
    sigaddset(&set, SIGUSR1);
    printf("died by %d\n", status_of_child(die_by_it));
    printf("died by %d\n", status_of_child(spin_and_die));
    printf("set %d\n", sigaction(SIGSTKFLT, &action, &before));
    printf("was default %d\n", before.sa_handler == SIG_DFL);
    printf("signal: %d\n", signal(SIGSTKFLT, on_signal) == on_signal);
    subject_spin_ms(20);
    printf("handled %d\n", (int)handled);
    raise(SIGSTKFLT);
    kill(getpid(), SIGSTKFLT);
    printf("handled %d\n", (int)handled);
    sigprocmask(SIG_BLOCK, &set, NULL);
    print_mask("blocked");
    raise(SIGSTKFLT);
    raise(SIGSTKFLT);
    printf("handled %d\n", (int)handled);
    subject_spin_ms(20);
    print_mask("still blocked");
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    printf("handled %d\n", (int)handled);
    print_mask("unblocked");
    action = (struct sigaction){.sa_sigaction = on_signal_info, .sa_flags = (int)(SA_SIGINFO | SA_RESETHAND)};
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGSTKFLT, &action, NULL);
    raise(SIGSTKFLT);
    sigaction(SIGSTKFLT, NULL, &before);
    printf("is default %d\n", before.sa_handler == SIG_DFL);
    signal(SIGSTKFLT, SIG_IGN);
    raise(SIGSTKFLT);
    sigpending(&pending);
    sigfillset(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    print_mask("all");
    subject_spin_ms(20);
    printf("inherits: %d\n", posix_spawnp(&(pid_t){0}, "true", NULL, NULL, (char *[]){"true", NULL}, environ));
    fflush(stdout);
    execl(own_path, "subject", "mask", NULL);
}

// ---- processes

static void fork_all(void)
{
    int status;
    char line[100];
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (setreuid(getuid(), getuid()) != 0)
                _exit(99);
            free(malloc(100));
            subject_spin_ms(2);
            if (i % 2)
                exit(i);
            _exit(i);
        }
        waitpid(child, &status, 0);
        printf("fork %x\n", (unsigned)status);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            sigset_t none;
            sigemptyset(&none);
            pthread_sigmask(SIG_SETMASK, &none, NULL);
            free(malloc(100));
            if (i % 2)
                execl(own_path, "subject", "mask", NULL);
            _exit(i);
        }
        subject_spin_ms(2);
        waitpid(child, &status, 0);
        printf("vfork %x\n", (unsigned)status);
    }
    for (int i = 0; i < 5; i++) {
        pid_t child;
        char *arguments[] = {"subject", "mask", NULL};
        posix_spawn(&child, own_path, NULL, NULL, arguments, environ);
        waitpid(child, &status, 0);
        printf("spawn %x\n", (unsigned)status);
    }
    fflush(stdout);
    printf("system %x\n", (unsigned)system("exit 7"));
    FILE *pipe = popen("echo from a pipe", "r");
    printf("popen %s", fgets(line, sizeof line, pipe));
    printf("pclose %d\n", pclose(pipe));
}

// exit would start a thread here.
static void fork_short(const char *ms)
{
    int status;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            subject_spin_ms(atoi(ms));
            if (i % 2)
                quick_exit(i);
            _exit(i);
        }
        waitpid(child, &status, 0);
        printf("fork %x\n", (unsigned)status);
    }
}

static void *spin_for_ever(void *argument)
{
    (void)argument;
    for (;;)
        subject_spin_ms(1);
    return NULL;
}

// An exec while this thread and others have ticks: none may be left for the next program, which handles none.
static void exec_storm(int left)
{
    pthread_t thread;
    char number[12];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, NULL, spin_for_ever, NULL);
    subject_spin_ms(3);
    execl("/nonexistent", "a", NULL);
    subject_spin_ms(1);
    snprintf(number, sizeof number, "%d", left - 1);
    if (left > 0)
        execl(own_path, "subject", "exec-storm", number, NULL);
    puts("stormed");
}

static void exec_all(const char *how)
{
    char *arguments[] = {"subject", "mask", "x", NULL}, *environment[] = {"A=b", NULL};
    fflush(stdout);
    if (strcmp(how, "l") == 0)
        execl(own_path, "subject", "mask", "x", NULL);
    else if (strcmp(how, "lp") == 0)
        execlp(own_path, "subject", "mask", "x", NULL);
    else if (strcmp(how, "le") == 0)
        execle(own_path, "subject", "mask", "x", NULL, environment);
    else if (strcmp(how, "v") == 0)
        execv(own_path, arguments);
    else if (strcmp(how, "vp") == 0)
        execvp(own_path, arguments);
    else if (strcmp(how, "vpe") == 0)
        execvpe(own_path, arguments, environment);
    else if (strcmp(how, "ve") == 0)
        execve(own_path, arguments, environment);
    else if (strcmp(how, "f") == 0)
        fexecve(open(own_path, O_RDONLY | O_CLOEXEC), arguments, environment);
    else if (strcmp(how, "at") == 0)
        execveat(AT_FDCWD, own_path, arguments, environment, 0);
}

// ---- before and after main

static void *early;

__attribute__((constructor(101))) static void at_begin(void)
{
    early = malloc(100);
    free(calloc(10, 10));
}

__attribute__((destructor(101))) static void at_end(void)
{
    if (!own_path)
        return;
    free(early);
    void *volatile memory = malloc(1 << 20);
    free(memory);
    void *volatile pages = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages, 4096);
    pthread_t thread;
    if (pthread_create(&thread, NULL, subject_work, NULL) == 0)
        pthread_join(thread, NULL);
    puts("the end");
}

int main(int argument_count, char **arguments, char **main_environment)
{
    own_path = realpath("/proc/self/exe", NULL);
    const char *what = argument_count > 1 ? arguments[1] : "state";
    if (strcmp(what, "state") == 0) {
        print_descriptors();
        print_mask("mask");
        print_actions();
        print_errnos();
        subject_spin_ms(20);
        print_descriptors();
    } else if (strcmp(what, "environment") == 0) {
        print_environment(main_environment);
    } else if (strcmp(what, "mask") == 0) {
        print_mask("mask");
        printf("ignored %d\n", signal(SIGSTKFLT, SIG_DFL) == SIG_IGN);
    } else if (strcmp(what, "signals") == 0) {
        signals();
    } else if (strcmp(what, "forks") == 0) {
        fork_short(arguments[2]);
    } else if (strcmp(what, "fork") == 0) {
        fork_all();
    } else if (strcmp(what, "exec") == 0) {
        exec_all(arguments[2]);
    } else if (strcmp(what, "exec-storm") == 0) {
        exec_storm(atoi(arguments[2]));
    } else if (strcmp(what, "threads") == 0) {
        subject_threads();
    } else if (strcmp(what, "last-thread") == 0) {
        subject_end_with(subject_end_last);
    } else if (strcmp(what, "last-thread-late") == 0) {
        subject_end_with(subject_end_last_late);
    } else if (strcmp(what, "unshare") == 0) {
        errno = 0;
        int result = unshare(CLONE_NEWUSER);
        printf("unshare %d %d\n", result, errno);
    }
    return 5;
}
