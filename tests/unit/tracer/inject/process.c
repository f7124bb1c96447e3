// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/inject/process.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
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

static FILE *open_of(pid_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    return file;
}

char *process_maps(pid_t pid)
{
    FILE *file = open_of(pid, "maps");
    char *text = NULL;
    size_t size = 0;
    FILE *copy = open_memstream(&text, &size);
    for (int c; (c = fgetc(file)) != EOF;)
        fputc(c, copy);
    fclose(copy);
    fclose(file);
    return text;
}

bool process_has_name_in_maps(pid_t pid, const char *name)
{
    char *maps = process_maps(pid);
    bool has = strstr(maps, name) != NULL;
    free(maps);
    return has;
}

unsigned process_count(pid_t pid, const char *folder)
{
    char path[64];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, folder);
    DIR *entries = opendir(path);
    ck_assert_ptr_nonnull(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

unsigned long process_code_hash(pid_t pid)
{
    FILE *file = open_of(pid, "maps");
    unsigned long start, end, hash = 5381;
    char line[4352], rights[5];
    static unsigned char bytes[65536];
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) != 3 || rights[2] != 'x' || strstr(line, "[v"))
            continue;
        for (unsigned long at = start; at < end; at += sizeof bytes) {
            size_t size = end - at < sizeof bytes ? end - at : sizeof bytes;
            const struct iovec here = {bytes, size}, there = {(void *)at, size};
            ck_assert_int_eq(process_vm_readv(pid, &here, 1, &there, 1, 0), (ssize_t)size);
            for (size_t i = 0; i < size; i++)
                hash = hash * 33 + bytes[i];
        }
    }
    fclose(file);
    return hash;
}
