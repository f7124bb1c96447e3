// SPDX-License-Identifier: Apache-2.0
// Changes the code of a process that runs, and puts it back: entries of functions become jumps. Of what is written and
// why nothing is known here: a site says which bytes stand where, which shall, and where each instruction that they
// replace has its copy. All threads stand still meanwhile; one that is between the instructions goes on in the copy.
//
// If this process dies at any moment, the kernel lets go of everything, and the other one runs on: threads are moved
// to the copy before the bytes change, and away from it after they are back.
//
// Every function here: [not signal-safe, blocks, allocates; a patch_process is used by one thread, the one that
// traces.]
#ifndef TRACER_PATCH_PATCH_H
#define TRACER_PATCH_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <qut/compiler.h>

#include "base/error.h"

enum { PATCH_BYTES_MAX = 24, PATCH_BOUNDARIES_MAX = 16 };

enum patch_state {
    PATCH_OUT = 0, // the code is as it was
    PATCH_IN,
    // It was not put in.
    PATCH_ANOTHERS,   // other bytes stand there than the file has: another tool's
    PATCH_NOT_MAPPED, // nothing is mapped there, or no code
    PATCH_OVERLAPS,   // with one that is in
    PATCH_OCCUPIED,   // a thread that cannot be moved is between the instructions
    // It was put in, and is no longer.
    PATCH_OVERWRITTEN, // another tool wrote over ours: left as it is
    PATCH_UNLOADED,    // the module has gone
    PATCH_STATES
};

// "another tool has patched it", ... Static text.
const char *patch_state_text(enum patch_state state);

// An instruction of those that make room, and where its copy is. The last one may be what follows them. They may reach
// farther than the bytes that change.
struct patch_boundary {
    uint8_t offset;       // from the site's address
    uint8_t moved_offset; // from the copy
};

struct patch_site {
    uint64_t address; // in the process, of the first byte that changes
    uint64_t moved;   // of the copy
    // What the site jumps to, copy included; 0, 0: another site answers for it. From the start to restart_end nothing
    // has happened that is not undone by beginning the function anew.
    uint64_t thunk, restart_end, thunk_end;
    uint64_t function, function_end;
    uint32_t id;            // the caller's own
    uint8_t size;           // of bytes that change
    uint8_t boundary_count; // ascending, the first is {0, 0}
    enum patch_state state; // answered
    uint32_t partner;       // 1 + the index of a site without which this one may not be in, of the same call; 0: none
    struct patch_boundary boundaries[PATCH_BOUNDARIES_MAX];
    uint8_t original[PATCH_BYTES_MAX], patched[PATCH_BYTES_MAX];
};

struct patch_figures {
    unsigned put_in, taken_out; // sites
    unsigned refused, lost;     // sites that did not go in; that were no longer in
    unsigned threads;           // in the process
    unsigned asleep;            // of them, left in a system call (an ioctl) that a stop would have ended
    unsigned moved_threads;     // that stood between instructions
    unsigned moved_handlers;    // what signal handlers will return to, likewise
    unsigned deep_stacks;       // whose outer part was not searched for such handlers
    unsigned restored_returns;  // return addresses that were put back
    unsigned in_thunks;         // threads, and handlers' returns, that are in a thunk or the stub when all is done
    unsigned attempts;          // stops: more than one where a child of vfork used the memory
    uint64_t stopped_ns;        // how long the process stood still, the longest
    uint64_t moved_bytes;       // read and written while it did
};

// Code of ours that is not a site's: the enter and exit stub.
struct patch_stub {
    uint64_t start, end;       // of all code
    uint64_t exit_return;      // what stands in return slots; 0: nothing does
    uint64_t exit_end;         // from exit_return to there: a thread is leaving its function
    uint64_t shadow_distance;  // the true return address of a slot is at slot - this
    uint64_t words_distance;   // the event of its exit is at slot - this
    uint64_t granules_address; // formats/qut_calls.h; 0: calls that are running are left alone
};

struct patch_process;

// Opens a process. Nothing is stopped. NULL with *error filled: no such process, no permission.
struct patch_process *patch_open(pid_t pid, struct base_error *error);
// Frees. What is in stays in.
void patch_close(struct patch_process *process);

// Tells where the stub is; needed for what is about return addresses.
void patch_set_stub(struct patch_process *process, const struct patch_stub *stub);

// Writes bytes that nobody uses yet: thunks. 0 or -1.
int patch_write(struct patch_process *process, uint64_t address, const void *bytes, size_t size,
                struct base_error *error);

// Puts sites in, all in one stop. Each site's state is set; one that cannot be put in leaves the others alone. The
// thunks must be in place. -1: nothing was changed, and why.
int patch_put_in(struct patch_process *process, struct patch_site *sites, size_t count, struct patch_figures *figures,
                 struct base_error *error);

// Takes out what is in, in one stop: those whose `address` is listed, or all (addresses NULL), with which return
// addresses are put back as well. Threads that are in thunks are moved back; where some are in the stub, they are given
// some moments to leave it, in further stops. 0, and if `in_thunks` is 0 nothing leads to thunks or stub any more; -1:
// nothing was changed, and why.
int patch_take_out(struct patch_process *process, const uint64_t *addresses, size_t count,
                   struct patch_figures *figures, struct base_error *error);

// Calls that were running when their functions were put in.
struct patch_running {
    struct patch_running_call {
        pid_t tid;
        uint32_t id; // the site's
        uint64_t slot;
    } * calls; // of one thread together, the outermost first
    size_t count;
    struct patch_stack {
        uint64_t begin, end;
    } * missing; // parts of stacks whose shadow must be mapped before the calls there can be taken
    size_t missing_count;
    unsigned walks; // threads whose stacks had to be walked
};

// Tables as in struct qut_target_options, made and used by patch_take_running alone. Without them calls that are
// running are not found.
int patch_allow_walks(struct patch_process *process, const char *cache_directory, qut_compile_fn compile,
                      void *compile_context, struct base_error *error);

// Exchanges return addresses of calls of what is in that have not been entered by way of thunks: their exits will be
// told, and `running` lists them. Again after what was missing has been mapped: those that were taken are not taken
// twice. 0; -1: not all was found. patch_free_running in both cases.
int patch_take_running(struct patch_process *process, struct patch_running *running, struct patch_figures *figures,
                       struct base_error *error);
void patch_free_running(struct patch_running *running);

// ---- children of fork

// Lets go of the process. What was in is known still, for those who inherit from it.
void patch_let_go(struct patch_process *process);
// The process is a copy of `parent`'s, as fork makes one, at some moment since that was opened: what is in there, or
// was, and stands in this one's code, is in here as well. 0 or -1.
int patch_inherit(struct patch_process *process, const struct patch_process *parent, struct base_error *error);
// What another process has put in, as it says: those whose bytes stand there are in. 0 or -1.
int patch_adopt(struct patch_process *process, const struct patch_site *sites, size_t count, struct base_error *error);
bool patch_is_in(const struct patch_process *process, uint64_t address);

// What is in, ascending by address; until the next change.
size_t patch_site_count(const struct patch_process *process);
const struct patch_site *patch_site(const struct patch_process *process, size_t index);

#endif
