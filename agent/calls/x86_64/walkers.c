// SPDX-License-Identifier: Apache-2.0
// Programs that walk their own stacks and have a place for those who exchange return addresses. V8 is one: it asks a
// function, for the place of each return address that it reads, where the true one is
// (V8::SetReturnAddressLocationResolver, seen from 3.x to 13.x). Without it, it ends the program: "unreachable code",
// on its way through the frames between JavaScript and C++.
#include <dlfcn.h>

#include "agent/calls/inside.h"

typedef uintptr_t (*resolver_fn)(uintptr_t slot);
typedef void (*set_resolver_fn)(resolver_fn resolver);

static set_resolver_fn set_resolver;

static uintptr_t resolve(uintptr_t slot)
{
    return *(const uintptr_t *)slot == (uintptr_t)calls_exit ? slot - ((uintptr_t)1 << QUT_CALLS_X86_64_SHADOW_LOG2)
                                                             : slot;
}

// Looked for once: in a child of fork the loader's lock may be anybody's.
void calls_help_walkers(void)
{
    static bool was_looked_for;
    if (!was_looked_for)
        *(void **)&set_resolver = dlsym(RTLD_DEFAULT, "_ZN2v82V832SetReturnAddressLocationResolverEPFmmE");
    if (!was_looked_for && !set_resolver)
        dlerror(); // of this thread; nobody shall meet ours
    was_looked_for = true;
    if (set_resolver)
        set_resolver(resolve);
}

void calls_leave_walkers(void)
{
    if (set_resolver)
        set_resolver(NULL);
}
