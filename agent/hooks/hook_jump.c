// SPDX-License-Identifier: Apache-2.0
// Jumps. A thread that is inside a hook and jumps is in a handler that interrupted the hook, and most likely leaves it
// for good. Where it does not, the end of its interval is recorded here, and the hook's own end finds nothing to end.
#include "agent/blocked.h"
#include "agent/real.h"

static inline void before_jump(void)
{
    if (__builtin_expect(agent_thread.inside != 0, 0) && agent_thread.inside != UINTPTR_MAX && !agent_thread.in_child)
        agent_blocked_leave_for_good();
}

EXPORTED void longjmp(jmp_buf buffer, int value)
{
    before_jump();
    agent_real()->longjmp(buffer, value);
    __builtin_unreachable();
}

EXPORTED void _longjmp(jmp_buf buffer, int value)
{
    before_jump();
    agent_real()->_longjmp(buffer, value);
    __builtin_unreachable();
}

EXPORTED void siglongjmp(jmp_buf buffer, int value)
{
    before_jump();
    agent_real()->siglongjmp(buffer, value);
    __builtin_unreachable();
}

EXPORTED void __longjmp_chk(jmp_buf buffer, int value)
{
    before_jump();
    agent_real()->__longjmp_chk(buffer, value);
    __builtin_unreachable();
}
