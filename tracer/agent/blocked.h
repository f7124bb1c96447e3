// SPDX-License-Identifier: Apache-2.0
// The interval around a call of libc's that may wait: one record with a stack at both edges, and no tick in between.
#ifndef TRACER_AGENT_BLOCKED_H
#define TRACER_AGENT_BLOCKED_H

#include "tracer/agent/agent.h"

#pragma GCC visibility push(hidden)

struct blocked {
    struct qut_scope scope;
    int saved_errno;
};

// Called by hooks directly: their own frame is the innermost one of the sample. Keep errno.
void blocked_begin(struct blocked *blocked, uint32_t kind); // enum qut_sample_kind
// `total`: QUT_TOTAL_BLOCKED_CALLS, QUT_TOTAL_LOCK_WAITS or QUT_TOTAL_NONE.
void blocked_end(struct blocked *blocked, uint32_t total, const struct qut_extra *extras, uint32_t extra_count);

#pragma GCC visibility pop

#endif
