// SPDX-License-Identifier: Apache-2.0
// AOSP's libunwindstack, through a library of ours that is built from aosp.cc where the package is installed.
#include "bench/walk/walkers.h"

#include <dlfcn.h>

const char *bench_aosp_library;
static bench_walk_function *aosp_walk;
static void (*aosp_read_directly)(bool);

static const char *open_aosp(void)
{
    void *handle = bench_aosp_library ? dlopen(bench_aosp_library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    aosp_walk = handle ? (bench_walk_function *)dlsym(handle, "bench_aosp_walk") : NULL;
    aosp_read_directly = handle ? (void (*)(bool))dlsym(handle, "bench_aosp_read_directly") : NULL;
    return aosp_walk && aosp_read_directly ? NULL : "libunwindstack (package android-libbacktrace-dev)";
}

static size_t walk_aosp(uintptr_t *pcs, size_t max)
{
    return aosp_walk(pcs, max);
}

static void by_system_calls(void)
{
    aosp_read_directly(false);
}

static void directly(void)
{
    aosp_read_directly(true);
}

const struct bench_walker bench_walker_aosp = {
    .name = "aosp", .walk = walk_aosp, .open = open_aosp, .choose = by_system_calls, .own_frame_count = 2};
const struct bench_walker bench_walker_aosp_direct = {
    .name = "aosp-direct", .walk = walk_aosp, .open = open_aosp, .choose = directly, .own_frame_count = 2};
