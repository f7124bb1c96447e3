// SPDX-License-Identifier: Apache-2.0
// Samples a process from outside, and prints what became of it, a line each: `name value`.
//     attach_probe PID OUT.qtrace [HZ [SECONDS [wall]]]
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "qutc/cache.h"
#include "tracer/attach/attach.h"

static int stop_on_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static void print(const struct attach_result *r)
{
#define PRINT(field) printf(#field " %" PRIu64 "\n", (uint64_t)r->field)
    PRINT(end), PRINT(elapsed_ns), PRINT(due), PRINT(taken), PRINT(covered), PRINT(stops), PRINT(asleep), PRINT(roots),
        PRINT(late);
    PRINT(missed_asleep), PRINT(missed_woke), PRINT(missed_slow), PRINT(missed_gone), PRINT(missed_registers);
    PRINT(restarted), PRINT(disturbed), PRINT(longest_restart_ns);
    PRINT(stop_median_ns), PRINT(stop_p99_ns), PRINT(stop_longest_ns);
    PRINT(threads), PRINT(threads_now), PRINT(execs), PRINT(intervals);
    printf("collected %" PRIu64 "\n", r->collected.sample_count);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    unsigned hz = argc > 3 ? (unsigned)atoi(argv[3]) : 100;
    char *cache = NULL;
    qutc_cache_directory(&cache, NULL);
    struct attach_options options = {
        .pid = (pid_t)atoi(argv[1]),
        .period_ns = hz ? 1000000000u / hz : 0,
        .duration_ns = argc > 4 ? (uint64_t)(atof(argv[4]) * 1e9) : 0,
        .wall = argc > 5 && strcmp(argv[5], "wall") == 0,
        .stop_fd = stop_on_signal(),
        .file_fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600),
        .cache_directory = cache,
    };
    struct attach_result result;
    struct attach_error error;
    if (options.file_fd < 0)
        return 2;
    if (attach_record(&options, &result, &error) != 0) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    print(&result);
    free(cache);
    return 0;
}
