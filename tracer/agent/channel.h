// SPDX-License-Identifier: Apache-2.0
// What the agent and the recorder say to each other: packets of a Unix socket (SOCK_SEQPACKET), one connection for each
// exchange, so that no descriptor stays open in the watched program. Pure data, the same in 32 and 64 bits. The
// recorder takes nothing from whoever does not know the token, and trusts no length.
//
//   HELLO   agent → recorder, with the segment's descriptor; answered by OK: a process has begun, or goes on as a fork
//   TABLE   agent → recorder, perhaps with a descriptor of the image's bytes; answered by OK with a descriptor of the
//           table, or NO with a reason
//   ADD     agent → recorder: counts that the segment does not have (struct agent_channel_counts)
//   LEFT    agent → recorder: a process that will not say HELLO, and why; or that it was not begun after all
#ifndef TRACER_AGENT_CHANNEL_H
#define TRACER_AGENT_CHANNEL_H

#include <assert.h>
#include <stdint.h>

#include "tracer/agent/settings.h"

enum agent_channel_type {
    AGENT_CHANNEL_HELLO = 1,
    AGENT_CHANNEL_TABLE,
    AGENT_CHANNEL_ADD,
    AGENT_CHANNEL_LEFT,
    AGENT_CHANNEL_OK = 16,
    AGENT_CHANNEL_NO,
};

// Why a process is left alone (tracer/record/left.c has words for it).
enum agent_left {
    AGENT_LEFT_NOT,
    AGENT_LEFT_STATIC,      // no loader: nothing is preloaded
    AGENT_LEFT_MACHINE,     // of another machine, or of 32 bits where we have 64
    AGENT_LEFT_LIBC,        // another C library's loader
    AGENT_LEFT_PRIVILEGED,  // its loader trusts no environment
    AGENT_LEFT_ENVIRONMENT, // without what the recorder put there
    AGENT_LEFT_FILE_LIMIT,  // ulimit -f is below the segment
    AGENT_LEFT_ONE_THREAD,  // it wants to be its only thread
    AGENT_LEFT_FAILED,      // the agent is in it, and cannot work
    AGENT_LEFT_COUNT,
};

enum agent_channel_begin { AGENT_BEGAN_BY_EXEC, AGENT_BEGAN_BY_FORK, AGENT_BEGAN_BY_INJECTION };

struct agent_channel_head {
    uint32_t version; // AGENT_VERSION
    uint32_t type;
    char token[40];
};

struct agent_channel_hello {
    struct agent_channel_head head;
    uint32_t pid, parent_pid; // as the agent sees them: the socket's credentials say what they are to the recorder
    uint32_t begin;           // enum agent_channel_begin
    uint32_t trigger;         // enum qut_trigger: what it became
    int32_t trigger_error;    // -errno of why there are no ticks; 0: there are
    uint32_t zero;
};

struct agent_channel_table {
    struct agent_channel_head head;
    uint64_t offset_bytes, memory_bytes; // memory_bytes 0: there is no descriptor of bytes
    uint32_t flags;                      // enum qut_compile_flag
    uint32_t build_id_bytes;
    uint8_t build_id[64];
    char path[4096];
};

struct agent_channel_counts {
    struct agent_channel_head head;
    uint64_t due, taken, late, kernel, lost, strays, threads_failed, eintr_seen;
    uint64_t locks_untold; // waits of which the table of locks had no room to say who held, or who woke
    uint64_t zero[7];
};

struct agent_channel_left {
    struct agent_channel_head head;
    uint32_t why;      // enum agent_left
    uint32_t is_taken; // back: exec failed
    uint32_t is_child; // it is no image of who tells, but a child that was begun with it
    uint32_t zero;
};

struct agent_channel_answer {
    uint32_t version, type;
    char reason[128];
};

static_assert(sizeof(struct agent_channel_head) == 48, "shared");
static_assert(sizeof(struct agent_channel_hello) == 72, "shared");
static_assert(sizeof(struct agent_channel_table) == 48 + 24 + 64 + 4096, "shared");
static_assert(sizeof(struct agent_channel_counts) == 48 + 16 * 8, "shared");
static_assert(sizeof(struct agent_channel_left) == 64, "shared");
static_assert(sizeof(struct agent_channel_answer) == 136, "shared");

#endif
