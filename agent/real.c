// SPDX-License-Identifier: Apache-2.0
#include "agent/real.h"

#include <dlfcn.h>

#include "agent/inside.h"

struct agent_real agent_real_functions;
bool agent_real_are_known;

// A thread that finds them unknown looks all of them up: the answer is the same for each. A call that comes back here
// from inside (dlsym allocates when it does not find a name) sees what is known so far.
void agent_real_look_up(void)
{
    static _Thread_local bool is_under_way __attribute__((tls_model("initial-exec")));
    if (is_under_way)
        return;
    is_under_way = true;
#define LOOK_UP(name) *(void **)&agent_real_functions.name = dlsym(RTLD_NEXT, #name);
    AGENT_REAL_CORE(LOOK_UP)
    AGENT_REAL_WAITS(LOOK_UP)
#undef LOOK_UP
    is_under_way = false;
    __atomic_store_n(&agent_real_are_known, true, __ATOMIC_RELEASE);
}
