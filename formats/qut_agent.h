// SPDX-License-Identifier: Apache-2.0
// What the agent and the recorder say to each other, version 1. Specification: formats/qut_agent.md.
//
//   settings   recorder → agent: one text in the environment, "v=1;t=...;F=...;..."; or a folder, where there is no
//              recorder: "/run/qut"
//   packets    agent ⇄ recorder: pure data, over a Unix socket, the same in 32 and 64 bits
#ifndef QUT_FORMATS_QUT_AGENT_H
#define QUT_FORMATS_QUT_AGENT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- settings

#define AGENT_VARIABLE "QUT_AGENT"
#define AGENT_FILE     "libqut-agent.so"
// Beside the socket: "left-PID", a packet of an agent that may not connect.
#define AGENT_NOTE "left-"

enum {
    AGENT_VERSION = 1,
    AGENT_PATH_BYTES = 512,
    AGENT_TOKEN_BYTES = 33, // 32 hexadecimal digits: only what the recorder started knows them
    AGENT_GROUPS_MAX = 16,
    AGENT_PATTERN_BYTES = 32,
    AGENT_SETTINGS_BYTES = 4096, // of the text, at most
};

enum agent_sync { // what is watched at sync points
    AGENT_SYNC_ALLOCATE = 1,
    AGENT_SYNC_LOCK = 2,   // mutexes, rwlocks, conditions, semaphores, barriers, joins
    AGENT_SYNC_IO = 4,     // read, write, send, receive, connect, accept, fsync
    AGENT_SYNC_POLL = 8,   // poll, select, epoll
    AGENT_SYNC_SLEEP = 16, // sleep, nanosleep, wait for children
    AGENT_SYNC_LOAD = 32,  // dlopen, dlclose
    AGENT_SYNC_THREAD = 64,
    AGENT_SYNC_MAP = 128, // mmap, munmap, brk
    AGENT_SYNC_ALL = 255,
};

struct agent_group {
    char pattern[AGENT_PATTERN_BYTES]; // as struct qut_sampling_group; "main": the main thread
    uint64_t period_ns;
};

struct agent_settings {
    char token[AGENT_TOKEN_BYTES];
    char socket[AGENT_PATH_BYTES];  // "@name": an abstract one; tried first is always "@qut-TOKEN"
    char cache[AGENT_PATH_BYTES];   // directory of tables; "": none
    char preload[AGENT_PATH_BYTES]; // LD_PRELOAD as it was before us; "": it was not set
    char folder[AGENT_PATH_BYTES];  // segments are made there, and no recorder is told anything; "": one is
    uint32_t trigger;               // enum qut_trigger
    int32_t signal_number;
    uint64_t period_ns, sync_interval_ns, fault_period, segment_bytes;
    uint64_t blocked_least_ns; // waits from this length on are always stored
    uint32_t sync;             // enum agent_sync
    uint32_t metric_mask;
    uint32_t group_count;
    uint64_t
        call_ring_bytes; // calls are traced (qut_calls.h), with rings of this size for each thread; 0: they are not
    bool follow;         // children are recorded
    bool keep_newest;    // a flight recorder
    bool traps;          // functions may be entered by traps: SIGTRAP is kept for them
    struct agent_group groups[AGENT_GROUPS_MAX];
};

// What a text that begins with a folder stands for.
#define AGENT_FOLDER_CACHE "/var/cache/qut/tables"
// Beside the segments: the monitor's word on how often is enough, a decimal number of halvings.
#define AGENT_FOLDER_RATE "rate"
enum { AGENT_FOLDER_HALVINGS_MAX = 10 };
enum { AGENT_FOLDER_HZ = 19, AGENT_FOLDER_SEGMENT_BYTES = 2 << 20 };

// Bytes written without the NUL, or 0: `size` is too small, or a text has a ';' or a newline in it.
size_t agent_settings_write(const struct agent_settings *settings, char *text, size_t size);
// 0; -EINVAL: it is not such a text; -EPROTONOSUPPORT: it is of another version, and only token and socket are filled
// in. Keys it does not know are passed over.
int agent_settings_read(struct agent_settings *settings, const char *text);

// ---- packets

enum agent_channel_type {
    AGENT_CHANNEL_HELLO = 1,
    AGENT_CHANNEL_TABLE,
    AGENT_CHANNEL_ADD,
    AGENT_CHANNEL_LEFT,
    AGENT_CHANNEL_CALLS,  // agent → tracer, and then on the same connection
    AGENT_CHANNEL_MAP,    // tracer → agent
    AGENT_CHANNEL_UNMAP,  // tracer → agent
    AGENT_CHANNEL_SHADOW, // tracer → agent
    AGENT_CHANNEL_MAPPED, // agent → tracer: what became of each of these
    AGENT_CHANNEL_TRAPS,  // tracer → agent
    AGENT_CHANNEL_PROBE,  // tracer → agent, with a descriptor
    AGENT_CHANNEL_OK = 16,
    AGENT_CHANNEL_NO,
};

// Why a process is left alone. Told by packets: append only (words:tracer/record/left_alone.c).
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
    AGENT_LEFT_UNREADABLE,  // it may not read the agent's file
    AGENT_LEFT_COUNT,
};

