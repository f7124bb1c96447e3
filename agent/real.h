// SPDX-License-Identifier: Apache-2.0
// libc's own functions behind our hooks, or those of what stands between us and libc (an allocator that the program
// links). Looked up once, at the first hook that runs, which may be before any constructor. NULL: there is none of that
// name; then no program can have been linked with it.
#ifndef AGENT_REAL_H
#define AGENT_REAL_H

#include <dlfcn.h>
#include <grp.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <threads.h>
#include <unistd.h>

#include "agent/real_waits.h"

#pragma GCC visibility push(hidden)

// Allocation comes first: looking up the others may allocate.
#define AGENT_REAL_CORE(X)                                                                                             \
    X(malloc)                                                                                                          \
    X(free)                                                                                                            \
    X(calloc)                                                                                                          \
    X(realloc)                                                                                                         \
    X(reallocarray)                                                                                                    \
    X(memalign)                                                                                                        \
    X(posix_memalign)                                                                                                  \
    X(aligned_alloc)                                                                                                   \
    X(valloc)                                                                                                          \
    X(pvalloc)                                                                                                         \
    X(malloc_usable_size)                                                                                              \
    X(mmap)                                                                                                            \
    X(mmap64)                                                                                                          \
    X(munmap)                                                                                                          \
    X(mremap)                                                                                                          \
    X(brk)                                                                                                             \
    X(sbrk)                                                                                                            \
    X(pthread_create)                                                                                                  \
    X(pthread_exit)                                                                                                    \
    X(thrd_create)                                                                                                     \
    X(thrd_exit)                                                                                                       \
    X(sigaction)                                                                                                       \
    X(signal)                                                                                                          \
    X(sysv_signal)                                                                                                     \
    X(sigprocmask)                                                                                                     \
    X(pthread_sigmask)                                                                                                 \
    X(execve)                                                                                                          \
    X(execvpe)                                                                                                         \
    X(fexecve)                                                                                                         \
    X(posix_spawn)                                                                                                     \
    X(posix_spawnp)                                                                                                    \
    X(execveat)                                                                                                        \
    X(_exit)                                                                                                           \
    X(_Exit)                                                                                                           \
    X(dlopen)                                                                                                          \
    X(dlmopen)                                                                                                         \
    X(dlclose)                                                                                                         \
    X(prctl)                                                                                                           \
    X(setuid)                                                                                                          \
    X(setgid)                                                                                                          \
    X(seteuid)                                                                                                         \
    X(setegid)                                                                                                         \
    X(setreuid)                                                                                                        \
    X(setregid)                                                                                                        \
    X(setresuid)                                                                                                       \
    X(setresgid)                                                                                                       \
    X(setgroups)                                                                                                       \
    X(initgroups)                                                                                                      \
    X(quick_exit)                                                                                                      \
    X(sigset)                                                                                                          \
    X(sighold)                                                                                                         \
    X(sigrelse)                                                                                                        \
    X(sigignore)                                                                                                       \
    X(unshare)                                                                                                         \
    X(setns)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // they are hooked, not used
struct agent_real {
#define AGENT_REAL_MEMBER(name) __typeof__(name) *name;
    AGENT_REAL_CORE(AGENT_REAL_MEMBER)
    AGENT_REAL_WAITS(AGENT_REAL_MEMBER)
#undef AGENT_REAL_MEMBER
};
#pragma GCC diagnostic pop
extern struct agent_real agent_real_functions;
extern bool agent_real_are_known;
void agent_real_look_up(void);

// While they are looked up, those that are not known yet are NULL: only allocation meets that.
static inline const struct agent_real *agent_real(void)
{
    if (__builtin_expect(!__atomic_load_n(&agent_real_are_known, __ATOMIC_ACQUIRE), 0))
        agent_real_look_up();
    return &agent_real_functions;
}

#pragma GCC visibility pop

#endif
