// SPDX-License-Identifier: Apache-2.0
// Talking to the recorder, as formats/qut_agent.h has it. Allocates nothing but the tables that it is given; waits a
// bounded time.
#ifndef AGENT_TELL_H
#define AGENT_TELL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <qut/compiler.h>

#include "formats/qut_agent.h"

#pragma GCC visibility push(hidden)

// What begins, with the segment's descriptor, which stays the caller's. 0: the recorder takes it; or -errno, or
// AGENT_TELL_NO: it says no. Not `wait`: its answer is not waited for. Signal-safe.
enum { AGENT_TELL_NO = -ECANCELED };
int agent_tell_hello(enum agent_channel_begin begin, uint32_t trigger, int trigger_error, int segment_fd, bool wait);

// What was counted since the last call, in this process. With `wait` until the recorder has it. Signal-safe.
void agent_tell_counts(bool wait);
// This process is a child of fork, and ends without ever having said hello; with its counts. Waits for nothing, where
// it need not. Signal-safe.
void agent_tell_never_begun(void);
// In a child after fork: its counts begin again.
void agent_tell_counts_after_fork(void);

// A process that is left alone: this one, as which exec begins, or a child; or no longer. Where the recorder cannot be
// connected to, a note is left beside its socket. Of AGENT_LEFT_FAILED `error` is -errno, else 0. Kept quiet by the
// caller.
enum agent_tell_left { AGENT_TELL_THIS, AGENT_TELL_CHILD, AGENT_TELL_TAKEN_BACK };
void agent_tell_left(enum agent_left why, enum agent_tell_left who, int error);

// Whether the recorder is there to be talked to. 0; -ECONNREFUSED: it is not; or -errno: it cannot be said, since we
// may not connect.
int agent_tell_reach(void);
// The same, where nothing but its absence is of interest.
bool agent_tell_is_heard(void);

// A qut_compile_fn: asks the recorder.
int agent_tell_table(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                     char *reason, size_t reason_size);

// ---- of which all of that is made

// 0 or more: connected to the recorder, with timeouts; or -errno.
int agent_tell_connect(int patience_s);
void agent_tell_fill_head(struct agent_channel_head *head, enum agent_channel_type type);
// With a descriptor, if that is not -1. 0 or -errno.
int agent_tell_send(int to_fd, const void *packet, size_t size, int passed_fd);
// How many bytes came, or -errno. *passed_fd: one that came with them, or -1.
ssize_t agent_tell_receive(int from_fd, void *packet, size_t size, int flags, int *passed_fd);
// The system call that `error` is of, as far as that is known; else 0.
uint16_t agent_tell_failed_call(int error);

#pragma GCC visibility pop

#endif
