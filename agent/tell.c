// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/folder.h"
#include "agent/inside.h"
#include "agent/locks.h"
#include "agent/tell.h"
#include "agent/thread_start.h"
#include "libqut/host/host.h"

enum {
    DESCRIPTORS_TRIES = 200, // so often a descriptor is sent that must wait for others, once in
    DESCRIPTORS_REST_MS = 5,
    HELLO_PATIENCE_S = 5,
    COUNTS_PATIENCE_S = 1,
    TABLE_PATIENCE_S = 120, // a large library takes a compiler seconds
    FIRST_HIGH_FD = 200,    // above those that programs count on getting
};
static const uint64_t table_bytes_max = UINT64_C(1) << 30;

// ---- connecting. A stop of the whole process (Ctrl-Z, a debugger) ends a wait that has a timeout, whatever signals
// are blocked: each of these calls begins anew then.

// Out of the way of a program that expects the lowest free number from its next open.
static int move_up(int fd)
{
    struct rlimit limit;
    int first = FIRST_HIGH_FD;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 2 * FIRST_HIGH_FD)
        first = (int)(limit.rlim_cur / 2);
    int high = fcntl(fd, F_DUPFD_CLOEXEC, first);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static int connect_to(const char *name, int patience_s)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    if (length < 2 || length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, name, length);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    else
        length++; // a path has its NUL
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (patience_s == 0 ? SOCK_NONBLOCK : 0), 0);
    if (fd < 0)
        return os_failed(SYS_socket);
    if (patience_s != 0) {
        fd = move_up(fd);
        struct timeval patience = {.tv_sec = patience_s};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    while (connect(fd, (const struct sockaddr *)&address, size) != 0) {
        int error = errno;
        if (error == EINTR)
            continue;
        close(fd);
        return os_failed_with(SYS_connect, error);
    }
    return fd;
}

// A recorder that is gone, or whose socket another user may not reach.
static bool is_gone(int error)
{
    return error == -ECONNREFUSED || error == -ENOENT || error == -ENOTDIR || error == -EACCES;
}

// By its abstract name, which needs no file system; else by its path, which needs no network namespace. Of two failures
// the one that is told is that of a call which was denied. Who asks for the program's connects does not mean this one.
int agent_tell_connect(int patience_s)
{
    char name[8 + AGENT_TOKEN_BYTES] = "@qut-";
    memcpy(name + strlen(name), agent_settings.token, AGENT_TOKEN_BYTES);
    struct calls_own *kept = calls_work_begins();
    int fd = connect_to(name, patience_s), error = fd;
    if (fd < 0 && agent_settings.socket[0])
        fd = connect_to(agent_settings.socket, patience_s);
    calls_work_ends(kept);
    return fd < 0 && !is_gone(error) ? error : fd;
}

int agent_tell_reach(void)
{
    if (agent_folder_is_meant())
        return agent_folder_reach();
    int fd = agent_tell_connect(COUNTS_PATIENCE_S);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || fd == -EAGAIN ? 0 : is_gone(fd) ? -ECONNREFUSED : fd;
}

bool agent_tell_is_heard(void)
{
    return agent_tell_reach() == 0;
}

// ---- packets

void agent_tell_fill_head(struct agent_channel_head *head, enum agent_channel_type type)
{
    head->version = AGENT_VERSION;
    head->type = type;
    memcpy(head->token, agent_settings.token, AGENT_TOKEN_BYTES);
}

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

