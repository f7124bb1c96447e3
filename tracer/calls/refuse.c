// SPDX-License-Identifier: Apache-2.0
// Functions that are left alone by their names: what they do with their return address cannot be seen in their code, or
// only by following it further than is done here.
#include <fnmatch.h>
#include <string.h>

#include "tracer/calls/inside.h"

struct row {
    const char *glob;
    enum qut_plan_refusal why;
};

// Of the name as it is in the file. Those of glibc 2.36, musl 1.2, gcc 12's libraries; where a name has several forms
// with underscores before it, all of them.
static const struct row functions[] = {
    {"_start", QUT_PLAN_PROGRAM_END},
    {"_init", QUT_PLAN_PROGRAM_END},
    {"_fini", QUT_PLAN_PROGRAM_END},
    {"_dl_relocate_static_pie", QUT_PLAN_PROGRAM_END},
    {"__libc_start_main*", QUT_PLAN_PROGRAM_END},
    {"__libc_start_call_main", QUT_PLAN_PROGRAM_END},
    {"__morestack*", QUT_PLAN_PROGRAM_END},
    {"dlopen*", QUT_PLAN_LOADER},
    {"__dlopen*", QUT_PLAN_LOADER},
    {"dlmopen*", QUT_PLAN_LOADER},
    {"__dlmopen*", QUT_PLAN_LOADER},
    {"dlsym*", QUT_PLAN_LOADER},
    {"__dlsym*", QUT_PLAN_LOADER},
    {"dlvsym*", QUT_PLAN_LOADER},
    {"__dlvsym*", QUT_PLAN_LOADER},
    {"dladdr*", QUT_PLAN_LOADER},
    {"dl_iterate_phdr", QUT_PLAN_LOADER},
    {"__dl_iterate_phdr", QUT_PLAN_LOADER},
    {"__libc_dl*", QUT_PLAN_LOADER},
    {"_dl_*", QUT_PLAN_LOADER},
    {"__tls_get_addr*", QUT_PLAN_LOADER},
    {"*setjmp", QUT_PLAN_SAVES_CONTEXT},
    {"longjmp*", QUT_PLAN_SAVES_CONTEXT},
    {"_longjmp*", QUT_PLAN_SAVES_CONTEXT},
    {"__longjmp*", QUT_PLAN_SAVES_CONTEXT},
    {"siglongjmp*", QUT_PLAN_SAVES_CONTEXT},
    {"__libc_siglongjmp", QUT_PLAN_SAVES_CONTEXT},
    {"__libc_longjmp", QUT_PLAN_SAVES_CONTEXT},
    {"*getcontext", QUT_PLAN_SAVES_CONTEXT},
    {"*setcontext", QUT_PLAN_SAVES_CONTEXT},
    {"*swapcontext", QUT_PLAN_SAVES_CONTEXT},
    {"*makecontext", QUT_PLAN_SAVES_CONTEXT},
    {"__start_context", QUT_PLAN_SAVES_CONTEXT},
    {"jump_fcontext", QUT_PLAN_SAVES_CONTEXT},
    {"make_fcontext", QUT_PLAN_SAVES_CONTEXT},
    {"ontop_fcontext", QUT_PLAN_SAVES_CONTEXT},
    {"vfork", QUT_PLAN_SHARES_STACK},
    {"__vfork", QUT_PLAN_SHARES_STACK},
    {"__libc_vfork", QUT_PLAN_SHARES_STACK},
    {"clone", QUT_PLAN_SHARES_STACK},
    {"__clone*", QUT_PLAN_SHARES_STACK},
    {"clone3", QUT_PLAN_SHARES_STACK},
    {"posix_spawn", QUT_PLAN_SHARES_STACK},
    {"posix_spawnp", QUT_PLAN_SHARES_STACK},
    {"__posix_spawn*", QUT_PLAN_SHARES_STACK},
    {"__spawni*", QUT_PLAN_SHARES_STACK},
    {"__asan_*", QUT_PLAN_SANITIZER},
    {"__hwasan_*", QUT_PLAN_SANITIZER},
    {"__lsan_*", QUT_PLAN_SANITIZER},
    {"__msan_*", QUT_PLAN_SANITIZER},
    {"__tsan_*", QUT_PLAN_SANITIZER},
    {"__ubsan_*", QUT_PLAN_SANITIZER},
    {"__sanitizer_*", QUT_PLAN_SANITIZER},
    {"__interceptor_*", QUT_PLAN_SANITIZER},
    {"___interceptor_*", QUT_PLAN_SANITIZER},
    {"_ZN6__asan*", QUT_PLAN_SANITIZER},
    {"_ZN6__tsan*", QUT_PLAN_SANITIZER},
    {"_ZN6__msan*", QUT_PLAN_SANITIZER},
    {"_ZN6__lsan*", QUT_PLAN_SANITIZER},
    {"_ZN7__ubsan*", QUT_PLAN_SANITIZER},
    {"_ZN8__hwasan*", QUT_PLAN_SANITIZER},
    {"_ZN11__sanitizer*", QUT_PLAN_SANITIZER},
    {"_ZN14__interception*", QUT_PLAN_SANITIZER},
    {"__xray_*", QUT_PLAN_SANITIZER},
    {"__fentry__", QUT_PLAN_SANITIZER},
    {"mcount", QUT_PLAN_SANITIZER},
    {"_mcount", QUT_PLAN_SANITIZER},
    {"__cyg_profile_func_*", QUT_PLAN_SANITIZER},
    {"Builtins_*", QUT_PLAN_BUILTIN},
    {"_ZN2v88internal*CheckStackGuardState*", QUT_PLAN_BUILTIN}, // is told where its own return address is
    {"OUTLINED_FUNCTION_*", QUT_PLAN_KEEPS_RETURN}, // of LLVM: parts of functions, prologues and epilogues among them
    {"_ZGVs*", QUT_PLAN_SCALABLE},
    {"__restore_rt", QUT_PLAN_SIGNAL_RETURN},
    {"__restore", QUT_PLAN_SIGNAL_RETURN},
    {"_Unwind_*", QUT_PLAN_UNWINDER},
    {"__unw_*", QUT_PLAN_UNWINDER},
    {"unw_*", QUT_PLAN_UNWINDER},
    {"_U*_step", QUT_PLAN_UNWINDER},
    {"uw_*", QUT_PLAN_UNWINDER},
};

