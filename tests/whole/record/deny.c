// SPDX-License-Identifier: Apache-2.0
// Denies one system call to a command, as filters of containers do, and counts how often it was asked for.
//     deny WHO NUMBER ERRNO REPORT PROGRAM ARGUMENT...
// WHO: "all" that the command begins; "first", its first process alone; "others", all but that one; "none", where every
// call is counted, whatever NUMBER is. REPORT gets lines "first|others NUMBER COUNT". Ends as the command does.
//
// The kernel asks a listener (SECCOMP_RET_USER_NOTIF), since a filter is inherited: only so can the recorder be denied
// what its command may do.
#ifndef _GNU_SOURCE // also built alone
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NUMBERS = 1024, CANNOT = 77 };
enum who { WHO_FIRST, WHO_OTHERS, WHO_ALL, WHO_NONE };

static unsigned long counts[2][NUMBERS];
static _Atomic int *listener; // shared with the command, until it is one

static int install(struct sock_filter *instructions, unsigned short count)
{
    const struct sock_fprog program = {count, instructions};
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (fd < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    return fd;
}

// rt_sigreturn goes back to where no call is.
static int install_for(enum who who, unsigned number)
{
    const unsigned at = (unsigned)offsetof(struct seccomp_data, nr);
    struct sock_filter one[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_filter all[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)};
    return who == WHO_NONE ? install(all, sizeof all / sizeof *all) : install(one, sizeof one / sizeof *one);
}

static pid_t process_of(pid_t thread)
{
    char path[64], line[256];
    int process = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "Tgid: %d", &process) != 1)
        continue;
    if (file)
        fclose(file);
    return process;
}

static void answer(int fd, enum who who, int error, pid_t first)
{
    static bool has_begun; // with the first exec, which is this program's own
    struct seccomp_notif asked;
    memset(&asked, 0, sizeof asked);
    if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
        return; // interrupted meanwhile: it comes again
    struct seccomp_notif_resp said = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
    const bool is_others = process_of((pid_t)asked.pid) != first;
    const bool is_ours = !has_begun && asked.data.nr == SYS_execve;
    const bool is_denied = who != WHO_NONE && (who == WHO_ALL || is_others == (who == WHO_OTHERS));
    has_begun = has_begun || is_ours;
    if (!is_ours && asked.data.nr >= 0 && asked.data.nr < NUMBERS)
        counts[is_others][asked.data.nr]++;
    if (!is_ours && is_denied) {
        said.flags = 0;
        said.error = -error;
    }
    ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &said);
}

static void report(const char *path)
{
    FILE *file = fopen(path, "we");
    for (int others = 0; file && others < 2; others++)
        for (int number = 0; number < NUMBERS; number++)
            if (counts[others][number])
                fprintf(file, "%s %d %lu\n", others ? "others" : "first", number, counts[others][number]);
    if (!file || fclose(file) != 0)
        exit(CANNOT);
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    const enum who who = strcmp(argv[1], "all") == 0      ? WHO_ALL
                         : strcmp(argv[1], "first") == 0  ? WHO_FIRST
                         : strcmp(argv[1], "others") == 0 ? WHO_OTHERS
                                                          : WHO_NONE;
    listener = mmap(NULL, sizeof *listener, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener == MAP_FAILED)
        return CANNOT;
    // Its descriptors are ours until it is another program: so the listener is here.
    const pid_t first = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
    if (first == 0) {
        int fd = install_for(who, (unsigned)atoi(argv[2]));
        *listener = fd < 0 ? -1 : fd;
        if (fd >= 0)
            execv(argv[5], argv + 5);
        _exit(CANNOT);
    }
    while (*listener == 0)
        usleep(100);
    struct pollfd waits = {.fd = *listener, .events = POLLIN};
    if (waits.fd < 0) {
        fprintf(stderr, "SKIP: no listener of system calls\n");
        return CANNOT;
    }
    int status = 0;
    for (bool has_ended = false; !(waits.revents & POLLHUP);) {
        has_ended = has_ended || waitpid(first, &status, WNOHANG) == first;
        if (poll(&waits, 1, has_ended ? 1000 : 100) == 0 && has_ended)
            break;
        if (waits.revents & POLLIN)
            answer(waits.fd, who, atoi(argv[3]), first);
    }
    waitpid(first, &status, 0);
    report(argv[4]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
