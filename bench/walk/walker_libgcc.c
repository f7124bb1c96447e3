// SPDX-License-Identifier: Apache-2.0
// libgcc's _Unwind_Backtrace, and glibc's backtrace, which is the same from within libc.
#include "bench/walk/walkers.h"

#include <dlfcn.h>
#include <unwind.h>

static int (*glibc_backtrace)(void **, int);
static _Unwind_Reason_Code (*libgcc_backtrace)(_Unwind_Trace_Fn, void *);
static uintptr_t (*libgcc_ip)(struct _Unwind_Context *);
static int (*libgcc_register)(struct _Unwind_Context *, int, uint32_t, int, void *); // arm's EHABI has no _Unwind_GetIP

// By the library's own handle: dlsym(RTLD_DEFAULT) takes the library that came first.
static void *symbol(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return handle ? dlsym(handle, name) : NULL;
}

static const char *open_glibc(void)
{
    glibc_backtrace = (int (*)(void **, int))symbol("libc.so.6", "backtrace");
    return glibc_backtrace ? NULL : "libc.so.6 has no backtrace";
}

static size_t walk_glibc(uintptr_t *pcs, size_t max)
{
    return (size_t)glibc_backtrace((void **)pcs, (int)max);
}

static const char *open_libgcc(void)
{
    libgcc_backtrace = (_Unwind_Reason_Code(*)(_Unwind_Trace_Fn, void *))symbol("libgcc_s.so.1", "_Unwind_Backtrace");
    libgcc_ip = (uintptr_t(*)(struct _Unwind_Context *))symbol("libgcc_s.so.1", "_Unwind_GetIP");
    libgcc_register =
        (int (*)(struct _Unwind_Context *, int, uint32_t, int, void *))symbol("libgcc_s.so.1", "_Unwind_VRS_Get");
    if (!libgcc_backtrace || (!libgcc_ip && !libgcc_register))
        return "no libgcc_s.so.1 with _Unwind_Backtrace and _Unwind_GetIP or _Unwind_VRS_Get";
    return NULL;
}

static uintptr_t ip_of(struct _Unwind_Context *context)
{
    enum { CORE_REGISTERS = 0, PC = 15, AS_UINT32 = 0 };
    uint32_t pc = 0;
    if (libgcc_ip)
        return libgcc_ip(context);
    libgcc_register(context, CORE_REGISTERS, PC, AS_UINT32, &pc);
    return pc;
}

struct frames {
    uintptr_t *pcs;
    size_t count, max;
};

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *argument)
{
    struct frames *frames = argument;
    frames->pcs[frames->count++] = ip_of(context);
    return frames->count == frames->max ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static size_t walk_libgcc(uintptr_t *pcs, size_t max)
{
    struct frames frames = {pcs, 0, max};
    libgcc_backtrace(one_frame, &frames);
    return frames.count;
}

const struct bench_walker bench_walker_glibc = {
    .name = "glibc", .walk = walk_glibc, .open = open_glibc, .own_frame_count = 1};
const struct bench_walker bench_walker_libgcc = {
    .name = "libgcc", .walk = walk_libgcc, .open = open_libgcc, .own_frame_count = 1};
