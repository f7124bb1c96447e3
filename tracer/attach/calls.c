// SPDX-License-Identifier: Apache-2.0
// System calls that our stop ended, and those that threads sleep in.
//
// A stop makes a call that waits return early. The kernel restarts most of them by itself; a few return EINTR instead,
// as if a handler had run (libqut/arch/calls.c). We only stop threads that run, but one may fall asleep in such a call
// in the microseconds before the stop arrives. As it returns, its result is in a register, where we can still make it
// another one: not EINTR but ERESTARTNOHAND, which the kernel turns into EINTR if a handler of the program's own runs
// now, and else into a restart: what it does for pause, poll and the like. So a signal that arrives at this very moment
// is seen as ever, and the masks of epoll_pwait are as they must be. The call waits anew, so a timeout begins anew:
// at most the time since the thread was seen to run is added.
#include <errno.h>
#include <string.h>

#include "tracer/attach/session.h"

enum { ERESTART_NO_HANDLER = 514, WAIT_FOR_ALL = 0x100, CLONE3 = 435 };

// Where registers are in the block of NT_PRSTATUS: the x86 kernels alone look at a result after the stop (others decide
// before it).
static const struct call_layout {
    enum qut_arch_id arch;
    uint8_t word_bytes, result, number, arguments[4], clone;
} layouts[] = {
    {QUT_ARCH_X86_64, 8, 80, 120, {112, 104, 96, 56}, 56},
    {QUT_ARCH_X86, 4, 24, 44, {0, 4, 8, 12}, 120},
};

static int64_t get(const struct call_layout *layout, const uint8_t *block, unsigned offset)
{
    int64_t wide;
    int32_t narrow;
    if (layout->word_bytes == sizeof wide) {
        memcpy(&wide, block + offset, sizeof wide);
        return wide;
    }
    memcpy(&narrow, block + offset, sizeof narrow);
    return narrow;
}

static bool is_named(const struct qut_call *call, const char *name)
{
    return strcmp(call->name, name) == 0;
}

static const struct call_layout *layout_of(enum qut_arch_id arch)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].arch == arch)
            return &layouts[i];
    return NULL;
}

bool attach_is_newborn(enum qut_arch_id arch, const void *block)
{
    const struct call_layout *layout = layout_of(arch);
    if (!layout || get(layout, block, layout->result) != 0)
        return false;
    int64_t number = get(layout, block, layout->number);
    return number == layout->clone || number == CLONE3;
}

enum attach_call attach_mend_call(enum qut_arch_id arch, void *block, uint64_t *fd)
{
    const struct call_layout *layout = layout_of(arch);
    if (!layout)
        return ATTACH_CALL_UNTOUCHED;
    int64_t number = get(layout, block, layout->number), result = get(layout, block, layout->result);
    const struct qut_call *call = number < 0 ? NULL : qut_arch_call(arch, (long)number);
    if (!call || call->effect == QUT_CALL_RESTARTED)
        return ATTACH_CALL_UNTOUCHED;
    if (result == -EINTR) {
        // What a driver has done by then nobody knows.
        if (is_named(call, "ioctl"))
            return ATTACH_CALL_DISTURBED;
        result = -ERESTART_NO_HANDLER;
        memcpy((uint8_t *)block + layout->result, &result, layout->word_bytes);
        return ATTACH_CALL_RESTARTED;
    }
    int64_t wanted = get(layout, block, layout->arguments[2]);
    bool is_short = result > 0 && result < wanted;
    bool had_to_do_all = is_named(call, "write") || is_named(call, "send") || is_named(call, "sendto") ||
                         (call->flags_argument == 3 && (get(layout, block, layout->arguments[3]) & WAIT_FOR_ALL));
    *fd = (uint64_t)get(layout, block, layout->arguments[0]);
    return is_short && had_to_do_all ? ATTACH_CALL_SHORT : ATTACH_CALL_UNTOUCHED;
}

uint16_t attach_kind_of_call(enum qut_arch_id arch, const struct qut_sleep *sleep)
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
    const struct qut_call *call = qut_arch_call(arch, sleep->number);
    for (size_t i = 0; call && i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(call->name, kinds[i].name, strlen(kinds[i].name)) == 0)
            return kinds[i].kind;
    return QUT_TRACE_KIND_CALL;
}