int agent_tell_send(int to_fd, const void *packet, size_t size, int passed_fd)
{
    union control control = {.bytes = {0}};
    struct iovec part = {(void *)packet, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (passed_fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof passed_fd);
        memcpy(CMSG_DATA(head), &passed_fd, sizeof passed_fd);
    }
    // A user who is not root may have no more descriptors on their way, in all processes together, than one process
    // may have open: the recorder takes them off it.
    ssize_t sent;
    unsigned tries = 0;
    _Atomic uint32_t never = 0;
    struct calls_own *kept = calls_work_begins();
    for (;;) {
        sent = sendmsg(to_fd, &message, MSG_NOSIGNAL);
        if (sent >= 0 || (errno != EINTR && (errno != ETOOMANYREFS || ++tries == DESCRIPTORS_TRIES)))
            break;
        if (errno == ETOOMANYREFS)
            os_wait(&never, 0, DESCRIPTORS_REST_MS);
    }
    calls_work_ends(kept);
    return sent == (ssize_t)size ? 0 : sent < 0 ? os_failed(SYS_sendmsg) : -EMSGSIZE;
}

ssize_t agent_tell_receive(int from_fd, void *packet, size_t size, int flags, int *passed_fd)
{
    union control control = {.bytes = {0}};
    struct iovec part = {packet, size};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    *passed_fd = -1;
    struct calls_own *kept = calls_work_begins();
    const ssize_t got = recvmsg(from_fd, &message, flags | MSG_CMSG_CLOEXEC);
    calls_work_ends(kept);
    if (got < 0)
        return os_failed(SYS_recvmsg);
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof *passed_fd))
        memcpy(passed_fd, CMSG_DATA(head), sizeof *passed_fd);
    return got;
}

static int receive_answer(int from_fd, struct agent_channel_answer *answer, int *passed_fd)
{
    ssize_t got;
    do
        got = agent_tell_receive(from_fd, answer, sizeof *answer, 0, passed_fd);
    while (got == -EINTR);
    if (got < 0)
        return (int)got;
    answer->reason[sizeof answer->reason - 1] = '\0';
    bool is_one = got == sizeof *answer && answer->version == AGENT_VERSION;
    if (is_one && answer->type == AGENT_CHANNEL_OK)
        return 0;
    if (*passed_fd >= 0)
        close(*passed_fd);
    *passed_fd = -1;
    return !is_one ? -EPROTO : AGENT_TELL_NO;
}

// ---- what is said

// The system call that `error` is of, as far as that is known.
uint16_t agent_tell_failed_call(int error)
{
    uint32_t last = atomic_load_explicit(&os_last_failure, memory_order_relaxed);
    return error != 0 && (int)(last & 0xffff) == -error ? (uint16_t)(last >> 16) : 0;
}

int agent_tell_hello(enum agent_channel_begin begin, uint32_t trigger, int trigger_error, int segment_fd, bool wait)
{
    if (agent_folder_is_meant())
        return 0;
    struct agent_channel_hello hello = {.pid = (uint32_t)getpid(),
                                        .parent_pid = (uint32_t)getppid(),
                                        .begin = begin,
                                        .trigger = trigger,
                                        .trigger_error = trigger_error,
                                        .failed_call = agent_tell_failed_call(trigger_error),
                                        .tick_signal = (uint16_t)qut_sampling_signal()};
    struct agent_channel_answer answer;
    agent_tell_fill_head(&hello.head, AGENT_CHANNEL_HELLO);
    int fd = agent_tell_connect(HELLO_PATIENCE_S), passed_fd = -1;
    if (fd < 0)
        return fd;
    int result = agent_tell_send(fd, &hello, sizeof hello, segment_fd);
    if (result == 0 && wait)
        result = receive_answer(fd, &answer, &passed_fd);
    if (passed_fd >= 0)
        close(passed_fd);
    close(fd);
    return result;
}

// As it was told last. Two threads that tell at the same time may tell some of it twice; only an end that meets an
// _exit of another thread does that.
static struct agent_channel_counts told;

void agent_tell_counts_after_fork(void)
{
    memset(&told, 0, sizeof told);
}

