// SPDX-License-Identifier: Apache-2.0
// The walkers. Peers are loaded when they are asked for, each by a handle of its own: libunwind.so.8 has functions of
// the names of libc's and libgcc's, and would replace them.
#ifndef QUT_BENCH_WALK_WALKERS_H
#define QUT_BENCH_WALK_WALKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Return addresses, innermost first; at most max, and returns how many. The caller's frame is among them; frames of the
// walker itself may come before it.
typedef size_t bench_walk_function(uintptr_t *pcs, size_t max);

struct bench_walker {
    const char *name;
    bench_walk_function *walk;
    const char *(*open)(void); // once; NULL, or why it is not there. No function: it is always there
    void (*choose)(void);      // before its walks; may be missing
    unsigned own_frame_count;  // its frames before its caller's
    bool needs_frame_pointers;
    bool walks_nothing; // what is measured around a walk
};

const struct bench_walker *bench_walker(const char *name); // NULL: there is none
const struct bench_walker *bench_walker_at(size_t index);  // NULL: no more

// Before walks in a thread: the bounds of its stack, its registration.
void bench_walkers_thread(void);

// How walker_qut.c and walker_aosp.c are to be opened.
extern const char *bench_cache_directory; // of tables
extern const char *bench_aosp_library;    // aosp.cc, built where the package is

// For bench_walkers: one file each.
extern const struct bench_walker bench_walker_nothing, bench_walker_chase, bench_walker_chase_checked;
extern const struct bench_walker bench_walker_glibc, bench_walker_libgcc;
extern const struct bench_walker bench_walker_nongnu_backtrace, bench_walker_nongnu_step, bench_walker_llvm_step;
extern const struct bench_walker bench_walker_aosp, bench_walker_aosp_direct;
extern const struct bench_walker bench_walker_qut_table, bench_walker_qut_linked, bench_walker_qut;
extern const struct bench_walker bench_walker_signal_nothing, bench_walker_signal_chase;
extern const struct bench_walker bench_walker_signal_qut_table, bench_walker_signal_qut_linked, bench_walker_signal_qut;

bool bench_qut_started(void);

// The bounds of the calling thread's stack.
struct bench_stack {
    uintptr_t low, high;
};
extern _Thread_local struct bench_stack bench_stack;

#endif
