// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/libqut/target/named_code.h"

#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/target.h>

static pid_t child;
static struct qut_target *target;

pid_t named_code_begin(void (*first)(void))
{
    int ready[2];
    char byte = 0;
    ck_assert_int_eq(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (first)
            first();
        if (write(ready[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    ck_assert_int_gt(child, 0);
    close(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    const struct qut_target_options options = {.size = sizeof options};
    struct qut_target_error error;
    target = qut_target_process(child, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    return child;
}

void named_code_end(void)
{
    qut_target_close(target);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

const char *named_code_at(uint64_t address)
{
    static struct qut_made_code code;
    if (!qut_target_made_code(target, address, &code, sizeof code))
        return "";
    ck_assert(address >= code.start && address < code.end);
    return code.name;
}

const char *named_code_of(uint64_t address, uint64_t monotonic_ns)
{
    static struct qut_made_code code;
    return qut_target_made_code_of(target, address, monotonic_ns, &code, sizeof code) ? code.name : "";
}

void named_code_kill(void)
{
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
}

const char *named_code_soon_at(uint64_t address)
{
    for (unsigned i = 0; i < 500 && !*named_code_at(address); i++)
        usleep(20000);
    return named_code_at(address);
}
