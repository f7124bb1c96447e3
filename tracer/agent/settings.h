// SPDX-License-Identifier: Apache-2.0
// What `qut record` tells the agent in the environment (AGENT_VARIABLE), one text: "v=1;t=...;F=...;...". Written by
// tracer/record and tracer/inject, read by the agent. Needs nothing but libc, allocates nothing.
#ifndef TRACER_AGENT_SETTINGS_H
#define TRACER_AGENT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENT_VARIABLE "QUT_AGENT"
#define AGENT_FILE     "libqut-agent.so"

enum {
    AGENT_VERSION = 1,
    AGENT_PATH_BYTES = 512,
    AGENT_TOKEN_BYTES = 33, // 32 hexadecimal digits: who knows it was started by the recorder
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
    uint32_t trigger;               // enum qut_trigger
    int32_t signal_number;
    uint64_t period_ns, sync_interval_ns, fault_period, segment_bytes;
    uint64_t blocked_least_ns; // waits from this length on are always stored
    uint32_t sync;             // enum agent_sync
    uint32_t metric_mask;
    uint32_t group_count;
    bool follow;      // children are recorded
    bool keep_newest; // a flight recorder
    struct agent_group groups[AGENT_GROUPS_MAX];
};

// Bytes written without the NUL, or 0: `size` is too small, or a text has a ';' or a newline in it.
size_t agent_settings_write(const struct agent_settings *settings, char *text, size_t size);
// False: it is not such a text, or of another version. Keys it does not know are passed over.
bool agent_settings_read(struct agent_settings *settings, const char *text);

#endif
