// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/agent/listener.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

void (*listener_before_answer)(pid_t pid);
void (*listener_calls)(int fd, const struct agent_channel_calls *calls, int memory_fd);
bool listener_leaves;

void listener_settings(struct agent_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    snprintf(settings->token, sizeof settings->token, "%08x%08x", (unsigned)getpid(), (unsigned)rand());
    settings->period_ns = 1000000;
    settings->sync_interval_ns = 1000000;
    settings->segment_bytes = 4 << 20;
    settings->blocked_least_ns = 1000000;
    settings->sync = AGENT_SYNC_ALL;
    settings->metric_mask = 0x3f;
    settings->follow = true;
}

static int listen_at(const struct agent_settings *settings)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "qut-%s", settings->token);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(
        bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)),
        0);
    ck_assert_int_eq(listen(fd, 100), 0);
    return fd;
}

static void answer(int fd, enum agent_channel_type type)
{
    struct agent_channel_answer packet = {.version = AGENT_VERSION, .type = type, .reason = "a test has none"};
    send(fd, &packet, sizeof packet, MSG_NOSIGNAL);
}

static void add(struct agent_channel_counts *to, const struct agent_channel_counts *counts)
{
    to->due += counts->due;
    to->taken += counts->taken;
    to->late += counts->late;
    to->kernel += counts->kernel;
    to->lost += counts->lost;
    to->strays += counts->strays;
    to->threads_failed += counts->threads_failed;
    to->eintr_seen += counts->eintr_seen;
    to->locks_untold += counts->locks_untold;
    to->python_stacks += counts->python_stacks;
    to->python_uncertain += counts->python_uncertain;
}

static void take_packet(struct listener_run *run, int fd, const char *token)
{
    static union {
        struct agent_channel_head head;
        struct agent_channel_hello hello;
        struct agent_channel_table table;
        struct agent_channel_counts counts;
        struct agent_channel_left left;
        struct agent_channel_calls calls;
    } packet;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&packet, sizeof packet};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t size = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int passed_fd = -1;
    if (head && head->cmsg_type == SCM_RIGHTS)
        memcpy(&passed_fd, CMSG_DATA(head), sizeof passed_fd);
    bool is_good = size >= (ssize_t)sizeof packet.head && packet.head.version == AGENT_VERSION &&
                   strcmp(packet.head.token, token) == 0;
    if (is_good && packet.head.type == AGENT_CHANNEL_HELLO && size == sizeof packet.hello &&
        run->process_count < LISTENER_PROCESSES_MAX) {
        run->processes[run->process_count++] = (struct listener_process){packet.hello, passed_fd};
        passed_fd = -1;
        if (listener_before_answer)
            listener_before_answer((pid_t)packet.hello.pid);
        answer(fd, AGENT_CHANNEL_OK);
    } else if (is_good && packet.head.type == AGENT_CHANNEL_TABLE && size == sizeof packet.table) {
        run->table_questions++;
        answer(fd, AGENT_CHANNEL_NO);
    } else if (is_good && packet.head.type == AGENT_CHANNEL_ADD && size == sizeof packet.counts) {
        run->count_packets++;
        run->never_begun += packet.counts.never_begun != 0;
        add(&run->counts, &packet.counts);
        answer(fd, AGENT_CHANNEL_OK);
    } else if (is_good && packet.head.type == AGENT_CHANNEL_LEFT && size == sizeof packet.left) {
        run->left_packets++;
        answer(fd, AGENT_CHANNEL_OK);
    } else if (is_good && packet.head.type == AGENT_CHANNEL_CALLS && size == sizeof packet.calls && listener_calls) {
        listener_calls(fd, &packet.calls, passed_fd);
    } else if (size != 0) { // else a process that ended between two of its calls
        run->malformed++;
    }
    if (passed_fd >= 0)
        close(passed_fd);
}

static void become(const struct agent_settings *settings, const char *const *arguments, int output_fd)
{
    static char text[AGENT_SETTINGS_BYTES];
    dup2(output_fd, 1);
    dup2(output_fd, 2);
    syscall(SYS_close_range, 3u, ~0u, 0u);
    if (settings) {
        if (agent_settings_write(settings, text, sizeof text) == 0)
            _exit(120);
        setenv("LD_PRELOAD", getenv("QUT_TEST_AGENT"), 1);
        setenv(AGENT_VARIABLE, text, 1);
    }
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    _exit(121);
}

static void take_output(struct listener_run *run, int fd)
{
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got <= 0)
        return;
    run->output = realloc(run->output, run->output_bytes + (size_t)got + 1);
    memcpy(run->output + run->output_bytes, bytes, (size_t)got);
    run->output_bytes += (size_t)got;
    run->output[run->output_bytes] = '\0';
}

void listener_run(const struct agent_settings *settings, const char *const *arguments, bool answers,
                  struct listener_run *run)
{
    memset(run, 0, sizeof *run);
    run->output = calloc(1, 1);
    int output[2], server = settings && answers ? listen_at(settings) : -1;
    ck_assert_int_eq(pipe2(output, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0)
        become(settings, arguments, output[1]);
    ck_assert_int_gt(child, 0);
    close(output[1]);
    // A process that still has our end of the pipe may still say something.
    struct pollfd waits[2] = {{.fd = output[0], .events = POLLIN}, {.fd = server, .events = POLLIN}};
    while (poll(waits, 2, 60000) > 0) {
        if (waits[1].revents & POLLIN) {
            int fd = accept4(server, NULL, NULL, SOCK_CLOEXEC);
            struct pollfd one = {.fd = fd, .events = POLLIN};
            if (poll(&one, 1, 5000) > 0)
                take_packet(run, fd, settings->token);
            close(fd);
        }
        if (listener_leaves && run->process_count > 0 && server >= 0) {
            close(server);
            waits[1].fd = server = -1;
        }
        if (waits[0].revents & POLLIN)
            take_output(run, output[0]);
        else if (waits[0].revents & (POLLHUP | POLLERR))
            break;
    }
    ck_assert_int_eq(waitpid(child, &run->status, 0), child);
    close(output[0]);
    if (server >= 0)
        close(server);
}

void listener_free(struct listener_run *run)
{
    for (size_t i = 0; i < run->process_count; i++)
        close(run->processes[i].segment_fd);
    free(run->output);
    run->output = NULL;
}

void listener_trace(const struct listener_run *run, size_t process, struct trace *trace)
{
    struct base_error error = {0};
    ck_assert_uint_lt(process, run->process_count);
    int result = trace_read_fd(run->processes[process].segment_fd, "segment", trace, &error);
    ck_assert_msg(result == 0, "a segment cannot be read");
}
