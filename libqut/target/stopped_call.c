// SPDX-License-Identifier: Apache-2.0
// What a stop does to the system call that a thread is in.
//
// A stop makes a call that waits return early. The kernel restarts most of them by itself; a few return EINTR instead,
// as if a handler had run (libqut/arch/calls.c). As such a call returns, its result is in a register, where we can
// still make it another one: not EINTR but ERESTARTNOHAND, which the kernel turns into EINTR if a handler of the
// program's own runs now, and else into a restart: what it does for pause, poll and the like. So a signal that arrives
// at this very moment is seen as ever, and the masks of epoll_pwait are as they must be. The call waits anew, so a
// timeout begins anew.
#include <errno.h>
#include <string.h>

#include "libqut/arch/calls.h"
#include "libqut/arch/system_call.h"
#include "libqut/target/live.h"

enum { ERESTART_NO_HANDLER = 514, CLONE3 = 435 };

// A new thread that was interrupted before it left its own call's code: the kernel has forgotten the call's number by
// then. Seen in glibc's clone3 on a full machine: test, jl and je, seven bytes behind the call, two instructions on
// arm.
enum { NEWBORN_CODE_BYTES = 8 };

static int64_t get(const struct arch *arch, const uint8_t *block, unsigned offset)
{
    int64_t wide;
    int32_t narrow;
    if (arch->word_bytes == sizeof wide) {
        memcpy(&wide, block + offset, sizeof wide);
        return wide;
    }
    memcpy(&narrow, block + offset, sizeof narrow);
    return narrow;
}

static unsigned result_offset(const struct arch *arch)
{
    return arch->core_registers->reg_offset[arch->result_reg];
}

bool target_live_is_clone(const struct arch *arch, int64_t number)
{
    return number == CLONE3 || number == arch->clone_number;
}

bool target_live_is_newborn(const struct arch *arch, const void *block, const uint8_t *code, size_t code_bytes)
{
    if (get(arch, block, result_offset(arch)) != 0)
        return false;
    if (arch->call_number_offset && target_live_is_clone(arch, get(arch, block, arch->call_number_offset)))
        return true;
    uint64_t number_register = 0;
    if (arch->call_number_reg)
        number_register = (uint64_t)get(arch, block, arch->core_registers->reg_offset[arch->call_number_reg]);
    for (size_t end = code_bytes; end >= ARCH_SYSTEM_CALL_BYTES && code_bytes - end <= NEWBORN_CODE_BYTES; end--)
        if (arch_is_system_call(arch, code + end - ARCH_SYSTEM_CALL_BYTES))
            return target_live_is_clone(arch, arch_call_behind(arch, number_register, code, end));
    return false;
}

bool target_live_has_just_begun(struct qut_target *target, const void *block)
{
    const struct arch *arch = target->arch;
    uint8_t code[ARCH_CALL_CODE_BYTES + NEWBORN_CODE_BYTES];
    if (get(arch, block, result_offset(arch)) != 0)
        return false;
    uint64_t pc = (uint64_t)get(arch, block, arch->core_registers->pc_offset);
    pc &= ~(uint64_t)(arch->has_thumb ? 1 : 0);
    size_t code_bytes = target_read_code(target, pc - sizeof code, code, sizeof code);
    return target_live_is_newborn(arch, block, code, code_bytes == sizeof code ? code_bytes : 0);
}

bool target_live_mend_call(const struct arch *arch, void *block)
{
    if (!arch->call_number_offset || get(arch, block, result_offset(arch)) != -EINTR)
        return false;
    int64_t number = get(arch, block, arch->call_number_offset), result = -ERESTART_NO_HANDLER;
    const struct arch_call *call = number < 0 ? NULL : arch_call(arch->id, (long)number);
    // What a driver has done by then is not known.
    if (!call || call->effect == ARCH_CALL_RESTARTED || strcmp(call->name, "ioctl") == 0)
        return false;
    memcpy((uint8_t *)block + result_offset(arch), &result, arch->word_bytes);
    return true;
}

bool target_live_can_mend(const struct arch *arch, const struct target_sleep *sleep)
{
    // What has no timeout here, and has done nothing before it returns EINTR.
    static const struct {
        const char *name;
        enum { ALWAYS, IF_NEGATIVE, IF_NULL } waits_forever;
        uint8_t argument;
    } calls[] = {
        {"epoll_wait", IF_NEGATIVE, 3},  {"epoll_pwait", IF_NEGATIVE, 3},
        {"epoll_pwait2", IF_NULL, 3},    {"semop", ALWAYS, 0},
        {"semtimedop", IF_NULL, 3},      {"semtimedop_time64", IF_NULL, 3},
        {"rt_sigtimedwait", IF_NULL, 2}, {"rt_sigtimedwait_time64", IF_NULL, 2},
    };
    const struct arch_call *call = arch_call(arch->id, sleep->number);
    for (size_t i = 0; call && arch->call_number_offset && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, call->name) != 0)
            continue;
        uint64_t argument = sleep->argument[calls[i].argument];
        return calls[i].waits_forever == ALWAYS ||
               (calls[i].waits_forever == IF_NULL ? argument == 0 : (int32_t)argument < 0);
    }
    return false;
}
