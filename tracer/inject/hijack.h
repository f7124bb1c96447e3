// SPDX-License-Identifier: Apache-2.0
// Runs code of ours in a stopped thread, and puts the thread back to where it was. Of one architecture only: others
// have hijack_none.c.
//
// At every moment at which the thread could be let go without us (the kernel does it when we die), what it runs ends
// in rt_sigreturn with its own registers, floating point included: a signal frame that we wrote lies where the code
// returns to. While all goes well that frame is never used: the registers are put back from outside, since only then
// the kernel restarts the thread's system call with what was left of its timeout.
#ifndef TRACER_INJECT_HIJACK_H
#define TRACER_INJECT_HIJACK_H

#include <stdbool.h>

#include "tracer/inject/code_pages.h"
#include "tracer/inject/owner.h"
#include "tracer/inject/target_program.h"

enum {
    HIJACK_BLOCK_BYTES = 384 << 10, // of what is mapped
    HIJACK_PATH_BYTES = 4096,
    HIJACK_SETTINGS_BYTES = 4096,
    HIJACK_TEXT_BYTES = 256,
};

enum hijack_action { HIJACK_LOAD = 0, HIJACK_UNLOAD };

// What is said to the new thread, and what it answers.
struct hijack_job {
    enum hijack_action action;
    const char *path, *symbol, *settings;
    int file; // with bytes that stand for the path, which the process cannot see; -1: it can
    uint64_t handle;
    uint64_t arena_offset, arena; // see arena.h; 0: none
};

enum hijack_stage { HIJACK_WELL = 0, HIJACK_AT_OPEN, HIJACK_AT_SYMBOL, HIJACK_AT_AGENT, HIJACK_AT_CLOSE };

struct inject_hijack_answer {
    bool done;
    uint32_t stage; // enum hijack_stage: where it failed
    uint32_t tid;   // of the new thread, as the process sees it; 0: it has not begun
    int32_t result; // of the agent's function
    uint64_t handle;
    char text[HIJACK_TEXT_BYTES]; // dlerror's
};

struct hijack; // of one stop

// NULL: this machine can, and so can the process. Else why not.
const char *inject_hijack_refusal(const struct inject_program *program);
// Fills call_gadget and return_gadget. False: libc has none.
bool inject_hijack_find_gadgets(struct inject_program *program);

enum hijack_place {
    HIJACK_NOWHERE = 0, // not a place to begin from
    HIJACK_WAITS,       // slept, or came back from, a call that no allocator makes
    HIJACK_AWAITS,      // ... waits for another thread to say something: no lock of libc's does it so
    HIJACK_PERHAPS,     // ... that some allocator could make
    HIJACK_RUNS,        // was interrupted in user mode
};
// Has the thread allocate 16 bytes, which stay: then it has an arena. Of a program that has allocated nothing yet that
// is the main one. 0 or -1.
int inject_hijack_allocate(struct hijack *hijack, uint64_t block, struct base_error *error);

// Before the thread is asked to stop: what it sleeps in, as /proc words it; NOWHERE: leave it alone.
enum hijack_place inject_hijack_place_asleep(pid_t pid, pid_t tid);
// Once it is stopped.
enum hijack_place inject_hijack_place_stopped(pid_t tid);

// A call that was made anew once already has lost its number (restart_syscall); mostly it was moved to eax right
// before.
long inject_hijack_call_number(pid_t pid, long number, uint64_t pc);

// Of one that slept when it was stopped: epoll_wait and the like return EINTR because of that, having done nothing, and
// the kernel does not make them anew. So it is done here, with all of their timeout; but where a signal waits to be
// handled it was that one.
void inject_hijack_settle(pid_t pid, pid_t tid);

// The thread is stopped and settled, and this one traces it. NULL with *error filled: it is as before.
struct hijack *inject_hijack_begin(const struct inject_program *program, pid_t tid, struct base_error *error);
uint64_t inject_hijack_thread_pointer(const struct hijack *hijack);

// Maps a block and writes what is the same for all jobs. 0 or -1.
int inject_hijack_map(struct hijack *hijack, uint64_t *block, struct base_error *error);
int inject_hijack_unmap(struct hijack *hijack, uint64_t block, struct base_error *error);
// Starts the new thread. 0; -1 otherwise.
int inject_hijack_start(struct hijack *hijack, uint64_t block, const struct hijack_job *job, struct base_error *error);
// Puts the thread back; it is still stopped. Frees. -1: it could not be (it has gone, or it finds the way by itself).
int inject_hijack_end(struct hijack *hijack, struct base_error *error);

// Of the job that runs now. False: it cannot be read.
bool inject_hijack_answer(const struct inject_program *program, uint64_t block, struct inject_hijack_answer *answer);

// ---- a block that another tool has mapped

bool inject_hijack_is_block(const uint8_t head[INJECT_PAGE_HEAD_BYTES]);
struct hijack_found {
    uint64_t handle; // 0: the agent is not there, or not yet
    uint64_t arena_offset, arena;
    bool is_done; // with its job
    uint32_t tid; // of the thread that has it; 0: it has not begun
    struct inject_owner owner;
};
// Says that it is this owner's. False: it cannot be written.
bool inject_hijack_give(const struct inject_program *program, uint64_t block, const struct inject_owner *owner);
// False: it cannot be read.
bool inject_hijack_read_block(const struct inject_program *program, uint64_t block, struct hijack_found *found);

#endif
