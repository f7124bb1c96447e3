// SPDX-License-Identifier: Apache-2.0
// A tick that waits for the way back to user mode can meet another signal there, which has interrupted a call. The
// kernel delivers the tick first, being the thread's own, and asks its action whether the call begins anew: ours says
// so (SA_RESTART). But the other one has to say: else a program whose alarm is to end a read would wait for ever.
#include <errno.h>

#include "libqut/arch/calls.h"
#include "libqut/arch/native.h"
#include "libqut/arch/system_call.h"
#include "libqut/sample/sampling.h"

static void store(uintptr_t address, uintptr_t value)
{
    __builtin_memcpy((void *)address, &value, sizeof value); // NOLINT: a context of the kernel's
}

void qut_restart_look(int number, void *ucontext)
{
    const struct qut_register_layout *layout = qut_native_arch.ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = qut_os_load(block + layout->pc_offset);
    uintptr_t result = block + layout->reg_offset[qut_arch_result_register(&qut_native_arch)];
    uint8_t code[QUT_SYSTEM_CALL_BYTES] = {0};
    // A call that is to begin anew has its number where its result would be: on x86, where alone ticks wait.
    if (!qut_arch_call(qut_native_arch.id, (long)qut_os_load(result)))
        return;
    qut_os_read_self(pc, code, sizeof code);
    unsigned size_bytes = qut_arch_system_call_bytes(&qut_native_arch, code);
    if (size_bytes == 0 || !qut_os_waiting_signal_ends_calls(number, ucontext))
        return;
    store(result, (uintptr_t)-EINTR);
    store(block + layout->pc_offset, pc + size_bytes);
}
