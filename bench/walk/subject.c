// SPDX-License-Identifier: Apache-2.0
// BENCH_SUBJECT_FUNCTIONS (1024, or 256) functions that differ in the size of their frames and in what they save. Compiled for each of the shared
// objects, with BENCH_SUBJECT (0 to 3) and BENCH_SUBJECT_TABLE (the name of the table) defined.
#include "bench/walk/subject.h"

#include <stdbool.h>

// With `spilled`, path and level live in the frame and not in registers that would have to be saved.
static inline __attribute__((always_inline)) void go_on(struct bench_path *path, size_t level, unsigned kept,
                                                        bool spilled)
{
    uintptr_t a = kept > 0 ? path->salt : 0, b = kept > 1 ? path->salt : 0;
    uintptr_t c = kept > 2 ? path->salt : 0, d = kept > 3 ? path->salt : 0;
    if (spilled) {
        struct bench_path *volatile path_in_frame = path;
        volatile size_t level_in_frame = level;
        do
            path_in_frame->call[level_in_frame + 1](path_in_frame, level_in_frame + 1);
        while (path_in_frame->stay == level_in_frame);
        path = path_in_frame;
    } else {
        do
            path->call[level + 1](path, level + 1);
        while (path->stay == level);
    }
    if (kept > 0)
        path->sink = a;
    if (kept > 1)
        path->sink = b;
    if (kept > 2)
        path->sink = c;
    if (kept > 3)
        path->sink = d;
}

// The number is written to `sink`, so that no two functions are equal and get merged.
#define FUNCTION(digits)                                                                                               \
    static void function_##digits(struct bench_path *path, size_t level)                                               \
    {                                                                                                                  \
        enum { NUMBER = 0x##digits, HASH = ((NUMBER + (BENCH_SUBJECT << 20)) * 2654435761u) >> 16 };                   \
        enum { ROOM_BYTES = 8 + 16 * (HASH & 7) + (HASH % 13 == 0 ? 256 : 0) };                                        \
        volatile unsigned char room[ROOM_BYTES];                                                                       \
        room[0] = (unsigned char)level;                                                                                \
        path->returns[level] = (uintptr_t)__builtin_return_address(0);                                                 \
        path->sink = NUMBER;                                                                                           \
        go_on(path, level, (HASH >> 3) % 5, ((HASH >> 8) & 1) != 0);                                                   \
        path->sink = room[0];                                                                                          \
    }
#define ENTRY(digits) function_##digits,

// All numbers of five digits from 0 to 3.
#define TIMES_4(what, digits) what(digits##0) what(digits##1) what(digits##2) what(digits##3)
#define TIMES_16(what, digits)                                                                                         \
    TIMES_4(what, digits##0) TIMES_4(what, digits##1) TIMES_4(what, digits##2) TIMES_4(what, digits##3)
#define TIMES_64(what, digits)                                                                                         \
    TIMES_16(what, digits##0) TIMES_16(what, digits##1) TIMES_16(what, digits##2) TIMES_16(what, digits##3)
#define TIMES_256(what, digits)                                                                                        \
    TIMES_64(what, digits##0) TIMES_64(what, digits##1) TIMES_64(what, digits##2) TIMES_64(what, digits##3)
#if BENCH_SUBJECT_FUNCTIONS == 1024
#define TIMES_ALL(what) TIMES_256(what, 0) TIMES_256(what, 1) TIMES_256(what, 2) TIMES_256(what, 3)
#else
#define TIMES_ALL(what) TIMES_256(what, 0)
#endif

TIMES_ALL(FUNCTION)

bench_function *const BENCH_SUBJECT_TABLE[BENCH_SUBJECT_FUNCTIONS] = {TIMES_ALL(ENTRY)};
