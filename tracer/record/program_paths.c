// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/program_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void add_path(struct record_paths *paths, const char *path)
{
    char *copy = paths->count < RECORD_PATHS_MAX ? strdup(path) : NULL;
    if (copy)
        paths->items[paths->count++] = copy;
}

// "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)" or "\t/lib64/ld-linux-x86-64.so.2 (0x...)"
static void take_line(struct record_paths *paths, char *line)
{
    char *arrow = strstr(line, " => ");
    char *from = arrow ? arrow + 4 : line + strspn(line, " \t");
    char *end = strstr(from, " (0x");
    if (*from != '/' || !end)
        return;
    *end = 0;
    add_path(paths, from);
}

// Asks the loader itself, which lists what it would load and starts nothing. Only one that is known to take --list.
static void add_libraries(struct record_paths *paths, const struct program *program)
{
    const char *loader = strrchr(program->interpreter, '/');
    if (!loader || (strncmp(loader, "/ld-linux", 9) != 0 && strncmp(loader, "/ld64", 5) != 0 &&
                    strncmp(loader, "/ld.so", 6) != 0 && strncmp(loader, "/ld-musl", 8) != 0))
        return;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    char *const arguments[] = {(char *)program->interpreter, "--list", (char *)program->image, NULL};
    posix_spawn_file_actions_t actions;
    pid_t pid;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    int failed = posix_spawn(&pid, program->interpreter, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *output = failed ? NULL : fdopen(ends[0], "re");
    char *line = NULL;
    size_t room = 0;
    while (output && getline(&line, &room, output) > 0)
        take_line(paths, line);
    free(line);
    if (output)
        fclose(output);
    else
        close(ends[0]);
    if (!failed)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
}

void record_program_paths(const struct program *program, struct record_paths *paths)
{
    *paths = (struct record_paths){.count = 0};
    add_path(paths, program->image);
    add_libraries(paths, program);
}

void record_paths_free(struct record_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->items[i]);
    paths->count = 0;
}
