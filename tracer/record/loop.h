// SPDX-License-Identifier: Apache-2.0
// Waits for many descriptors in one thread, and calls what was asked for with each.
#ifndef TRACER_RECORD_LOOP_H
#define TRACER_RECORD_LOOP_H

#include <stdint.h>

#include "base/error.h"

struct loop_source {
    int fd; // -1: is not waited for
    void (*ready)(struct loop_source *source);
    void *context;
};

struct loop {
    int epoll_fd;
};

int record_loop_begin(struct loop *loop, struct base_error *error);
void record_loop_end(struct loop *loop);

// From now on source->ready is called whenever the descriptor can be read. *source stays where it is until
// record_loop_remove.
int record_loop_add(struct loop *loop, struct loop_source *source, struct base_error *error);
// No longer; the descriptor is closed, and source->fd is -1. May be called by any `ready`; sources are freed by
// record_loop_wait's caller only, or by their own `ready`.
void record_loop_remove(struct loop *loop, struct loop_source *source);

// Calls what is ready, one source at a time; waits at most timeout_ms for the first (-1: as long as it takes).
void record_loop_wait(struct loop *loop, int timeout_ms);

// An eventfd that can be read once it was told to, for ever. -1: there is none to be had.
int record_loop_event(void);
void record_loop_event_set(int fd);

#endif
