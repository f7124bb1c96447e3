// SPDX-License-Identifier: Apache-2.0
// Places where unwind information, not the walker, is wrong or at its end.
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/proof/storm/storm.h"

// Found in libgcc, by a program that links it.
struct bases {
    void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct bases *bases) __attribute__((weak));

static uintptr_t start_context, libgcc_low, libgcc_high, setcontext_start, swapcontext_start;
static uintptr_t sanitizer_low, sanitizer_high;

// The library's own: a sanitizer has functions of the same names that call them.
static uintptr_t find_in(const char *library_name, const char *name)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    if (library)
        dlclose(library);
    return (uintptr_t)function;
}

static void nothing(void) {}

// makecontext lays the address of glibc's __start_context, which is exported nowhere, where the function will return
// to: at the lowest word of the new stack.
static uintptr_t find_start_context(void)
{
    static char stack[16 << 10];
    ucontext_t context, after;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = sizeof stack;
    context.uc_link = &after;
    makecontext(&context, nothing, 0);
    for (size_t at = 0; at + sizeof(uintptr_t) <= sizeof stack; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, stack + at, sizeof word);
        if (word)
            return word;
    }
    return 0;
}

void storm_explain_begin(void)
{
    start_context = find_start_context();
    setcontext_start = find_in("libc.so.6", "setcontext");
    swapcontext_start = find_in("libc.so.6", "swapcontext");
    struct dl_find_object found;
    uintptr_t libc_vfork = find_in("libc.so.6", "vfork");
    if ((uintptr_t)vfork != libc_vfork && _dl_find_object((void *)vfork, &found) == 0) {
        sanitizer_low = (uintptr_t)found.dlfo_map_start;
        sanitizer_high = (uintptr_t)found.dlfo_map_end;
    }
    uintptr_t raise_exception = find_in("libgcc_s.so.1", "_Unwind_RaiseException");
    if (raise_exception && _dl_find_object((void *)raise_exception, &found) == 0) {
        libgcc_low = (uintptr_t)found.dlfo_map_start;
        libgcc_high = (uintptr_t)found.dlfo_map_end;
    }
}

// glibc 2.36 on x86-64: 26 bytes; nothing says there that it has no caller, and as no function calls it, the byte
// before it belongs to no function.
bool storm_is_start_context(uintptr_t pc)
{
    return start_context && pc + 1 - start_context < 32;
}

// Before it changes sp, setcontext's unwind information already tells of the context it is about to enter.
bool storm_is_in_setcontext(uintptr_t pc)
{
    enum { SETCONTEXT_BYTES = 256 };
    return setcontext_start && pc - setcontext_start < SETCONTEXT_BYTES;
}

// glibc 2.36: it describes its own frame still when sp is already that of the other context.
bool storm_is_in_swapcontext(uintptr_t pc)
{
    enum { SWAPCONTEXT_BYTES = 512 };
    return swapcontext_start && pc - swapcontext_start < SWAPCONTEXT_BYTES;
}

// A sanitizer's vfork is assembler without unwind information.
bool storm_is_in_sanitizer(uintptr_t pc)
{
    return pc >= sanitizer_low && pc < sanitizer_high;
}

bool storm_is_in_libgcc(uintptr_t pc)
{
    return pc >= libgcc_low && pc < libgcc_high;
}

static bool switches_stacks(uintptr_t pc)
{
    Dl_info info;
    return dladdr((void *)pc, &info) && info.dli_sname &&
           (strcmp(info.dli_sname, "swapcontext") == 0 || strcmp(info.dli_sname, "setcontext") == 0);
}

// glibc 2.36: __mpn_addmul_1 and its like begin with push rbx, push rbp and have an empty frame program.
bool storm_has_wrong_rule(uintptr_t pc)
{
    struct bases bases;
    static const unsigned char pushes[] = {0x53, 0x55};
    Dl_info info;
    if (switches_stacks(pc))
        return true;
    if (!_Unwind_Find_FDE || !_Unwind_Find_FDE((void *)pc, &bases) || !dladdr(bases.function, &info))
        return false;
    return strstr(info.dli_fname, "libc.so") && memcmp(bases.function, pushes, sizeof pushes) == 0;
}
