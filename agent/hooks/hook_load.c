// SPDX-License-Identifier: Apache-2.0
// Libraries that come and go. Where dlopen looks for one depends on its caller, which it finds out by its return
// address: so our hook must be gone when it runs (a tail call), and only tells that it was called.
#include <dlfcn.h>

#include "agent/inside.h"
#include "agent/real.h"
#include "agent/waiting.h"

#ifdef __clang__
#define TAIL_CALLS
#define TAIL_CALL __attribute__((musttail))
#else
#define TAIL_CALLS __attribute__((optimize("O2"))) // whatever the build asks for
#define TAIL_CALL
#endif

__attribute__((noinline)) static void tell(void)
{
    struct qut_event event = {.kind = QUT_SAMPLE_LOAD, .flags = QUT_EVENT_ON_CPU, .skip_frames = 1};
    if (agent_settings.sync & AGENT_SYNC_LOAD)
        agent_wait_no_more();
    if (!agent_enter(AGENT_SYNC_LOAD))
        return;
    qut_sync_take(&event); // there are few, and each is of interest
    agent_leave();
}

EXPORTED TAIL_CALLS void *dlopen(const char *file, int mode)
{
    tell();
    TAIL_CALL return agent_real()->dlopen(file, mode);
}

EXPORTED TAIL_CALLS void *dlmopen(Lmid_t space, const char *file, int mode)
{
    tell();
    TAIL_CALL return agent_real()->dlmopen(space, file, mode);
}

EXPORTED int dlclose(void *library)
{
    tell();
    return agent_real()->dlclose(library);
}
