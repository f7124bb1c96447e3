// SPDX-License-Identifier: Apache-2.0
// A program that is about to forbid itself system calls, which may end it where one is made all the same: ticks make no
// more than they must from then on.
#include <stdarg.h>
#include <sys/prctl.h>

#include <qut/sample.h>

#include "agent/inside.h"
#include "agent/real.h"
#include "agent/waiting.h"

EXPORTED int prctl(int option, ...)
{
    va_list rest;
    unsigned long arguments[4];
    va_start(rest, option);
    for (int i = 0; i < 4; i++) // as libc does, whatever was given
        arguments[i] = va_arg(rest, unsigned long);
    va_end(rest);
    // A program without privileges, or with libseccomp, has to ask for the latter first.
    if ((option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) && agent_is_on_here()) { // no child of vfork
        agent_wait_no_more();
        qut_sampling_settle();
    }
    return agent_real()->prctl(option, arguments[0], arguments[1], arguments[2], arguments[3]);
}
