// SPDX-License-Identifier: Apache-2.0
// A user's program, built with nothing but what is installed: C and C++, shared and static.
#include <stdio.h>
#include <string.h>

#include <qut/qut.h>

static struct qut_end end;

__attribute__((noinline)) static size_t inner(uintptr_t *pcs, size_t max)
{
    size_t count = qut_backtrace(pcs, max, &end);
    __asm__ volatile("" ::: "memory"); // no tail call
    return count;
}

static int run(qut_compile_fn compile, size_t frames_wanted)
{
    struct qut_options options;
    uintptr_t pcs[64];
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.compile = compile;
    int result = qut_start(&options);
    if (result == 0)
        result = qut_wait(20000);
    size_t count = inner(pcs, 64);
    printf("start: %d, %zu frames, then: %s\n", result, count, qut_end_reason_name(end.reason));
    qut_stop();
    return result == 0 && count >= frames_wanted ? 0 : 1;
}
