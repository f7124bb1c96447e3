// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"

extern char **environ;

static char *read_all(int fd)
{
    size_t used = 0, capacity = 1 << 16;
    char *text = malloc(capacity);
    while (text) {
        ssize_t got = read(fd, text + used, capacity - used - 1);
        if (got <= 0)
            break;
        used += (size_t)got;
        if (capacity - used - 1 == 0) {
            char *grown = realloc(text, capacity *= 2);
            if (!grown)
                free(text);
            text = grown;
        }
    }
    if (text)
        text[used] = '\0';
    return text;
}

static uint64_t nanoseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

int bench_child(char *const arguments[], int keep_output, struct child_result *result)
{
    *result = (struct child_result){.status = -1};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (keep_output)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    uint64_t start_ns = bench_now_ns();
    int failed = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!failed && keep_output)
        result->output = read_all(ends[0]);
    close(ends[0]);
    int status;
    struct rusage usage;
    if (failed || wait4(pid, &status, 0, &usage) != pid)
        return -1;
    result->wall_ns = bench_now_ns() - start_ns;
    result->user_ns = nanoseconds(usage.ru_utime);
    result->system_ns = nanoseconds(usage.ru_stime);
    result->peak_rss_bytes = (uint64_t)usage.ru_maxrss * 1024;
    if (WIFEXITED(status))
        result->status = WEXITSTATUS(status);
    return 0;
}
