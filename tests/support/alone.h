// SPDX-License-Identifier: Apache-2.0
// Tests that each have a process of their own: what is traced begins in it.
#ifndef TESTS_SUPPORT_ALONE_H
#define TESTS_SUPPORT_ALONE_H

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/tap.h"

#define RUN_ALONE(NAME) alone_run(#NAME, NAME)

static void (*alone_body)(void);

static inline void alone_wait(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        alone_body();
        fflush(stdout);
        _exit(tap.failed_checks > 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, "wait status 0x%x", (unsigned)status);
}

static inline void alone_run(const char *name, void (*body)(void))
{
    alone_body = body;
    tap_run(name, alone_wait);
}

#endif
