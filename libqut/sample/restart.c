// SPDX-License-Identifier: Apache-2.0
// A tick that waits for the way back to user mode can meet another signal there, which has interrupted a call. The
// kernel delivers the tick first, being the thread's own, and asks its action whether the call begins anew: ours says
// so (SA_RESTART). But the other one has to say: else a program whose alarm is to end a read would wait for ever.
#include <errno.h>

#include "libqut/arch/calls.h"
#include "libqut/arch/native.h"
#include "libqut/arch/system_call.h"
#include "libqut/sample/inside.h"

static void store(uintptr_t address, uintptr_t value)
{
    __builtin_memcpy((void *)address, &value, sizeof value); // NOLINT: a context of the kernel's
}

void sample_restart_look(int number, void *ucontext)
{
    const struct arch_register_layout *layout = arch_native_arch.ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = os_load(block + layout->pc_offset);
    uintptr_t result = block + layout->reg_offset[arch_native_arch.result_reg];
    uint8_t code[ARCH_SYSTEM_CALL_BYTES] = {0};
    // A call that is to begin anew has its number where its result would be: on x86, where alone ticks wait.
    if (!arch_call(arch_native_arch.id, (long)os_load(result)))
        return;
    os_read_self(pc, code, sizeof code);
    unsigned size_bytes = arch_system_call_bytes(&arch_native_arch, code);
    if (size_bytes == 0 || !os_waiting_signal_ends_calls(number, ucontext))
        return;
    store(result, (uintptr_t)-EINTR);
    store(block + layout->pc_offset, pc + size_bytes);
}
