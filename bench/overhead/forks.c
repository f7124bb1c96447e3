// SPDX-License-Identifier: Apache-2.0
// What a fork takes, from the call to the end of a child that does nothing, in ns: the least, the median, and the mean
// of both processes' processor time.
//   bench_overhead_forks [COUNT [exit|exec]]
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock_inline.h"

enum { COUNT = 200, COUNT_MAX = 100000 };

static int in_order(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// False: it did not end as it should.
static bool one(bool execs, uint64_t *took_ns)
{
    const uint64_t began_ns = base_clock_now_ns();
    int status = -1;
    const pid_t child = fork();
    if (child == 0 && execs)
        execl("/proc/self/exe", "bench_overhead_forks", "0", (char *)NULL);
    if (child == 0)
        _exit(0);
    const bool is_good = child > 0 && waitpid(child, &status, 0) == child && status == 0;
    *took_ns = base_clock_now_ns() - began_ns;
    return is_good;
}

static uint64_t used_ns(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    const uint64_t us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                        (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return us * 1000;
}

int main(int argument_count, char **arguments)
{
    static uint64_t took_ns[COUNT_MAX];
    const long count = argument_count > 1 ? strtol(arguments[1], NULL, 10) : COUNT;
    const bool execs = argument_count > 2 && strcmp(arguments[2], "exec") == 0;
    if (count < 0 || count > COUNT_MAX)
        return 2;
    const uint64_t before_ns = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN);
    for (long i = 0; i < count; i++)
        if (!one(execs, &took_ns[i]))
            return 1;
    const uint64_t after_ns = used_ns(RUSAGE_SELF) + used_ns(RUSAGE_CHILDREN);
    qsort(took_ns, (size_t)count, sizeof *took_ns, in_order);
    if (count > 0)
        printf("%llu %llu %llu\n", (unsigned long long)took_ns[0], (unsigned long long)took_ns[count / 2],
               (unsigned long long)((after_ns - before_ns) / (uint64_t)count));
    return 0;
}
