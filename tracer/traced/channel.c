// SPDX-License-Identifier: Apache-2.0
// The agent's side of the talk is a thread of the process: it cannot answer while that stands still.
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "formats/qut_agent.h"
#include "tracer/traced/inside.h"

enum { PATIENCE_MS = 10000 };

static int no_answer(struct traced_process *process, struct base_error *error, const char *why)
{
    // What would come now is another question's answer.
    close(process->channel_fd);
    process->channel_fd = -1;
    return base_fail(error, BASE_ERR_IO, "", 0, "the agent does not answer: %s", why);
}

static ssize_t send_with(int channel_fd, const struct agent_channel_map *asked, int passed_fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {(void *)(uintptr_t)asked, sizeof *asked};
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
    return sendmsg(channel_fd, &message, MSG_NOSIGNAL);
}

static int ask_with(struct traced_process *process, const struct agent_channel_map *asked, int passed_fd,
                    uint64_t *address, struct base_error *error)
{
    struct agent_channel_mapped answer;
    struct pollfd readable = {.fd = process->channel_fd, .events = POLLIN};
    int ready;
    if (process->channel_fd < 0)
        return base_fail(error, BASE_ERR_IO, "", 0, "the agent has gone");
    if (send_with(process->channel_fd, asked, passed_fd) != (ssize_t)sizeof *asked)
        return no_answer(process, error, strerror(errno));
    do
        ready = poll(&readable, 1, PATIENCE_MS);
    while (ready < 0 && errno == EINTR);
    if (ready != 1)
        return no_answer(process, error, ready == 0 ? "nothing within 10 s" : strerror(errno));
    ssize_t size = recv(process->channel_fd, &answer, sizeof answer, MSG_DONTWAIT);
    if (size != (ssize_t)sizeof answer || answer.head.type != AGENT_CHANNEL_MAPPED || answer.number != asked->number)
        return no_answer(process, error, size == 0 ? "it has gone" : "nothing that was asked");
    if (answer.error)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", strerror(-answer.error));
    *address = answer.address;
    return 0;
}

static int ask(struct traced_process *process, const struct agent_channel_map *asked, uint64_t *address,
               struct base_error *error)
{
    return ask_with(process, asked, -1, address, error);
}

static struct agent_channel_map question(struct traced_process *process, enum agent_channel_type type, uint64_t begin,
                                         uint64_t end)
{
    struct agent_channel_map asked = {
        .head = {.version = AGENT_VERSION, .type = type}, .begin = begin, .end = end, .number = ++process->question};
    memcpy(asked.head.token, process->token, sizeof process->token);
    return asked;
}

int traced_channel_map(struct traced_process *process, uint64_t begin, uint64_t end, uint64_t size_bytes,
                       uint64_t *address, struct base_error *error)
{
    struct agent_channel_map asked = question(process, AGENT_CHANNEL_MAP, begin, end);
    asked.size_bytes = size_bytes;
    return ask(process, &asked, address, error);
}

int traced_channel_unmap(struct traced_process *process, uint64_t begin, uint64_t end, struct base_error *error)
{
    const struct agent_channel_map asked = question(process, AGENT_CHANNEL_UNMAP, begin, end);
    uint64_t none;
    return ask(process, &asked, &none, error);
}

int traced_channel_shadow(struct traced_process *process, uint64_t begin, uint64_t end, struct base_error *error)
{
    const struct agent_channel_map asked = question(process, AGENT_CHANNEL_SHADOW, begin, end);
    uint64_t none;
    return ask(process, &asked, &none, error);
}

int traced_channel_traps(struct traced_process *process, uint64_t begin, uint64_t end, struct base_error *error)
{
    const struct agent_channel_map asked = question(process, AGENT_CHANNEL_TRAPS, begin, end);
    uint64_t none;
    return ask(process, &asked, &none, error);
}

int traced_channel_probe(struct traced_process *process, int memory_fd, uint64_t masks_begin, uint64_t masks_end,
                         struct base_error *error)
{
    const struct agent_channel_map asked = question(process, AGENT_CHANNEL_PROBE, masks_begin, masks_end);
    uint64_t none;
    return ask_with(process, &asked, memory_fd, &none, error);
}

void traced_channel_go_on(struct traced_process *process, const char *refused)
{
    struct agent_channel_answer answer = {.version = AGENT_VERSION,
                                          .type = refused ? AGENT_CHANNEL_NO : AGENT_CHANNEL_OK};
    if (refused)
        strncpy(answer.reason, refused, sizeof answer.reason - 1);
    if (process->channel_fd >= 0)
        send(process->channel_fd, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
}
