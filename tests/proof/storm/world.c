// SPDX-License-Identifier: Apache-2.0
// Activities that change the process: libraries, children, stacks of their own.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <qut/local.h>

#include "tests/proof/storm/storm.h"

_Atomic uint64_t storm_loads, storm_replaced, storm_forks, storm_children_bad;

// ---- libraries that come and go, one in the place of the other

static _Atomic uintptr_t last_base;
static _Atomic unsigned last_library;

static int in_library(void *context)
{
    unsigned *depth = context;
    storm_spin(30 + *depth);
    storm_walk_here();
    return 1;
}

void storm_libraries(unsigned round)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    for (unsigned i = 0; i < 4; i++) {
        unsigned which = (round + i) % 4;
        char path[512];
        snprintf(path, sizeof path, "%s/libstorm_library_%s.so", storm_library_folder, names[which]);
        void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            abort();
        }
        atomic_fetch_add_explicit(&storm_loads, 1, memory_order_relaxed);
        struct link_map *map;
        dlinfo(library, RTLD_DI_LINKMAP, &map);
        uintptr_t base = map->l_addr;
        if (atomic_exchange_explicit(&last_base, base, memory_order_relaxed) == base &&
            atomic_load_explicit(&last_library, memory_order_relaxed) != which)
            atomic_fetch_add_explicit(&storm_replaced, 1, memory_order_relaxed);
        atomic_store_explicit(&last_library, which, memory_order_relaxed);
        int (*enter)(int, int (*)(void *), void *);
        *(void **)&enter = dlsym(library, "storm_library_enter");
        atomic_store_explicit(&storm_library_code, (uintptr_t)enter - base, memory_order_relaxed);
        unsigned depth = round % 16;
        for (unsigned k = 0; k < 4; k++)
            enter((int)depth, in_library, &depth);
        // Now and then it stays long enough for its table to be made.
        if (round % 3 == 0) {
            qut_wait(200);
            for (unsigned k = 0; k < 10; k++)
                enter((int)depth, in_library, &depth);
        }
        dlclose(library);
    }
    if (round % 16 == 1)
        qut_refresh();
}

// ---- stacks of their own

enum { SWITCHES = 40 };

struct coroutine {
    ucontext_t outside, inside;
    bool done;
};

static _Thread_local struct coroutine *running;

STORM_COROUTINE_ROOT static void coroutine_main(void)
{
    struct coroutine *mine = running;
    for (unsigned i = 0; i < SWITCHES; i++) {
        storm_spin(10);
        storm_walk_here();
        swapcontext(&mine->inside, &mine->outside);
    }
    mine->done = true;
}

void storm_coroutine(unsigned round)
{
    (void)round;
    struct coroutine coroutine = {.done = false};
    char *stack = mmap(NULL, STORM_COROUTINE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED)
        abort();
    running = &coroutine;
    getcontext(&coroutine.inside);
    coroutine.inside.uc_stack.ss_sp = stack;
    coroutine.inside.uc_stack.ss_size = STORM_COROUTINE_BYTES;
    coroutine.inside.uc_link = &coroutine.outside;
    makecontext(&coroutine.inside, coroutine_main, 0);
    storm_self->coroutine_low = (uintptr_t)stack;
    storm_self->coroutine_high = (uintptr_t)stack + STORM_COROUTINE_BYTES;
    while (!coroutine.done) {
        swapcontext(&coroutine.outside, &coroutine.inside);
        storm_spin(5);
    }
    storm_self->coroutine_low = storm_self->coroutine_high = 0;
    munmap(stack, STORM_COROUTINE_BYTES);
}

// ---- children

static void wait_for(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        atomic_fetch_add_explicit(&storm_children_bad, 1, memory_order_relaxed);
}

void storm_fork(unsigned round)
{
    if (round % 2)
        return;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(storm_walk_in_child());
    }
    if (child < 0)
        return;
    atomic_fetch_add_explicit(&storm_forks, 1, memory_order_relaxed);
    wait_for(child);
}

void storm_vfork(unsigned round)
{
    if (round % 2)
        return;
    static char *const arguments[] = {"true", NULL};
    static char *const no_environment[] = {NULL};
    pid_t child = vfork();
    if (child == 0) {
        execve("/bin/true", arguments, no_environment);
        _exit(1);
    }
    if (child > 0)
        wait_for(child);
}
