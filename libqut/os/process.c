// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_BYTES = 4096, PIECES_MAX = 64 };

pid_t os_own_pid(void)
{
    return getpid();
}

// A piece per page: only whole pieces are sure to be copied where a later one cannot be read.
static ssize_t read_pieces(pid_t pid, uint64_t address, uint8_t *bytes, size_t size, size_t *wanted)
{
    struct iovec remote[PIECES_MAX];
    size_t count = 0, planned = 0;
    while (planned < size && count < PIECES_MAX) {
        size_t piece = PIECE_BYTES - ((address + planned) & (PIECE_BYTES - 1));
        if (piece > size - planned)
            piece = size - planned;
        // An address as the other process knows it: no pointer of ours.
        remote[count++] = (struct iovec){(void *)(uintptr_t)(address + planned), piece};
        planned += piece;
    }
    struct iovec local = {bytes, planned};
    *wanted = planned;
    return process_vm_readv(pid, &local, 1, remote, count, 0);
}

size_t os_read_process(pid_t pid, int memory_fd, uint64_t address, void *bytes, size_t size)
{
    uint8_t *at = bytes;
    size_t done = 0;
    if (address > UINTPTR_MAX || address + size < address)
        return 0;
    while (done < size) {
        size_t wanted;
        ssize_t got = read_pieces(pid, address + done, at + done, size - done, &wanted);
        if (got < 0 && errno != EFAULT)
            break;
        done += got < 0 ? 0 : (size_t)got;
        if (got < 0 || (size_t)got < wanted)
            return done;
    }
    // Forbidden, or not there.
    while (done < size && memory_fd >= 0) {
        size_t piece = PIECE_BYTES - ((address + done) & (PIECE_BYTES - 1));
        if (piece > size - done)
            piece = size - done;
        ssize_t got = pread(memory_fd, at + done, piece, (off_t)(address + done));
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

// Returns how many of the first were read whole.
static size_t read_whole(pid_t pid, struct os_piece *pieces, size_t count)
{
    struct iovec local[PIECES_MAX], remote[PIECES_MAX];
    size_t i = 0;
    do { // there is one at least
        local[i] = (struct iovec){pieces[i].bytes, pieces[i].size};
        remote[i] = (struct iovec){(void *)(uintptr_t)pieces[i].address, pieces[i].size};
    } while (++i < count);
    ssize_t got = process_vm_readv(pid, local, count, remote, count, 0);
    size_t done = 0;
    for (size_t left = got > 0 ? (size_t)got : 0; done < count && pieces[done].size <= left; done++)
        left -= pieces[done].got = pieces[done].size;
    return done;
}

void os_read_process_pieces(pid_t pid, int memory_fd, struct os_piece *pieces, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t some = count - done < PIECES_MAX ? count - done : PIECES_MAX;
        size_t end = done + some;
        done += read_whole(pid, pieces + done, some);
        if (done < end) { // this one is not there, or not all of it
            pieces[done].got =
                os_read_process(pid, memory_fd, pieces[done].address, pieces[done].bytes, pieces[done].size);
            done++;
        }
    }
}

int os_open_process_memory(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int os_open_tasks(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int os_open_task_file(int tasks_fd, pid_t tid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%d/%s", (int)tid, name);
    int fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

bool os_task_file_link(int tasks_fd, pid_t tid, int fd, char *text, size_t text_size)
{
    char path[64];
    snprintf(path, sizeof path, "%d/fd/%d", (int)tid, fd);
    ssize_t got = readlinkat(tasks_fd, path, text, text_size - 1);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

bool os_read_line(int fd, char *text, size_t size)
{
    ssize_t got = pread(fd, text, size - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

int os_socket_has_timeout(pid_t pid, int fd, bool reading)
{
    // By number: glibc knows these since 2.36 only.
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    int own = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    struct timeval timeout;
    socklen_t size = sizeof timeout;
    int result = own < 0 ? -errno : 0;
    if (own >= 0 && getsockopt(own, SOL_SOCKET, reading ? SO_RCVTIMEO : SO_SNDTIMEO, &timeout, &size) != 0)
        result = -errno;
    else if (own >= 0)
        result = timeout.tv_sec != 0 || timeout.tv_usec != 0;
    if (own >= 0)
        close(own);
    if (process >= 0)
        close(process);
    return result;
}

int os_trace_seize(pid_t tid)
{
    return ptrace(PTRACE_SEIZE, tid, 0, 0) == 0 ? 0 : -errno;
}

int os_trace_interrupt(pid_t tid)
{
    return ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 ? 0 : -errno;
}

int os_trace_detach(pid_t tid, int signal_number)
{
    return ptrace(PTRACE_DETACH, tid, 0, (void *)(intptr_t)signal_number) == 0 ? 0 : -errno;
}

int os_trace_registers(pid_t tid, unsigned kind, void *bytes, size_t *size)
{
    struct iovec block = {bytes, *size};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)kind, &block) != 0)
        return -errno;
    *size = block.iov_len;
    return 0;
}

int os_trace_set_registers(pid_t tid, unsigned kind, const void *bytes, size_t size)
{
    struct iovec block = {(void *)(uintptr_t)bytes, size};
    return ptrace(PTRACE_SETREGSET, tid, (void *)(uintptr_t)kind, &block) == 0 ? 0 : -errno;
}

static enum os_stop stop_of(pid_t got, int status, int *signal_number)
{
    *signal_number = 0;
    if (got == 0)
        return OS_STOP_NONE;
    if (got < 0 || !WIFSTOPPED(status))
        return OS_STOP_GONE;
    if (status >> 16 == PTRACE_EVENT_STOP)
        return OS_STOP_ASKED;
    if (status >> 16 == 0)
        *signal_number = WSTOPSIG(status);
    return OS_STOP_SIGNAL;
}

enum os_stop os_trace_wait(pid_t tid, bool block, int *signal_number)
{
    int status = 0;
    pid_t got;
    do
        got = waitpid(tid, &status, __WALL | (block ? 0 : WNOHANG));
    while (got < 0 && errno == EINTR);
    return stop_of(got, status, signal_number);
}

enum os_stop os_trace_wait_once(pid_t tid, bool block, bool is_child, int *signal_number)
{
    const int flags = __WALL | (block ? 0 : WNOHANG);
    int status = 0;
    siginfo_t info = {.si_pid = 0};
    *signal_number = 0;
    if (is_child) {
        if (waitid(P_PID, (id_t)tid, &info, flags | WEXITED | WSTOPPED | WNOWAIT) != 0)
            return errno == EINTR ? OS_STOP_NONE : OS_STOP_GONE;
        if (info.si_pid == 0)
            return OS_STOP_NONE;
        if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
            return OS_STOP_GONE;
    }
    pid_t got = waitpid(tid, &status, flags);
    return stop_of(got < 0 && errno == EINTR ? 0 : got, status, signal_number);
}

void os_yield(void)
{
    sched_yield();
}

void os_sleep_us(unsigned microseconds)
{
    const struct timespec time = {(long)(microseconds / 1000000), (long)(microseconds % 1000000 * 1000)};
    nanosleep(&time, NULL);
}
