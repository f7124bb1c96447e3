// SPDX-License-Identifier: Apache-2.0
// What is walked: a stack of calls through functions that are chosen one by one. There are 4 x BENCH_SUBJECT_FUNCTIONS (1024) of them, in four
// shared objects, built with frame pointers and again without. Plain C: built for every architecture.
#ifndef QUT_BENCH_WALK_SUBJECT_H
#define QUT_BENCH_WALK_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

struct bench_path;
typedef void bench_function(struct bench_path *path, size_t level);

// The outermost function has level 1. The one of level n calls call[n + 1], and does so again as long as `stay` is n
// when that returns: so the innermost can have any number of frames above a level replaced by others.
struct bench_path {
    bench_function **call;
    uintptr_t *returns; // [level]: the return address of the function there, as the function itself reads it
    size_t stay;
    volatile uintptr_t salt, sink; // read before a call and written after it: to be kept in registers meanwhile
    void *run;                     // the innermost function's
};

static const size_t BENCH_NOBODY = SIZE_MAX; // of `stay`: all return

enum { BENCH_SUBJECTS = 4 };

// One table of functions for each shared object.
extern bench_function *const bench_subject_fp_0[], *const bench_subject_fp_1[], *const bench_subject_fp_2[],
                                                                                    *const bench_subject_fp_3[];
extern bench_function *const bench_subject_nofp_0[], *const bench_subject_nofp_1[], *const bench_subject_nofp_2[],
                                                                                        *const bench_subject_nofp_3[];

#endif
