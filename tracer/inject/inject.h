// SPDX-License-Identifier: Apache-2.0
// Loads the agent into a process that runs and was never prepared for it, and takes it out again.
//
// One thread that is at a harmless place (see victim.h) is stopped for a fraction of a millisecond, in which it starts
// a thread for us; then it goes on, and its system call with it, as if nothing had happened. The new thread loads the
// agent, so that whatever lock it waits for is let go by those who hold it. If we are killed at any moment, the stopped
// thread finds its own way back: the code that we let it run ends in a return from a signal, to where it was.
#ifndef TRACER_INJECT_INJECT_H
#define TRACER_INJECT_INJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <qut/compiler.h>

#include "base/error.h"
#include "tracer/inject/owner.h"

// What refusals end with: true of qut record.
#define INJECT_OR_OUTSIDE "; without --inject it is sampled from outside"

struct injection; // of one process, by one thread

struct inject_options {
    const char *agent_path;      // absolute. Where the process sees other files than we, its bytes are handed over
    const char *settings;        // as agent_settings_write writes them
    const char *cache_directory; // of tables; NULL: none
    qut_compile_fn compile;      // for tables that are not there; NULL: stacks that need them cannot be walked
    void *compile_context;
    uint64_t timeout_ns;      // for finding a thread, and once more for loading; 0: 10 s
    const char *begin_symbol; // of tests; NULL: "qut_agent_inject"
    const char *end_symbol;   // of tests; NULL: "qut_agent_eject"
};

// What it took: for the user, and for tests.
struct inject_figures {
    uint64_t stopped_ns;         // the longest that one thread stood still
    unsigned stops;              // of threads that were looked at or used
    unsigned rounds;             // until one was suitable
    uint64_t load_ns;            // from the new thread's start until the agent runs
    unsigned threads_unsuitable; // looked at in vain
};

// The agent is loaded, and runs as soon as this is back; meanwhile it asks the recorder for tables, so another thread
// must answer. NULL: *error says why, and nothing of ours is left in the process but what it says.
struct injection *inject(pid_t pid, const struct inject_options *options, struct base_error *error);
// Of a child of fork, which has what its parent has: to be taken out there as well. Before it is taken out of the
// parent. NULL: *error.
struct injection *inject_in_child(const struct injection *parent, pid_t child, const struct inject_options *options,
                                  struct base_error *error);
// What another tool has made.
enum inject_found_state {
    INJECT_FOUND_NONE,
    INJECT_FOUND_BUSY,  // the agent is being loaded, or taken out
    INJECT_FOUND_BEGUN, // likewise, but no thread does so: it is about to begin, or never will
    INJECT_FOUND_AGENT,
    INJECT_FOUND_EMPTY, // it is not there, or not any more
};
struct inject_found {
    enum inject_found_state state;
    struct inject_owner owner;
};
bool inject_look(pid_t pid, struct inject_found *found); // false: NONE
// Takes it over, to be removed; not where it is BUSY. NULL: *error.
struct injection *inject_take_over(pid_t pid, const struct inject_options *options, struct base_error *error);
// Stops the agent, unloads it, unmaps what was mapped. Frees the injection, also when it fails. A process that has
// ended is no failure: 0.
int inject_remove(struct injection *injection, struct base_error *error);
// The same without touching the process: its agent stops by itself when it gets no answer.
void inject_abandon(struct injection *injection);
// The agent stays, of one that needs no answers: it is nobody's from now on, so that no tool takes it for what a killed
// one has left. Frees the injection. -1: *error, and it still is ours.
int inject_leave(struct injection *injection, struct base_error *error);

void inject_get_figures(const struct injection *injection, struct inject_figures *figures);

#endif
