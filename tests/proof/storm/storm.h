// SPDX-License-Identifier: Apache-2.0
// Threads that do all a program can do to a stack walker, while signals walk them thousands of times a second. Every
// walk is judged: it must end at the outermost frame and pass through its thread's root function.
#ifndef TESTS_PROOF_STORM_STORM_H
#define TESTS_PROOF_STORM_STORM_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum {
    STORM_THREADS = 8,
    STORM_PCS_MAX = 1024,
    STORM_ALTERNATE_BYTES = 128 << 10,
    STORM_COROUTINE_BYTES = 128 << 10,
    // Each timer is set anew when its handler is done: handlers that take long leave the program its time.
    STORM_TICK_NS = 100000,
    STORM_NESTED_NS = 400000, // the second signal, which may interrupt the first's handler
};

// Functions that a walk must pass: all of them lie in a section of their own, whose ends the linker knows.
#define STORM_ROOT           __attribute__((noinline, section("storm_roots")))
#define STORM_COROUTINE_ROOT __attribute__((noinline, section("storm_coroutine_roots")))

// What a thread that is walked knows of itself. It is set while no signal can come.
struct storm_thread {
    timer_t tick_timer, nested_timer;
    uintptr_t coroutine_low, coroutine_high; // of the coroutine's stack; 0: there is none
    char *alternate;                         // memory for the alternate stack
    _Atomic uint32_t activity;               // index, for the report
    _Atomic uint64_t progress;               // activities done, for the watchdog
    _Atomic bool ended;
};

extern _Thread_local struct storm_thread *storm_self;
extern _Atomic bool storm_over;
extern const char *storm_library_folder;

// ---- judge.c
// Counts one walk. `sp` is where it began; 0: here.
void storm_judge(const uintptr_t *pcs, size_t count, uint32_t reason, uintptr_t end_pc, uint32_t refusal, uintptr_t sp,
                 bool nested, bool errno_kept);
void storm_walk_here(void); // a synchronous walk
bool storm_handlers(void);  // installs them
// In a forked child: one walk of each kind; 0 if both were good.
int storm_walk_in_child(void);

enum storm_count {
    STORM_WALKS,
    STORM_IN_HANDLER,
    STORM_NESTED,
    STORM_OUTERMOST,     // ended there and passed the root
    STORM_PENDING,       // in a generated library whose table is being made
    STORM_START_CONTEXT, // a coroutine's outermost frame, whose return address is makecontext's own
    STORM_EH_RETURN,     // in libgcc, while it overwrites its frame with the one that will catch
    STORM_BAD_CFI,       // in a function that moves sp without its unwind information saying so
    STORM_CRT,           // in what the compiler adds to a library to set it up: it has no unwind information
    STORM_UNEXPLAINED,   // ended anywhere else
    STORM_WRONG,         // outermost without the root, or a pc that is no code
    STORM_ERRNO,         // errno changed
    STORM_FRAMES,
    STORM_HANDLER_NS,
    STORM_REMEMBERED,   // frames that walks in handlers took from their thread's last ones
    STORM_TWICE,        // walks that were done a second time, without shortcuts
    STORM_DIFFERENT,    // ... and then went another way, though both came to the end
    STORM_LIBRARY_HITS, // walks through a generated library
    STORM_COROUTINE_HITS,
    STORM_COUNT_END,
};
void storm_add(enum storm_count which, uint64_t n);
uint64_t storm_get(enum storm_count which);
uint64_t storm_handler_ns_most(void);
void storm_explain(void);                    // moves what has an explanation out of STORM_UNEXPLAINED
void storm_print_ends(FILE *out);            // by reason and pc
extern _Atomic uintptr_t storm_library_code; // where storm_library_enter is, from a library's start
void storm_print_wrong(FILE *out);

// ---- explain.c: ends that are not the walker's doing, each by its place
void storm_explain_begin(void);
bool storm_is_start_context(uintptr_t pc);
bool storm_is_in_setcontext(uintptr_t pc);
bool storm_is_in_swapcontext(uintptr_t pc);
bool storm_is_in_sanitizer(uintptr_t pc);
bool storm_is_in_libgcc(uintptr_t pc);
bool storm_has_wrong_rule(uintptr_t pc); // not in handlers

// ---- thread.c
int storm_thread_begin(struct storm_thread *thread); // timers, alternate stack; storm_self is set
void storm_thread_end(struct storm_thread *thread);
void storm_set_timer(timer_t timer, long after_ns); // once

// ---- activities: each takes some milliseconds
struct storm_activity {
    const char *name;
    void (*run)(unsigned round);
};
extern const struct storm_activity storm_activities[];
extern const unsigned storm_activity_count;
void storm_spin(unsigned rounds);
void storm_libraries(unsigned round);
void storm_coroutine(unsigned round);
void storm_fork(unsigned round);
void storm_vfork(unsigned round);
void storm_churn(unsigned round);
void storm_registration(unsigned round);
void storm_alternate_stack(unsigned round);
void storm_exceptions(unsigned round); // C++
extern _Atomic uint64_t storm_loads, storm_replaced, storm_forks, storm_children_bad, storm_threads_made;

#endif
