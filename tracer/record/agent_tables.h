// SPDX-License-Identifier: Apache-2.0
// Tables that agents ask for: made beside the loop, kept as long as the recording goes on, so that many processes
// without a cache cost one compile for each module.
#ifndef TRACER_RECORD_AGENT_TABLES_H
#define TRACER_RECORD_AGENT_TABLES_H

#include <pthread.h>
#include <stdbool.h>

#include <qut/compiler.h>

#include "tracer/record/command_file.h"
#include "tracer/record/server.h"

enum { TABLES_WORKERS = 2, TABLES_KEPT_MAX = 1024, TABLES_WAITING_MAX = 256 };

struct tables_job {
    struct tables_job *next;
    struct agent_channel_table asked;
    uint32_t pid, uid;
    int memory_fd, client_fd; // client_fd -1: nobody waits for it
    bool looks;               // for what else the process will ask for; makes no table
};

struct tables_kept {
    uint32_t uid; // of the process that asked: what it says of its files holds for its user
    uint32_t build_id_bytes, flags;
    uint8_t build_id[64];
    int fd; // sealed memory
};

struct tables {
    char *cache_directory; // NULL: none
    qut_compile_fn take;   // as struct qutc_provide_options has it
    void *take_context;
    pthread_mutex_t mutex; // of all below
    pthread_cond_t changed;
    pthread_t workers[TABLES_WORKERS];
    uint32_t worker_count, busy_count;
    struct tables_job *first, *last;
    uint32_t waiting_count;
    struct tables_job *ahead;                 // nobody has asked for these yet; done where nothing else waits
    struct tables_job *doing[TABLES_WORKERS]; // NULL: that worker rests
    uint32_t looked_pid;                      // whose tables were looked for last
    bool is_ending;
    struct tables_kept *kept;
    uint32_t kept_count;
    uint64_t asked, made, refused; // refused: there is no table to be had
    uint64_t made_ahead;
};

// `take` may be called by several threads at the same time.
int record_tables_begin(struct tables *tables, const char *cache_directory, qut_compile_fn take, void *take_context,
                        struct base_error *error);
// Nothing more is made: what still waits is refused. Those who make tables end, while the caller goes on.
void record_tables_stop(struct tables *tables);
// The same, and waits for what is being made, but not for long. Returns false where something still is: then *tables
// must stay, as long as the process does.
bool record_tables_end(struct tables *tables);
// A program that begins now will ask for its table, which mostly is the largest. Where the cache has none, it is made
// from now on: until the agent in the program asks for it, and for others, a processor has nothing to do.
void record_tables_expect(struct tables *tables, const struct program *program);
// As struct server_events.table.
void record_tables_ask(struct tables *tables, const struct agent_channel_table *table, const struct server_peer *peer,
                       int memory_fd, int client_fd);

#endif