static struct agent_channel_counts sum_now(void)
{
    struct qut_sampling_counters now;
    struct python_sums python = python_sums();
    qut_sampling_get_counters(&now, sizeof now);
    return (struct agent_channel_counts){.due = now.due,
                                         .taken = now.taken,
                                         .late = now.late,
                                         .kernel = now.kernel,
                                         .lost = now.lost,
                                         .strays = now.strays,
                                         .threads_failed = now.threads_failed + agent_threads_without_room(),
                                         .eintr_seen = now.eintr_seen,
                                         .locks_untold = locks_untold(),
                                         .asked = now.asked,
                                         .python_stacks = python.merged,
                                         .python_uncertain = python.uncertain};
}

void agent_tell_never_begun(void)
{
    if (agent_folder_is_meant())
        return;
    struct agent_channel_counts counts = sum_now();
    counts.never_begun = 1;
    agent_tell_fill_head(&counts.head, AGENT_CHANNEL_ADD);
    int fd = agent_tell_connect(0);
    if (fd == -EAGAIN) // more wait for the recorder than may
        fd = agent_tell_connect(COUNTS_PATIENCE_S);
    if (fd < 0)
        return;
    agent_tell_send(fd, &counts, sizeof counts, -1);
    close(fd);
}

void agent_tell_counts(bool wait)
{
    if (agent_folder_is_meant())
        return;
    struct agent_channel_counts sum = sum_now();
    struct agent_channel_counts counts = {.due = sum.due - told.due,
                                          .taken = sum.taken - told.taken,
                                          .late = sum.late - told.late,
                                          .kernel = sum.kernel - told.kernel,
                                          .lost = sum.lost - told.lost,
                                          .strays = sum.strays - told.strays,
                                          .threads_failed = sum.threads_failed - told.threads_failed,
                                          .eintr_seen = sum.eintr_seen - told.eintr_seen,
                                          .locks_untold = sum.locks_untold - told.locks_untold,
                                          .asked = sum.asked - told.asked,
                                          .python_stacks = sum.python_stacks - told.python_stacks,
                                          .python_uncertain = sum.python_uncertain - told.python_uncertain};
    agent_tell_fill_head(&counts.head, AGENT_CHANNEL_ADD);
    int fd = agent_tell_connect(COUNTS_PATIENCE_S), passed_fd = -1;
    if (fd < 0)
        return;
    struct agent_channel_answer answer;
    if (agent_tell_send(fd, &counts, sizeof counts, -1) == 0) {
        told = sum;
        if (wait && receive_answer(fd, &answer, &passed_fd) == 0 && passed_fd >= 0)
            close(passed_fd);
    }
    close(fd);
}

// Where nothing can be sent: the recorder's directory is its own, and so are all files in it.
static void leave_note(const struct agent_channel_left *left)
{
    char path[AGENT_PATH_BYTES + 32];
    const char *slash = agent_settings.socket[0] == '/' ? strrchr(agent_settings.socket, '/') : NULL;
    if (!slash)
        return;
    snprintf(path, sizeof path, "%.*s/" AGENT_NOTE "%d", (int)(slash - agent_settings.socket), agent_settings.socket,
             (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, left, sizeof *left) != (ssize_t)sizeof *left)
        unlink(path);
    close(fd);
}

void agent_tell_left(enum agent_left why, enum agent_tell_left who, int error)
{
    if (agent_folder_is_meant()) {
        agent_folder_left(why, who, error);
        return;
    }
    struct agent_channel_left left = {.why = why,
                                      .is_taken = who == AGENT_TELL_TAKEN_BACK,
                                      .is_child = who == AGENT_TELL_CHILD,
                                      .failed_call = agent_tell_failed_call(error),
                                      .failed_error = (uint16_t)-error};
    struct agent_channel_answer answer;
    agent_tell_fill_head(&left.head, AGENT_CHANNEL_LEFT);
    int fd = agent_tell_connect(COUNTS_PATIENCE_S), passed_fd = -1;
    int result = fd < 0 ? fd : agent_tell_send(fd, &left, sizeof left, -1);
    // The recorder looks us up: not after the end.
    if (result == 0 && receive_answer(fd, &answer, &passed_fd) == 0 && passed_fd >= 0)
        close(passed_fd);
    if (fd >= 0)
        close(fd);
    if (result != 0 && !is_gone(result))
        leave_note(&left);
}

