// SPDX-License-Identifier: Apache-2.0
// The two libraries named libunwind: nongnu's (libunwind.so.8) and LLVM's (libunwind.so.1). Their functions are bound
// by handle, and declared here: their headers cannot be had together, nor is either needed to build.
#include "bench/walk/walkers.h"
#include "machine.h"

#include <dlfcn.h>

// Larger than either's context (nongnu's is a ucontext_t) and cursor (127 words).
struct room {
    uintptr_t words[512];
};

struct stepper {
    int (*get_context)(struct room *);
    int (*init)(struct room *, struct room *);
    int (*step)(struct room *);
    int (*get)(struct room *, int, uintptr_t *);
};

static struct stepper nongnu, llvm;
static int (*nongnu_backtrace)(void **, int);

// DEEPBIND: calls inside the library stay inside it.
static void *open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

static bool bind(struct stepper *stepper, void *handle, const char *const names[4])
{
    stepper->get_context = (int (*)(struct room *))dlsym(handle, names[0]);
    stepper->init = (int (*)(struct room *, struct room *))dlsym(handle, names[1]);
    stepper->step = (int (*)(struct room *))dlsym(handle, names[2]);
    stepper->get = (int (*)(struct room *, int, uintptr_t *))dlsym(handle, names[3]);
    return stepper->get_context && stepper->init && stepper->step && stepper->get;
}

static const char *open_nongnu_backtrace(void)
{
    void *handle = open_library("libunwind.so.8");
    nongnu_backtrace = handle ? (int (*)(void **, int))dlsym(handle, "unw_backtrace") : NULL;
    return nongnu_backtrace ? NULL : "libunwind.so.8 (package libunwind8)";
}

static const char *open_nongnu_step(void)
{
    // The names that <libunwind.h> makes with UNW_LOCAL_ONLY.
    static const char *const names[4] = {"_U" BENCH_MACHINE "_getcontext", "_UL" BENCH_MACHINE "_init_local",
                                         "_UL" BENCH_MACHINE "_step", "_UL" BENCH_MACHINE "_get_reg"};
    void *handle = open_library("libunwind.so.8");
    return handle && bind(&nongnu, handle, names) ? NULL : "libunwind.so.8 (package libunwind8)";
}

static const char *open_llvm_step(void)
{
    static const char *const names[4] = {"unw_getcontext", "unw_init_local", "unw_step", "unw_get_reg"};
    void *handle = open_library("libunwind.so.1");
    return handle && bind(&llvm, handle, names) ? NULL : "libunwind.so.1 (package libunwind-14)";
}

static size_t walk_nongnu_backtrace(uintptr_t *pcs, size_t max)
{
    return (size_t)nongnu_backtrace((void **)pcs, (int)max);
}

static inline __attribute__((always_inline)) size_t walk_by_steps(const struct stepper *stepper, int pc_register,
                                                                  uintptr_t *pcs, size_t max)
{
    struct room context, cursor;
    size_t count = 0;
    if (stepper->get_context(&context) != 0 || stepper->init(&cursor, &context) != 0)
        return 0;
    do
        stepper->get(&cursor, pc_register, &pcs[count++]);
    while (count < max && stepper->step(&cursor) > 0);
    return count;
}

static size_t walk_nongnu_step(uintptr_t *pcs, size_t max)
{
    return walk_by_steps(&nongnu, BENCH_DWARF_PC, pcs, max);
}

static size_t walk_llvm_step(uintptr_t *pcs, size_t max)
{
    return walk_by_steps(&llvm, -1, pcs, max); // its UNW_REG_IP
}

const struct bench_walker bench_walker_nongnu_backtrace = {
    .name = "nongnu-backtrace", .walk = walk_nongnu_backtrace, .open = open_nongnu_backtrace, .own_frame_count = 1};
const struct bench_walker bench_walker_nongnu_step = {
    .name = "nongnu-step", .walk = walk_nongnu_step, .open = open_nongnu_step, .own_frame_count = 1};
const struct bench_walker bench_walker_llvm_step = {
    .name = "llvm-step", .walk = walk_llvm_step, .open = open_llvm_step, .own_frame_count = 1};