// Of the file's last name: what is stripped has no names inside.
static const struct row modules[] = {
    {"ld-linux*", QUT_PLAN_LOADER},      {"ld-musl-*", QUT_PLAN_LOADER},        {"ld.so*", QUT_PLAN_LOADER},
    {"libgcc_s.so*", QUT_PLAN_UNWINDER}, {"libunwind*.so*", QUT_PLAN_UNWINDER}, {"libasan.so*", QUT_PLAN_SANITIZER},
    {"libtsan.so*", QUT_PLAN_SANITIZER}, {"liblsan.so*", QUT_PLAN_SANITIZER},   {"libubsan.so*", QUT_PLAN_SANITIZER},
    {"libqut*", QUT_PLAN_SANITIZER},     {"linux-vdso*", QUT_PLAN_LOADER},      {"[vdso]", QUT_PLAN_LOADER},
};

// fnmatch takes names of a thousand bytes to wide characters first: most globs end in '*', and the others are told
// apart by their first byte.
static bool fits(const char *glob, const char *name)
{
    return (glob[0] == '*' || glob[0] == '[' || glob[0] == name[0]) &&
           (strcmp(glob, name) == 0 || fnmatch(glob, name, FNM_NOESCAPE) == 0);
}

enum qut_plan_refusal calls_refuse_name(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (fits(functions[i].glob, name))
            return functions[i].why;
    return QUT_PLAN_OK;
}

enum qut_plan_refusal calls_refuse_module_name(const char *module)
{
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (fits(modules[i].glob, module))
            return modules[i].why;
    return QUT_PLAN_OK;
}

enum qut_plan_refusal calls_refuse_module(const char *module, const struct input_image *image)
{
    enum qut_plan_refusal why = calls_refuse_module_name(module);
    return why != QUT_PLAN_OK ? why : symbols_has_go_functions(image) ? QUT_PLAN_GO : QUT_PLAN_OK;
}
