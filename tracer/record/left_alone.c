// SPDX-License-Identifier: Apache-2.0
#include "tracer/record/left_alone.h"

static const struct {
    const char *name, *reason;
} words[AGENT_LEFT_COUNT] = {
    [AGENT_LEFT_NOT] = {"", ""},
    [AGENT_LEFT_STATIC] = {"not-followed-static", "static"},
    [AGENT_LEFT_MACHINE] = {"not-followed-machine", "of another machine or word size"},
    [AGENT_LEFT_LIBC] = {"not-followed-libc", "with another C library"},
    [AGENT_LEFT_PRIVILEGED] = {"not-followed-privileged", "with other rights"},
    [AGENT_LEFT_ENVIRONMENT] = {"not-followed-environment", "with an environment of their own"},
    [AGENT_LEFT_FILE_LIMIT] = {"not-followed-file-limit", "with a limit on the size of files"},
    [AGENT_LEFT_ONE_THREAD] = {"not-followed-one-thread", "that want no other thread"},
    [AGENT_LEFT_FAILED] = {"not-followed-failed", "in which the agent could not begin"},
};

const char *record_left_name(unsigned why)
{
    return words[why].name;
}

const char *record_left_reason(unsigned why)
{
    return words[why].reason;
}

uint64_t record_left_sum(const struct left_counts *counts)
{
    uint64_t sum = 0;
    for (unsigned why = 0; why < AGENT_LEFT_COUNT; why++)
        sum += counts->of[why];
    return sum;
}

void record_left_forget(struct left *left, uint32_t pid)
{
    for (size_t i = 0; i < LEFT_REMEMBERED; i++)
        if (left->last[i].pid == pid)
            left->last[i].pid = 0;
}

void record_left_take(struct left *left, const struct agent_channel_left *told, uint32_t pid)
{
    // A child is told of by its parent, with whose pid it has nothing to do; 0: not to be known.
    for (size_t i = 0; i < LEFT_REMEMBERED && pid && !told->is_child; i++)
        if (left->last[i].pid == pid) {
            left->counts.of[left->last[i].why]--;
            left->last[i].pid = 0;
        }
    if (told->is_taken)
        return;
    left->counts.of[told->why]++;
    if (told->is_child || !pid)
        return;
    left->last[left->next].pid = pid;
    left->last[left->next].why = told->why;
    left->next = (left->next + 1) % LEFT_REMEMBERED;
}
