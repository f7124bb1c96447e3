// SPDX-License-Identifier: Apache-2.0
// For machines without a stub.
#include <errno.h>

#include "agent/calls/calls.h"

int calls_begin(const struct calls_options *options, uint64_t *memory_bytes)
{
    (void)options;
    (void)memory_bytes;
    return -ENOSYS;
}

void calls_after_fork(void) {}

int calls_end(void)
{
    return 0;
}

int calls_shadow(uint64_t begin, uint64_t end)
{
    (void)begin;
    (void)end;
    return -ENOSYS;
}

void calls_look_for_ended(void) {}

void calls_thread_ends(void) {}

void calls_thread_is(uint32_t tid)
{
    (void)tid;
}

void calls_thread_is_agents(void) {}

struct calls_own *calls_work_begins(void)
{
    return NULL;
}

void calls_work_ends(struct calls_own *kept)
{
    (void)kept;
}

void calls_caller_context(const struct calls_caller *caller, struct calls_context *context)
{
    (void)caller;
    *context = (struct calls_context){{0}};
}

void calls_probe_stacks(calls_take_stack *take)
{
    (void)take;
}

int calls_probe_begin(int fd, uint64_t masks_begin, uint64_t masks_end)
{
    (void)fd;
    (void)masks_begin;
    (void)masks_end;
    return -ENOSYS;
}

bool calls_probe_is_sound(const void *image, size_t bytes)
{
    (void)image;
    (void)bytes;
    return false;
}

void calls_probe_look(void) {}

void calls_probe_look_for_ended(void) {}

void calls_probe_leave(void) {}

bool calls_probe_is_on(void)
{
    return false;
}
