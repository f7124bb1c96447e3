// SPDX-License-Identifier: Apache-2.0
// Waits for many descriptors in one thread, and calls who asked for each.
#ifndef TRACER_RECORD_LOOP_H
#define TRACER_RECORD_LOOP_H

#include <stdint.h>

#include "qutc/base/error.h"

struct loop_source {
    int fd; // -1: is not waited for
    void (*ready)(struct loop_source *source);
    void *context;
};

struct loop {
    int epoll_fd;
};

int loop_begin(struct loop *loop, struct qutc_error *error);
void loop_end(struct loop *loop);

// From now on source->ready is called whenever the descriptor can be read. *source stays where it is until loop_remove.
int loop_add(struct loop *loop, struct loop_source *source, struct qutc_error *error);
// No longer; the descriptor is closed, and source->fd is -1. May be called by any `ready`; sources are freed by
// loop_wait's caller only, or by their own `ready`.
void loop_remove(struct loop *loop, struct loop_source *source);

// Calls what is ready, one source at a time; waits at most timeout_ms for the first (-1: as long as it takes).
void loop_wait(struct loop *loop, int timeout_ms);

// An eventfd that can be read once it was told to, for ever. -1: there is none to be had.
int loop_event(void);
void loop_event_set(int fd);

uint64_t loop_now_ns(void); // CLOCK_MONOTONIC

#endif
