// SPDX-License-Identifier: Apache-2.0
// Calls of traced functions, inside of the traced process: stubs that thunks jump to, and what they need. The memory is
// that of formats/qut_calls.h. Traced functions run as if they were not, whatever happens here: without a ring events
// are lost and counted, without a shadow calls pass by and are counted.
//
// Where there is no stub for the machine (none/stub.c), calls_begin fails.
#ifndef AGENT_CALLS_CALLS_H
#define AGENT_CALLS_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct calls_options {
    uint64_t ring_bytes; // a power of two
    uint32_t ring_count; // at most: fewer where there is no room for them
    uint32_t cell_count; // of each ring's table of counts
};

// Makes the memory, maps it, and fills in its header. Once in a process; again after calls_end, and in a child after
// fork. Returns its descriptor, which is the caller's (the memory stays when it is closed), or -errno: -ENOSYS: this
// machine has no stub, or the kernel cannot keep a child from the rings. Blocks.
int calls_begin(const struct calls_options *options, uint64_t *memory_bytes);

// In a child after fork, by its thread: what it has of its parent's memory goes, and its calls are not written until
// calls_begin. Signal-safe.
void calls_after_fork(void);

// Gives all memory back. No function jumps here any more, and no thread is in a stub. -EBUSY: some call that has not
// returned would return to the stub, or the tracer says so; nothing was done. The agent may be unloaded after 0 only.
// Blocks.
int calls_end(void);

// Maps the shadow of begin..end. 0; -EEXIST: something else is there; -EINVAL: no stack can be there; or -errno. Any
// thread, also before calls_begin.
int calls_shadow(uint64_t begin, uint64_t end);

// The rings of threads that are gone become ENDED. Any thread; a few system calls for each ring.
void calls_look_for_ended(void);

// The calling thread ends: its ring becomes ENDED. What it still calls is written into another one.
void calls_thread_ends(void);

// The calling thread's id, where it is known already: in a child of vfork it is still the parent's, whose ring it is.
// 0: it is asked for.
void calls_thread_is(uint32_t tid);

// The calling thread is the agent's own: its calls of traced functions are neither written nor counted.
void calls_thread_is_agents(void);

// The same of one of the program's threads, while it does the agent's work: from here to calls_work_ends, which takes
// what this gave. No call that it is in ends between. Signal-safe.
struct calls_own *calls_work_begins(void);
void calls_work_ends(struct calls_own *kept);

// ---- probes: programs that run instead of events, from now on. Where there is no stub, or another machine's: -ENOSYS.

// `fd` is of a memory of struct qut_probe_live, which is mapped, and stays the caller's; the masks of this process, and
// who calls in it, are at masks_begin..masks_end. Its image is copied, and the copy verified. 0, -EINVAL: it is not
// sound, or -errno. No function jumps here yet, or those that do have the same numbers as before. Blocks; by one thread
// at a time.
int calls_probe_begin(int fd, uint64_t masks_begin, uint64_t masks_end);

// Whether bytes are an image that may run (bytecode/verify.h). Blocks.
bool calls_probe_is_sound(const void *image, size_t bytes);

// Whether they take more of the processor time than they may, and, if they do, no program runs any more. Every so
// often, by one thread, which makes no calls of the program's.
void calls_probe_look(void);

// What threads that have ended had begun was left: programs that are to be told so run. By the same thread.
void calls_probe_look_for_ended(void);

// Nobody reads any more what they write: in this process no program runs from now on, until the next calls_probe_begin.
// Functions jump here as before. By the thread that calls calls_probe_begin.
void calls_probe_leave(void);
bool calls_probe_is_on(void); // whether programs run; by the same thread

// Where a call was made: what the calling function's registers are then.
enum { CALLS_CALLER_KEPT = 11 };
struct calls_caller {
    uint64_t pc;                      // behind the call
    uint64_t sp;                      // when the call has returned
    uint64_t kept[CALLS_CALLER_KEPT]; // those that calls keep. x86-64: rbx, rbp, r12 to r15. aarch64: x19 to x29
};
// As much of a ucontext_t as a walk reads: of a thread that stands in that call. Signal-safe.
struct calls_context {
    uint64_t words[64];
};
void calls_caller_context(const struct calls_caller *caller, struct calls_context *context);
// Takes the stack from there outwards, of so many frames at most, and returns its number (QUT_PROBE_STACK); 0: it could
// not. Called in the midst of the program's code: signal-safe, and without any call of a function that may be probed.
typedef uint64_t calls_take_stack(const struct calls_caller *caller, uint32_t frames);
void calls_probe_stacks(calls_take_stack *take); // NULL, as before the first call: there are none

// ---- functions that are entered by a trap. Where there is no stub there are none.

// What is at begin..end, rows of struct qut_calls_trap, ascending, is ours from now on; for as long as the process
// lives, so SIGTRAP has to be handled and unblocked from before. By one thread at a time. 0, -EINVAL, or -ENOSPC.
int calls_traps_add(uint64_t begin, uint64_t end);
// Whether there are any in this memory, and whether it is this process's, and no child's of vfork. Signal-safe.
bool calls_traps_are_in(void);
bool calls_traps_are_ours(void);
// SIGTRAP has come. Whether it was one of ours: then the handler returns to the thunk, or, where the byte has been put
// back meanwhile, to the function. Signal-safe: reads memory alone.
bool calls_traps_take(const siginfo_t *info, void *context);
// In a child of fork: takes them out of its own copy of the code; what cannot be stays ours. Or: they stay.
void calls_traps_leave_child(void);
void calls_traps_stay_in_child(void);

#pragma GCC visibility pop

#endif
