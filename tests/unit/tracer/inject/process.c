// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/inject/process.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MORE_CALLS = 3, POLL_US = 1000, POLLS_MAX = 20000 };

struct process process_start(const char *program, const char *mode, const char *file)
{
    struct process process = {0};
    int fd = memfd_create("subject", 0);
    ck_assert(fd >= 0 && ftruncate(fd, sizeof *process.state) == 0);
    process.state = mmap(NULL, sizeof *process.state, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(process.state != MAP_FAILED);
    process.pid = fork();
    ck_assert(process.pid >= 0);
    if (process.pid == 0) {
        if (dup2(fd, SUBJECT_FD) == SUBJECT_FD)
            execl(program, program, mode, file, NULL);
        _exit(127);
    }
    close(fd);
    process_goes_on(&process);
    return process;
}

void process_goes_on(const struct process *process)
{
    uint64_t until = process->state->calls + MORE_CALLS;
    unsigned polls = 0;
    while (process->state->calls < until && polls++ < POLLS_MAX)
        usleep(POLL_US);
    ck_assert_msg(process->state->calls >= until, "%d does not go on", (int)process->pid);
}

int process_end(struct process *process)
{
    int status;
    process->state->stop = 1;
    ck_assert_int_eq(waitpid(process->pid, &status, 0), process->pid);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    munmap(process->state, sizeof *process->state);
    return WEXITSTATUS(status);
}
