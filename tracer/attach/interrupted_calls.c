// SPDX-License-Identifier: Apache-2.0
// System calls that our stop ended, and those that threads sleep in.
//
// We only stop threads that run, but one may fall asleep in the microseconds before the stop arrives. A call that would
// return EINTR then begins anew (libqut/target/stopped_call.c), and with it a timeout: at most the time since the
// thread was seen to run is added.
#include <errno.h>
#include <string.h>

#include "tracer/attach/inside.h"

enum { WAIT_FOR_ALL = 0x100 };

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

static int64_t argument(const struct arch *arch, const uint8_t *block, unsigned i)
{
    return get(arch, block, arch->core_registers->reg_offset[arch->call_argument_regs[i]]);
}

long attach_call_of(const struct arch *arch, const void *block)
{
    int64_t number = arch->call_number_offset ? get(arch, block, arch->call_number_offset) : -1;
    return number >= 0 && number <= ARCH_CALL_NUMBER_MOST ? (long)number : -1;
}

static bool is_named(const struct arch_call *call, const char *name)
{
    return strcmp(call->name, name) == 0;
}

enum attach_call attach_mend_call(const struct arch *arch, void *block, uint64_t *fd)
{
    if (!arch->call_number_offset)
        return ATTACH_CALL_UNTOUCHED;
    int64_t number = get(arch, block, arch->call_number_offset), result = get(arch, block, result_offset(arch));
    const struct arch_call *call = number < 0 ? NULL : arch_call(arch->id, (long)number);
    if (!call || call->effect == ARCH_CALL_RESTARTED)
        return ATTACH_CALL_UNTOUCHED;
    if (result == -EINTR)
        return target_live_mend_call(arch, block) ? ATTACH_CALL_RESTARTED : ATTACH_CALL_DISTURBED;
    int64_t wanted = argument(arch, block, 2);
    bool is_short = result > 0 && result < wanted;
    bool had_to_do_all = is_named(call, "write") || is_named(call, "send") || is_named(call, "sendto") ||
                         (call->flags_argument == 3 && (argument(arch, block, 3) & WAIT_FOR_ALL));
    *fd = (uint64_t)argument(arch, block, 0);
    return is_short && had_to_do_all ? ATTACH_CALL_SHORT : ATTACH_CALL_UNTOUCHED;
}

uint16_t attach_kind_of_call(enum qut_arch_id arch, const struct target_sleep *sleep)
{
    static const struct {
        const char *name;
        uint16_t kind;
    } kinds[] = {
        {"futex", QUT_TRACE_KIND_WAIT},   {"poll", QUT_TRACE_KIND_POLL},        {"ppoll", QUT_TRACE_KIND_POLL},
        {"epoll", QUT_TRACE_KIND_POLL},   {"select", QUT_TRACE_KIND_POLL},      {"_newselect", QUT_TRACE_KIND_POLL},
        {"pselect", QUT_TRACE_KIND_POLL}, {"clock_nano", QUT_TRACE_KIND_SLEEP}, {"nanosleep", QUT_TRACE_KIND_SLEEP},
        {"pause", QUT_TRACE_KIND_SLEEP},  {"read", QUT_TRACE_KIND_READ},        {"recv", QUT_TRACE_KIND_READ},
        {"accept", QUT_TRACE_KIND_READ},  {"write", QUT_TRACE_KIND_WRITE},      {"send", QUT_TRACE_KIND_WRITE},
        {"wait", QUT_TRACE_KIND_WAIT},    {"sem", QUT_TRACE_KIND_WAIT},
    };
    const struct arch_call *call = arch_call(arch, sleep->number);
    for (size_t i = 0; call && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(call->name, kinds[i].name, strlen(kinds[i].name)) == 0)
            return kinds[i].kind;
    return QUT_TRACE_KIND_CALL;
}