// ---- tables

static int copy_to_memfd(const void *bytes, size_t size)
{
    int fd = memfd_create("qut", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    fd = move_up(fd);
    size_t done = 0;
    while (done < size) {
        ssize_t wrote = write(fd, (const char *)bytes + done, size - done);
        if (wrote <= 0) {
            int error = wrote < 0 ? -errno : -EIO;
            close(fd);
            return error;
        }
        done += (size_t)wrote;
    }
    return fd;
}

static int read_table(int fd, void **table, size_t *table_size)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return -errno;
    if (status.st_size <= 0 || (uint64_t)status.st_size > table_bytes_max)
        return -EFBIG;
    size_t size = (size_t)status.st_size, done = 0;
    char *bytes = malloc(size);
    if (!bytes)
        return -ENOMEM;
    while (done < size) {
        ssize_t got = pread(fd, bytes + done, size - done, (off_t)done);
        if (got <= 0) {
            free(bytes);
            return got < 0 ? -errno : -ENODATA;
        }
        done += (size_t)got;
    }
    *table = bytes;
    *table_size = size;
    return 0;
}

static int ask(const struct agent_channel_table *question, int bytes_fd, struct agent_channel_answer *answer,
               void **table, size_t *table_size)
{
    int table_fd = -1, fd = agent_tell_connect(TABLE_PATIENCE_S);
    if (fd < 0)
        return fd;
    int result = agent_tell_send(fd, question, sizeof *question, bytes_fd);
    if (result == 0)
        result = receive_answer(fd, answer, &table_fd);
    if (result == 0)
        result = table_fd >= 0 ? read_table(table_fd, table, table_size) : -EPROTO;
    if (table_fd >= 0)
        close(table_fd);
    close(fd);
    return result;
}

// First by the file's name, which is next to nothing to say; where the recorder makes nothing of that (it may not see
// the file, or sees another one), with the bytes.
int agent_tell_table(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                     char *reason, size_t reason_size)
{
    (void)context;
    static struct agent_channel_table question; // one call at a time
    struct agent_channel_answer answer = {.reason = ""};
    memset(&question, 0, sizeof question);
    agent_tell_fill_head(&question.head, AGENT_CHANNEL_TABLE);
    question.offset_bytes = request->offset_bytes;
    question.flags = request->flags;
    bool has_path = request->path[0] == '/' && strlen(request->path) < sizeof question.path;
    if (request->build_id_size <= sizeof question.build_id) {
        question.build_id_bytes = request->build_id_size;
        memcpy(question.build_id, request->build_id, request->build_id_size);
    }
    if (strlen(request->path) < sizeof question.path)
        strcpy(question.path, request->path);
    int result = -ENOENT;
    if (has_path && !(request->flags & QUT_COMPILE_JIT))
        result = ask(&question, -1, &answer, table, table_size);
    if ((result == AGENT_TELL_NO || result == -ENOENT) && request->memory && request->memory_size > 0) {
        int bytes_fd = copy_to_memfd(request->memory, request->memory_size);
        question.memory_bytes = request->memory_size;
        result = bytes_fd < 0 ? bytes_fd : ask(&question, bytes_fd, &answer, table, table_size);
        if (bytes_fd >= 0)
            close(bytes_fd);
    }
    if (result == AGENT_TELL_NO && answer.reason[0])
        snprintf(reason, reason_size, "%s", answer.reason);
    else if (result != 0)
        snprintf(reason, reason_size, "the recorder gave no table: error %d", -result);
    return result == 0 ? 0 : -1;
}
