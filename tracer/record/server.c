// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/record/endpoint.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum {
    CLIENTS_MAX = 512,
    DESCRIPTORS_MAX = 4, // of one packet that are looked at: all but the first are closed
};
static const uint64_t patience_ns = 10000000000;
static const char another_version[] = "the recorder is of another version of QUT: use the one that came with the agent";
static_assert(sizeof another_version <= sizeof((struct agent_channel_answer *)0)->reason, "fits");

struct server_client {
    struct loop_source source;
    struct server *server;
    struct server_client *next;
    uint64_t since_ns;
    bool is_watched; // by the loop
};

union packet {
    struct agent_channel_head head;
    struct agent_channel_hello hello;
    struct agent_channel_table table;
    struct agent_channel_counts counts;
    struct agent_channel_left left;
    struct agent_channel_calls calls;
    char bytes[sizeof(struct agent_channel_table) + 1]; // one more, to see what is too long
};

void record_server_answer(int client_fd, const char *reason, int fd)
{
    struct agent_channel_answer answer = {.version = AGENT_VERSION,
                                          .type = reason ? AGENT_CHANNEL_NO : AGENT_CHANNEL_OK};
    if (reason)
        snprintf(answer.reason, sizeof answer.reason, "%s", reason);
    alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec bytes = {&answer, sizeof answer};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    // An agent that does not listen any more gets no answer.
    sendmsg(client_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// The first descriptor of a message; the others are closed.
static int take_descriptor(struct msghdr *message)
{
    int first = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= part->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
            if (first < 0)
                first = fd;
            else
                close(fd);
        }
    }
    return first;
}

// -1: nothing is there yet. 0: it will never be.
static ssize_t receive(int fd, union packet *packet, int *descriptor)
{
    alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
    struct iovec bytes = {packet, sizeof *packet};
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *descriptor = -1;
    if (size < 0)
        return errno == EAGAIN || errno == EINTR ? -1 : 0;
    *descriptor = take_descriptor(&message);
    return size;
}

static void ask_peer(int fd, struct server_peer *peer)
{
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    *peer = (struct server_peer){.process_fd = -1};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
        return;
    peer->pid = credentials.pid > 0 ? (uint32_t)credentials.pid : 0;
    peer->uid = credentials.uid;
    size = sizeof peer->process_fd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &peer->process_fd, &size) != 0)
        peer->process_fd = peer->pid ? (int)syscall(SYS_pidfd_open, peer->pid, 0) : -1;
    if (peer->process_fd < 0)
        peer->process_fd = -1;
}

static bool has_token(const struct server *server, const union packet *packet, size_t size)
{
    return size >= sizeof packet->head && memcmp(packet->head.token, server->token, sizeof server->token) == 0;
}

// What has the token, and is of this version.
static bool is_sound(const union packet *packet, size_t size)
{
    static const size_t sizes[] = {[AGENT_CHANNEL_HELLO] = sizeof(struct agent_channel_hello),
                                   [AGENT_CHANNEL_TABLE] = sizeof(struct agent_channel_table),
                                   [AGENT_CHANNEL_ADD] = sizeof(struct agent_channel_counts),
                                   [AGENT_CHANNEL_LEFT] = sizeof(struct agent_channel_left),
                                   [AGENT_CHANNEL_CALLS] = sizeof(struct agent_channel_calls)};
    if (packet->head.type < AGENT_CHANNEL_HELLO || packet->head.type > AGENT_CHANNEL_CALLS ||
        size != sizes[packet->head.type])
        return false;
    const struct agent_channel_table *table = &packet->table;
    if (packet->head.type == AGENT_CHANNEL_LEFT)
        return packet->left.why > AGENT_LEFT_NOT && packet->left.why < AGENT_LEFT_COUNT;
    return packet->head.type != AGENT_CHANNEL_TABLE ||
           (memchr(table->path, 0, sizeof table->path) && table->build_id_bytes <= sizeof table->build_id);
}

static void forget(struct server_client *client)
{
    struct server *server = client->server;
    struct server_client **place = &server->clients;
    while (*place != client)
        place = &(*place)->next;
    *place = client->next;
    server->client_count--;
    if (client->is_watched)
        record_loop_remove(server->loop, &client->source);
    else
        close(client->source.fd);
    free(client);
}

