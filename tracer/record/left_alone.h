// SPDX-License-Identifier: Apache-2.0
// Processes that are left alone, by reason (enum agent_left).
#ifndef TRACER_RECORD_LEFT_ALONE_H
#define TRACER_RECORD_LEFT_ALONE_H

#include <stddef.h>
#include <stdint.h>

#include "formats/qut_agent.h"

struct left_counts {
    uint64_t of[AGENT_LEFT_COUNT]; // [AGENT_LEFT_NOT] is 0
};

// "memfd_create: Operation not permitted", of a call that the agent was denied; its number is the machine's own.
void record_left_call(uint16_t number, int error, char *text, size_t size);
const char *record_left_name(unsigned why);   // of a note: "not-followed-static"
const char *record_left_reason(unsigned why); // for people: "static"
uint64_t record_left_sum(const struct left_counts *counts);

// A process may be told of several times, as it becomes other programs: it counts once, for the last reason.
enum { LEFT_REMEMBERED = 256 };
struct left {
    struct left_counts counts;
    struct {
        uint32_t pid, why;
    } last[LEFT_REMEMBERED];
    size_t next;
    uint16_t failed_call, failed_error; // of the first AGENT_LEFT_FAILED that knew; else 0
};
void record_left_take(struct left *left, const struct agent_channel_left *told, uint32_t pid);
// Packets that agents left as files in the recorder's directory, since they may not connect. Each is taken away.
// `left` NULL: nothing else.
void record_left_read_notes(const char *directory, const char *token, struct left *left);
void record_left_forget(struct left *left, uint32_t pid); // another process has that number now

#endif
