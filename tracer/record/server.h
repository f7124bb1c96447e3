// SPDX-License-Identifier: Apache-2.0
// The recorder's side of formats/qut_agent.h: an agent that connects, shows the token and says something sensible is
// heard. Each connection is one packet and its answer. No agent can make it wait: what is not there yet is not read.
#ifndef TRACER_RECORD_SERVER_H
#define TRACER_RECORD_SERVER_H

#include <sys/types.h>

#include "formats/qut_agent.h"
#include "tracer/record/loop.h"

struct server_peer {
    uint32_t pid;   // as it is here; 0: it is in a pid namespace that is none of ours
    int process_fd; // of pidfd_open; -1: not to be had
    uint32_t uid;
};

// Descriptors, but for the peer's, are the callee's from then on; -1: the packet had none.
struct server_events {
    // Returns NULL: it is welcome; or why not.
    const char *(*hello)(void *context, const struct agent_channel_hello *hello, struct server_peer *peer,
                         int segment_fd);
    // Answers itself: with record_server_answer, and closes client_fd.
    void (*table)(void *context, const struct agent_channel_table *table, const struct server_peer *peer, int memory_fd,
                  int client_fd);
    void (*add)(void *context, const struct agent_channel_counts *counts, const struct server_peer *peer);
    void (*left)(void *context, const struct agent_channel_left *left, const struct server_peer *peer);
    // Keeps client_fd, over which it goes on to speak, or closes it. NULL: none are wanted.
    void (*calls)(void *context, const struct agent_channel_calls *calls, struct server_peer *peer, int memory_fd,
                  int client_fd);
    void *context;
};

struct server_client;
struct server {
    struct loop *loop;
    struct server_events events;
    char token[AGENT_TOKEN_BYTES];
    char directory[AGENT_PATH_BYTES - 16]; // ours, as long as this runs; "": there is none
    bool is_for_all;                       // and others may go through it
    char socket_path[AGENT_PATH_BYTES];    // "": only the abstract one
    struct loop_source abstract, in_directory;
    struct server_client *clients; // that have not said anything yet
    uint32_t client_count;
    int spare_fd;         // given up for a moment where there are no others; -1: there is none
    uint64_t turned_away; // for want of descriptors
    uint64_t refused;     // packets that made no sense, or without the token
    uint64_t strange;     // packets of agents of another version
};

// With `is_for_all` every user may reach, by name, what is put into the directory.
int record_server_begin(struct server *server, struct loop *loop, const struct server_events *events, bool is_for_all,
                        struct base_error *error);
void record_server_end(struct server *server);
// All that was sent is heard, and no agent can connect any more: agents see by that that the recording is over.
void record_server_stop(struct server *server);
// All that was sent until now is heard.
void record_server_drain(struct server *server);
// Connections that say nothing are given up after a while: called now and then.
void record_server_tidy(struct server *server, uint64_t now_ns);

// `reason` NULL: OK. `fd` -1: none goes with it.
void record_server_answer(int client_fd, const char *reason, int fd);

#endif