// What is said over the connection itself: it stays.
static void take_lasting(struct server_client *client, const union packet *packet, int descriptor)
{
    struct server *server = client->server;
    struct server_peer peer;
    // The loop lets go of its own one.
    int fd = record_dup_cloexec(client->source.fd);
    if (fd < 0) {
        record_server_answer(client->source.fd, "the recorder has too many descriptors open", -1);
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    ask_peer(fd, &peer);
    if (packet->head.type == AGENT_CHANNEL_TABLE)
        server->events.table(server->events.context, &packet->table, &peer, descriptor, fd);
    else
        server->events.calls(server->events.context, &packet->calls, &peer, descriptor, fd);
    if (peer.process_fd >= 0)
        close(peer.process_fd);
}

static void take_others(struct server_client *client, const union packet *packet, int descriptor)
{
    struct server *server = client->server;
    struct server_peer peer;
    const char *reason = NULL;
    ask_peer(client->source.fd, &peer);
    if (packet->head.type == AGENT_CHANNEL_HELLO) {
        reason = server->events.hello(server->events.context, &packet->hello, &peer, descriptor);
    } else {
        if (descriptor >= 0)
            close(descriptor);
        if (packet->head.type == AGENT_CHANNEL_LEFT)
            server->events.left(server->events.context, &packet->left, &peer);
        else
            server->events.add(server->events.context, &packet->counts, &peer);
    }
    if (peer.process_fd >= 0)
        close(peer.process_fd);
    record_server_answer(client->source.fd, reason, -1);
}

// False: it has said nothing yet. Else it is answered, and forgotten.
static bool take_packet(struct server_client *client)
{
    const struct loop_source *source = &client->source;
    union packet packet;
    int descriptor;
    ssize_t size = receive(source->fd, &packet, &descriptor);
    if (size < 0)
        return false;
    bool is_ours = has_token(client->server, &packet, (size_t)size);
    bool is_strange = is_ours && packet.head.version != AGENT_VERSION;
    if (!is_ours || is_strange || !is_sound(&packet, (size_t)size)) {
        if (descriptor >= 0)
            close(descriptor);
        client->server->strange += is_strange;
        client->server->refused += size > 0 && !is_strange;
        if (size > 0)
            record_server_answer(source->fd, is_strange ? another_version : "not a packet of this recorder's agents",
                                 -1);
    } else if (packet.head.type == AGENT_CHANNEL_CALLS && !client->server->events.calls) {
        if (descriptor >= 0)
            close(descriptor);
        record_server_answer(source->fd, "no calls are traced", -1);
    } else if (packet.head.type == AGENT_CHANNEL_TABLE || packet.head.type == AGENT_CHANNEL_CALLS) {
        take_lasting(client, &packet, descriptor);
    } else {
        take_others(client, &packet, descriptor);
    }
    forget(client);
    return true;
}

static void hear(struct loop_source *source)
{
    take_packet(source->context);
}

// There is no descriptor left: one is kept for this, so that no agent waits for an answer that cannot come, and we are
// not woken again and again.
static bool turn_away(struct server *server, int listening_fd)
{
    if (server->spare_fd < 0)
        return false;
    close(server->spare_fd);
    int fd = accept4(listening_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        record_server_answer(fd, "the recorder has too many descriptors open", -1);
        close(fd);
        server->turned_away++;
    }
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

// A new connection: what it says is mostly there already, and then nothing is to be watched.
static bool accept_one(struct server *server, int listening_fd)
{
    int fd = accept4(listening_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return turn_away(server, listening_fd);
    if (fd < 0)
        return false;
    struct server_client *client = server->client_count < CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
    if (!client) {
        server->refused++;
        close(fd);
        return true;
    }
    *client = (struct server_client){.source = {.fd = fd, .ready = hear, .context = client},
                                     .server = server,
                                     .next = server->clients,
                                     .since_ns = base_clock_now_ns()};
    server->clients = client;
    server->client_count++;
    if (take_packet(client))
        return true;
    client->is_watched = record_loop_add(server->loop, &client->source, NULL) == 0;
    if (!client->is_watched)
        forget(client);
    return true;
}

static void come(struct loop_source *source)
{
    enum { AT_ONCE = 64 };
    for (int i = 0; i < AT_ONCE && accept_one(source->context, source->fd); i++)
        continue;
}

void record_server_drain(struct server *server)
{
    enum { AT_MOST = 4096 }; // one that connects again and again is not waited for
    struct loop_source *sources[] = {&server->abstract, &server->in_directory};
    for (size_t i = 0; i < 2; i++)
        for (int n = 0; n < AT_MOST && sources[i]->fd >= 0 && accept_one(server, sources[i]->fd); n++)
            continue;
    for (struct server_client *client = server->clients, *next; client; client = next) {
        next = client->next;
        take_packet(client);
    }
}

void record_server_tidy(struct server *server, uint64_t now_ns)
{
    for (struct server_client *client = server->clients, *next; client; client = next) {
        next = client->next;
        if (now_ns - client->since_ns > patience_ns) {
            server->refused++;
            forget(client);
        }
    }
}

static int listen_on(struct server *server, struct loop_source *source, int fd, struct base_error *error)
{
    *source = (struct loop_source){.fd = fd, .ready = come, .context = server};
    return fd < 0 ? 0 : record_loop_add(server->loop, source, error);
}

int record_server_begin(struct server *server, struct loop *loop, const struct server_events *events, bool is_for_all,
                        struct base_error *error)
{
    *server = (struct server){.loop = loop, .events = *events, .abstract = {.fd = -1}, .in_directory = {.fd = -1}};
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (record_endpoint_token(server->token, error) != 0)
        return -1;
    server->is_for_all = record_endpoint_directory(server->directory, sizeof server->directory, is_for_all);
    int in_directory = -1;
    if (server->directory[0])
        in_directory = record_endpoint_in(server->directory, server->socket_path, sizeof server->socket_path, error);
    int abstract = record_endpoint_abstract(server->token, error);
    if (abstract < 0 && in_directory < 0) {
        record_server_end(server);
        return -1;
    }
    *error = (struct base_error){0}; // one of the two is enough
    if (listen_on(server, &server->abstract, abstract, error) != 0 ||
        listen_on(server, &server->in_directory, in_directory, error) != 0) {
        record_server_end(server);
        return -1;
    }
    return 0;
}

void record_server_stop(struct server *server)
{
    record_server_drain(server);
    record_loop_remove(server->loop, &server->abstract);
    record_loop_remove(server->loop, &server->in_directory);
    if (server->socket_path[0])
        unlink(server->socket_path);
    server->socket_path[0] = 0;
    if (server->spare_fd >= 0)
        close(server->spare_fd);
    server->spare_fd = -1;
}

void record_server_end(struct server *server)
{
    while (server->clients)
        forget(server->clients);
    record_server_stop(server);
    if (server->directory[0])
        record_endpoint_remove(server->directory);
}
