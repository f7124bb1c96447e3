// SPDX-License-Identifier: Apache-2.0
// A command run to its end: how long it took, how much memory it had, what it said.
#ifndef BENCH_COMPILE_CHILD_H
#define BENCH_COMPILE_CHILD_H

#include <stddef.h>
#include <stdint.h>

struct child_result {
    int status; // exit status; -1 where it did not run or was killed
    uint64_t wall_ns;
    uint64_t user_ns, system_ns; // with its children's
    uint64_t peak_rss_bytes;     // the greatest of it and its children
    char *output;                // of stdout, NUL-terminated, free(); NULL unless asked for
};

// arguments end with NULL. With keep_output false, stdout goes to /dev/null. Call it before this process has grown: the
// kernel counts the memory of the forking process as the child's first peak.
// 0, or -1 where it could not be started.
int bench_child(char *const arguments[], int keep_output, struct child_result *result);

#endif
