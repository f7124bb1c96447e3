// SPDX-License-Identifier: Apache-2.0
// Another process: its memory, its threads, its registers. Not signal-safe.
#ifndef QUT_OS_PROCESS_H
#define QUT_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

pid_t os_own_pid(void);

// Copies memory of a process; returns how many bytes from the start on could be read. `memory_fd` is of its
// /proc/PID/mem, for where the system call is forbidden; or -1.
size_t os_read_process(pid_t pid, int memory_fd, uint64_t address, void *bytes, size_t size);
// The same of several pieces, mostly in one system call; how many bytes could be read of each is put into `got`.
struct os_piece {
    uint64_t address;
    void *bytes;
    size_t size, got;
};
void os_read_process_pieces(pid_t pid, int memory_fd, struct os_piece *pieces, size_t count);
int os_open_process_memory(pid_t pid); // a descriptor or -errno

// /proc/PID/task: a descriptor or -errno. And a file of a thread there ("syscall"), likewise; of what a descriptor of
// the thread is, as /proc words it ("socket:[123]"), only text.
int os_open_tasks(pid_t pid);
int os_open_task_file(int tasks_fd, pid_t tid, const char *name);
bool os_task_file_link(int tasks_fd, pid_t tid, int fd, char *text, size_t text_size);
// What one read gives, at most size - 1 bytes and a NUL. False: nothing; the thread has gone.
bool os_read_line(int fd, char *text, size_t size);
// Of a socket of another process: whether reading from it (or sending, connecting) has a timeout. 0, 1 or -errno. The
// socket is a descriptor of ours for the time of the call.
int os_socket_has_timeout(pid_t pid, int fd, bool reading);

// ptrace, without side effects on the traced: it is seized, never attached. Each is for the thread that seized; 0 or
// -errno.
int os_trace_seize(pid_t tid);
int os_trace_interrupt(pid_t tid);
// `signal_number`: is delivered to it, or 0. What the tracee stopped for is what it goes on with.
int os_trace_detach(pid_t tid, int signal_number);
// A register set (NT_PRSTATUS, ...), into at most *size bytes; *size becomes what it has.
int os_trace_registers(pid_t tid, unsigned kind, void *bytes, size_t *size);
int os_trace_set_registers(pid_t tid, unsigned kind, const void *bytes, size_t size);

enum os_stop {
    OS_STOP_NONE = 0, // does not stand still yet
    OS_STOP_ASKED,    // stopped as asked, or with its whole group
    OS_STOP_SIGNAL,   // stopped before *signal_number is delivered to it
    OS_STOP_GONE,     // has ended
};
enum os_stop os_trace_wait(pid_t tid, bool block, int *signal_number);
// The same, once: NONE also where a signal of ours was handled meanwhile. is_child: how it ends is for another part of
// this process to ask.
enum os_stop os_trace_wait_once(pid_t tid, bool block, bool is_child, int *signal_number);

void os_yield(void);
void os_sleep_us(unsigned microseconds);

#endif
