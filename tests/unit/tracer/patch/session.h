// SPDX-License-Identifier: Apache-2.0
// A program that runs, opened to be patched; and sites in it, with thunks that count and go on in the copy.
#ifndef TESTS_UNIT_TRACER_PATCH_SESSION_H
#define TESTS_UNIT_TRACER_PATCH_SESSION_H

#include "formats/qut_calls.h"
#include "tests/unit/tracer/patch/subject.h"
#include "tracer/patch/patch.h"

struct session {
    pid_t pid;
    struct subject_state *state;
    struct patch_process *process;
    uint64_t next_thunk;
};

// All fail the test where they cannot.
struct session session_begin(const char *program, const char *mode, const char *threads);
void session_end(struct session *session); // asks the program to end well
void session_await(const struct session *session, const _Atomic uint64_t *number, uint64_t least);
// Until a thread sleeps in a system call.
void session_await_sleep(const struct session *session);

void session_each_goes_on(const struct session *session, unsigned threads); // some calls more
void session_command(const struct session *session, enum subject_command what);

// Instructions' ends; the thunk is written. Its counter is at state->counters.
struct patch_site session_site(struct session *session, uint64_t address, const uint8_t *ends, unsigned count);
// The same, with a thunk that goes to the agent's stub.
struct patch_site session_traced_site(struct session *session, uint64_t address, const uint8_t *ends, unsigned count,
                                      uint32_t id);
// Maps the agent's memory and tells the patcher of its stub.
const struct qut_calls_header *session_map_calls(struct session *session);
// Enters and exits that were written or lost.
void session_count_calls(const struct qut_calls_header *header, uint64_t *enters, uint64_t *exits);
uint64_t session_read_u64(const struct session *session, uint64_t address);

void session_put_in(struct session *session, struct patch_site *sites, size_t count, struct patch_figures *figures);
void session_take_out(struct session *session, struct patch_figures *figures);

#endif