enum agent_channel_begin { AGENT_BEGAN_BY_EXEC, AGENT_BEGAN_BY_FORK, AGENT_BEGAN_BY_INJECTION };

// The same in every version, as is the beginning of struct agent_channel_answer.
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
    uint16_t failed_call;     // the system call that trigger_error is of, by its number; 0: none, or not known
    uint16_t tick_signal;     // 0: there are no ticks
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
    uint64_t locks_untold;                    // waits whose holder or waker the table of locks had no room for
    uint64_t asked;                           // ticks that would have been due at the pace that was asked for
    uint64_t python_stacks, python_uncertain; // samples, as python_sums() has them
    uint64_t never_begun;                     // 1: of a child of fork that ends now, and has said no hello
    uint64_t zero[3];
};

struct agent_channel_left {
    struct agent_channel_head head;
    uint32_t why;                       // enum agent_left
    uint32_t is_taken;                  // back: exec failed
    uint32_t is_child;                  // not the sender's next image, but a child that was begun with it
    uint16_t failed_call, failed_error; // of AGENT_LEFT_FAILED: the system call, by its number, and its errno; or 0
};

// Calls can be traced: with the descriptor of the memory (qut_calls.h). Or they cannot: `error` says why.
struct agent_channel_calls {
    struct agent_channel_head head;
    uint32_t pid;               // as the agent sees it
    uint32_t begin;             // enum agent_channel_begin
    int32_t error;              // 0, or -errno
    uint16_t failed_call, zero; // the system call that `error` is of, by its number; 0: none, or not known
    uint64_t memory_bytes;
};

struct agent_channel_map { // MAP, UNMAP, SHADOW, TRAPS, PROBE
    struct agent_channel_head head;
    // MAP: the code that must reach all of it; UNMAP: what was mapped; SHADOW: of a stack; TRAPS: of a table;
    // PROBE: of the process's masks and callers in the memory that comes with it (qut_probe_live.h)
    uint64_t begin, end;
    uint64_t size_bytes; // of MAP; a multiple of the page size
    uint64_t number;     // comes back with the answer
};

struct agent_channel_mapped {
    struct agent_channel_head head;
    uint64_t address; // of MAP; else 0
    uint64_t number;
    int32_t error; // 0, or -errno
    uint32_t zero;
};

struct agent_channel_answer {
    uint32_t version, type;
    char reason[128];
};

static_assert(sizeof(struct agent_channel_head) == 48, "shared");
static_assert(offsetof(struct agent_channel_head, type) == 4, "shared");
static_assert(offsetof(struct agent_channel_head, token) == 8, "shared");
static_assert(AGENT_TOKEN_BYTES <= sizeof((struct agent_channel_head *)0)->token, "with its NUL");
static_assert(sizeof(struct agent_channel_hello) == 72, "shared");
static_assert(offsetof(struct agent_channel_hello, pid) == 48, "shared");
static_assert(offsetof(struct agent_channel_hello, begin) == 56, "shared");
static_assert(offsetof(struct agent_channel_hello, trigger_error) == 64, "shared");
static_assert(offsetof(struct agent_channel_hello, tick_signal) == 70, "shared");
static_assert(sizeof(struct agent_channel_table) == 48 + 24 + 64 + 4096, "shared");
static_assert(offsetof(struct agent_channel_table, offset_bytes) == 48, "shared");
static_assert(offsetof(struct agent_channel_table, flags) == 64, "shared");
static_assert(offsetof(struct agent_channel_table, build_id) == 72, "shared");
static_assert(offsetof(struct agent_channel_table, path) == 136, "shared");
static_assert(sizeof(struct agent_channel_counts) == 48 + 16 * 8, "shared");
static_assert(offsetof(struct agent_channel_counts, due) == 48, "shared");
static_assert(offsetof(struct agent_channel_counts, locks_untold) == 112, "shared");
static_assert(offsetof(struct agent_channel_counts, asked) == 120, "shared");
static_assert(offsetof(struct agent_channel_counts, python_stacks) == 128, "shared");
static_assert(offsetof(struct agent_channel_counts, never_begun) == 144, "shared");
static_assert(sizeof(struct agent_channel_left) == 64, "shared");
static_assert(offsetof(struct agent_channel_left, why) == 48, "shared");
static_assert(offsetof(struct agent_channel_left, is_child) == 56, "shared");
static_assert(offsetof(struct agent_channel_left, failed_error) == 62, "shared");
static_assert(sizeof(struct agent_channel_calls) == 72, "shared");
static_assert(offsetof(struct agent_channel_calls, error) == 56, "shared");
static_assert(offsetof(struct agent_channel_calls, memory_bytes) == 64, "shared");
static_assert(sizeof(struct agent_channel_map) == 80, "shared");
static_assert(offsetof(struct agent_channel_map, begin) == 48, "shared");
static_assert(sizeof(struct agent_channel_mapped) == 72, "shared");
static_assert(offsetof(struct agent_channel_mapped, address) == 48, "shared");
static_assert(offsetof(struct agent_channel_mapped, error) == 64, "shared");
static_assert(sizeof(struct agent_channel_answer) == 136, "shared");
static_assert(offsetof(struct agent_channel_answer, reason) == 8, "shared");

#endif
