// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/left_alone.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name, *reason;
} words[AGENT_LEFT_COUNT] = {
    [AGENT_LEFT_NOT] = {"", ""},
    [AGENT_LEFT_STATIC] = {"not-followed-static", "static"},
    [AGENT_LEFT_MACHINE] = {"not-followed-machine", "of another machine or word size"},
    [AGENT_LEFT_LIBC] = {"not-followed-libc", "with another C library"},
    [AGENT_LEFT_PRIVILEGED] = {"not-followed-privileged", "with other rights"},
    [AGENT_LEFT_ENVIRONMENT] = {"not-followed-environment", "with an environment of their own"},
    [AGENT_LEFT_FILE_LIMIT] = {"not-followed-file-limit", "with a limit on the size of files"},
    [AGENT_LEFT_ONE_THREAD] = {"not-followed-one-thread", "that want no other thread"},
    [AGENT_LEFT_FAILED] = {"not-followed-failed", "in which the agent could not begin"},
    [AGENT_LEFT_UNREADABLE] = {"not-followed-unreadable", "that may not read the agent's file"},
};

// What the agent cannot do without.
static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_memfd_create, "memfd_create"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_fallocate, "fallocate"},
#ifdef SYS_mmap
    {SYS_mmap, "mmap"},
#endif
#ifdef SYS_mmap2
    {SYS_mmap2, "mmap2"},
#endif
    {SYS_clone, "pthread_create"},
    {SYS_futex, "futex"},
    {SYS_gettid, "gettid"},
    {SYS_ioctl, "ioctl"},
    {SYS_socket, "socket"},
    {SYS_connect, "connect"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_rt_sigaction, "rt_sigaction"},
    {SYS_timer_create, "timer_create"},
    {SYS_perf_event_open, "perf_event_open"},
};

void record_left_call(uint16_t number, int error, char *text, size_t size)
{
    const char *reason = strerror(error);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (number && calls[i].number == number) {
            snprintf(text, size, "%s: %s", calls[i].name, reason);
            return;
        }
    if (number)
        snprintf(text, size, "system call %u: %s", number, reason);
    else
        snprintf(text, size, "%s", reason);
}

const char *record_left_name(unsigned why)
{
    return words[why].name;
}

const char *record_left_reason(unsigned why)
{
    return words[why].reason;
}

uint64_t record_left_sum(const struct left_counts *counts)
{
    uint64_t sum = 0;
    for (unsigned why = 0; why < AGENT_LEFT_COUNT; why++)
        sum += counts->of[why];
    return sum;
}

void record_left_forget(struct left *left, uint32_t pid)
{
    for (size_t i = 0; i < LEFT_REMEMBERED; i++)
        if (left->last[i].pid == pid)
            left->last[i].pid = 0;
}

void record_left_take(struct left *left, const struct agent_channel_left *told, uint32_t pid)
{
    // A child is told of by its parent, with whose pid it has nothing to do; 0: not to be known.
    for (size_t i = 0; i < LEFT_REMEMBERED && pid && !told->is_child; i++)
        if (left->last[i].pid == pid) {
            left->counts.of[left->last[i].why]--;
            left->last[i].pid = 0;
        }
    if (told->is_taken)
        return;
    left->counts.of[told->why]++;
    if (told->why == AGENT_LEFT_FAILED && !left->failed_error) {
        left->failed_call = told->failed_call;
        left->failed_error = told->failed_error;
    }
    if (told->is_child || !pid)
        return;
    left->last[left->next].pid = pid;
    left->last[left->next].why = told->why;
    left->next = (left->next + 1) % LEFT_REMEMBERED;
}

static bool read_note(int directory, const char *name, const char *token, struct agent_channel_left *left)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status;
    bool is_good = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == sizeof *left &&
                   read(fd, left, sizeof *left) == (ssize_t)sizeof *left && left->head.version == AGENT_VERSION &&
                   left->head.type == AGENT_CHANNEL_LEFT && memcmp(left->head.token, token, AGENT_TOKEN_BYTES) == 0 &&
                   left->why > AGENT_LEFT_NOT && left->why < AGENT_LEFT_COUNT;
    if (fd >= 0)
        close(fd);
    return is_good;
}

void record_left_read_notes(const char *directory, const char *token, struct left *left)
{
    DIR *notes = opendir(directory);
    for (const struct dirent *entry; notes && (entry = readdir(notes));) {
        struct agent_channel_left told;
        if (strncmp(entry->d_name, AGENT_NOTE, sizeof AGENT_NOTE - 1) != 0)
            continue;
        if (left && read_note(dirfd(notes), entry->d_name, token, &told))
            record_left_take(left, &told, (uint32_t)strtoul(entry->d_name + sizeof AGENT_NOTE - 1, NULL, 10));
        unlinkat(dirfd(notes), entry->d_name, 0);
    }
    if (notes)
        closedir(notes);
}
