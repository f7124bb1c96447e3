// SPDX-License-Identifier: Apache-2.0
// What agent and recorder say to each other. The first byte says what the rest is: the settings' text; a packet as it
// is; a packet that has the recording's token and version. Packets go the way that an agent's do, over the socket.
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/qut_agent.h"
#include "tests/proof/fuzz/fuzz.h"
#include "tracer/record/server.h"

static struct loop loop;
static struct server server;
static unsigned heard; // events of the packet that was sent

static const char *hello(void *context, const struct agent_channel_hello *packet, struct server_peer *peer, int fd)
{
    (void)context;
    fuzz_require(packet->head.version == AGENT_VERSION && packet->head.type == AGENT_CHANNEL_HELLO);
    fuzz_require(peer->pid == (uint32_t)getpid());
    if (fd >= 0)
        close(fd);
    heard++;
    return packet->begin > AGENT_BEGAN_BY_INJECTION ? "it began in no way that is known" : NULL;
}

static void table(void *context, const struct agent_channel_table *packet, const struct server_peer *peer, int fd,
                  int client_fd)
{
    (void)context, (void)peer;
    fuzz_require(memchr(packet->path, 0, sizeof packet->path) && packet->build_id_bytes <= sizeof packet->build_id);
    if (fd >= 0)
        close(fd);
    record_server_answer(client_fd, NULL, -1);
    close(client_fd);
    heard++;
}

static void add(void *context, const struct agent_channel_counts *packet, const struct server_peer *peer)
{
    (void)context, (void)peer;
    fuzz_require(packet->head.type == AGENT_CHANNEL_ADD);
    heard++;
}

static void left(void *context, const struct agent_channel_left *packet, const struct server_peer *peer)
{
    (void)context, (void)peer;
    fuzz_require(packet->why > AGENT_LEFT_NOT && packet->why < AGENT_LEFT_COUNT);
    heard++;
}

static void end_server(void)
{
    record_server_end(&server);
    record_loop_end(&loop);
}

static void begin_server(void)
{
    static bool has_begun;
    const struct server_events events = {.hello = hello, .table = table, .add = add, .left = left};
    struct base_error error = {0};
    if (has_begun)
        return;
    fuzz_require(record_loop_begin(&loop, &error) == 0);
    fuzz_require(record_server_begin(&server, &loop, &events, false, &error) == 0);
    atexit(end_server);
    has_begun = true;
}

static int connect_to_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "qut-%s", server.token);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    fuzz_require(fd >= 0 && connect(fd, (struct sockaddr *)&address,
                                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0);
    return fd;
}

// One answer at most; and none but of one kind where nothing was heard.
static void send_packet(const uint8_t *bytes, size_t size, bool has_descriptor)
{
    int fd = connect_to_server();
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (has_descriptor) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        *rights = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    heard = 0;
    fuzz_require(sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)size);
    record_server_drain(&server);
    struct agent_channel_answer answer;
    ssize_t got = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
    fuzz_require(heard <= 1 && (got == sizeof answer || (got <= 0 && heard == 0)));
    if (got == sizeof answer) {
        fuzz_require(answer.version == AGENT_VERSION && memchr(answer.reason, 0, sizeof answer.reason));
        fuzz_require(answer.type == AGENT_CHANNEL_NO || (answer.type == AGENT_CHANNEL_OK && heard == 1));
    }
    close(fd);
    record_server_drain(&server);
    fuzz_require(server.client_count == 0);
}

// What is read is written in the same words, and read as the same.
static void read_settings(const uint8_t *data, size_t size)
{
    struct agent_settings settings, again;
    char written[AGENT_SETTINGS_BYTES + 1];
    char *text = malloc(size + 1);
    fuzz_require(text != NULL);
    memcpy(text, data, size);
    text[size] = 0;
    if (agent_settings_read(&settings, text) == 0 && agent_settings_write(&settings, written, AGENT_SETTINGS_BYTES)) {
        fuzz_require(agent_settings_read(&again, written) == 0);
        fuzz_require(memcmp(&settings, &again, sizeof settings) == 0);
    }
    free(text);
}

int fuzz_agent(const uint8_t *data, size_t size)
{
    enum { SETTINGS, PACKET, OUR_PACKET, WAYS, WITH_DESCRIPTOR = 0x80 };
    union {
        struct agent_channel_head head;
        uint8_t bytes[sizeof(struct agent_channel_table) + 64];
    } packet = {.bytes = {0}};
    if (size == 0)
        return 0;
    unsigned way = (data[0] & ~(unsigned)WITH_DESCRIPTOR) % WAYS;
    size_t length = size - 1 < sizeof packet ? size - 1 : sizeof packet;
    if (way == SETTINGS) {
        read_settings(data + 1, size - 1);
        return 0;
    }
    begin_server();
    memcpy(&packet, data + 1, length);
    if (way == OUR_PACKET) {
        // What is too short for its type is filled up: the sizes are few, and are all that counts then.
        static const size_t sizes[] = {sizeof packet.head, sizeof(struct agent_channel_hello),
                                       sizeof(struct agent_channel_table), sizeof(struct agent_channel_counts),
                                       sizeof(struct agent_channel_left)};
        packet.head.version = AGENT_VERSION;
        if (packet.head.type < sizeof sizes / sizeof *sizes && length < sizes[packet.head.type])
            length = sizes[packet.head.type];
        memset(packet.head.token, 0, sizeof packet.head.token);
        memcpy(packet.head.token, server.token, sizeof server.token);
    }
    send_packet(packet.bytes, length, data[0] & WITH_DESCRIPTOR);
    return 0;
}
