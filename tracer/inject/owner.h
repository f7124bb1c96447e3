// SPDX-License-Identifier: Apache-2.0
// Who has put something into a process: a tool, which may have been killed since. A number alone does not tell, since
// numbers are given again.
#ifndef TRACER_INJECT_OWNER_H
#define TRACER_INJECT_OWNER_H

#include <stdbool.h>
#include <stdint.h>

struct inject_owner {
    uint32_t pid;           // in its own namespace; 0: it could not be told, and counts as living
    uint32_t pid_namespace; // that namespace
    uint64_t start_ticks;   // /proc/PID/stat's starttime
};

struct inject_owner inject_owner_self(void);
bool inject_owner_is(const struct inject_owner *owner, const struct inject_owner *other);
// Of another namespace nothing can be said: no.
bool inject_owner_is_gone(const struct inject_owner *owner);

#endif
