// SPDX-License-Identifier: Apache-2.0
// The process's user and groups. libc changes that in every thread, and ends the process where one of them is told no;
// a thread of ours may have other capabilities than the one that asks (which gave its own away before). So ours is gone
// meanwhile.
#include <grp.h>

#include "agent/inside.h"
#include "agent/real.h"
#include "agent/thread_start.h"
#include "agent/waiting.h"

#define WITHOUT_OURS(call)                                                                                             \
    bool is_on = agent_is_on_here() && !agent_is_quiet();                                                              \
    if (is_on) {                                                                                                       \
        agent_wait_no_more();                                                                                          \
        agent_threads_pause_own();                                                                                     \
    }                                                                                                                  \
    int result = agent_real()->call;                                                                                   \
    if (is_on)                                                                                                         \
        agent_threads_resume_own();                                                                                    \
    return result

EXPORTED int setuid(uid_t user)
{
    WITHOUT_OURS(setuid(user));
}

EXPORTED int setgid(gid_t group)
{
    WITHOUT_OURS(setgid(group));
}

EXPORTED int seteuid(uid_t user)
{
    WITHOUT_OURS(seteuid(user));
}

EXPORTED int setegid(gid_t group)
{
    WITHOUT_OURS(setegid(group));
}

EXPORTED int setreuid(uid_t real, uid_t effective)
{
    WITHOUT_OURS(setreuid(real, effective));
}

EXPORTED int setregid(gid_t real, gid_t effective)
{
    WITHOUT_OURS(setregid(real, effective));
}

EXPORTED int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    WITHOUT_OURS(setresuid(real, effective, saved));
}

EXPORTED int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    WITHOUT_OURS(setresgid(real, effective, saved));
}

EXPORTED int setgroups(size_t count, const gid_t *groups)
{
    WITHOUT_OURS(setgroups(count, groups));
}

EXPORTED int initgroups(const char *name, gid_t group)
{
    WITHOUT_OURS(initgroups(name, group));
}
