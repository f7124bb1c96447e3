// SPDX-License-Identifier: Apache-2.0
// Time that the kernel works for a thread. Perf's clock ticks in user mode alone (elsewhere it would end calls), so a
// timer of processor time runs beside it. The kernel looks at such a timer in its own tick, and sends the signal on the
// way back to user mode: a tick that met a system call comes right behind the call, with the stack of that call. In the
// same tick the kernel says whether it met user mode: its split of the thread's time (utime, stime) grew on one side.
//
//   the kernel's share of a window = (all - user) / all, each as grown since the timer's last tick
//
// Where the kernel counts by ticks, that is 0 or 1 for a window of one tick. Where it counts at each entry, it is a
// part: it is kept for the next tick that meets a call. Measured on a thread that computes for 66 % of its time and
// writes for the rest: perf's clock alone gave 99 : 1, the two together 66 : 34.
#include "formats/qut_trace.h"
#include "libqut/arch/native.h"
#include "libqut/arch/system_call.h"
#include "libqut/os/usage.h"
#include "libqut/sample/inside.h"
#include "libqut/segment/segment.h"

// A thread that shares its processor is met by chance: of redis, which waits after each answer, the time between two of
// its ticks was that of a decay, with a mean of 1.7 ticks. Cut at twice a tick, a third of its kernel time was missing.
enum { WINDOW_TICKS = 8 };

static uint64_t faults_so_far(void)
{
    struct os_usage usage;
    return os_thread_usage(&usage) ? usage.minor_faults + usage.major_faults : 0;
}

void sample_kernel_begin(struct sample_ticker *ticker)
{
    ticker->seen_times = ticker->times;
    ticker->kernel_ns = 0;
    ticker->faults_seen = UINT64_MAX; // not known: the first look only notes
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

// The call that the thread has just come out of. False: it was not in one.
static bool find_call(const void *ucontext, uint32_t *code)
{
    const struct arch *arch = &arch_native_arch;
    const struct arch_register_layout *layout = arch->ucontext_registers;
    uintptr_t block = (uintptr_t)ucontext, pc = os_load(block + layout->pc_offset);
    uint8_t bytes[ARCH_CALL_CODE_BYTES] = {0};
    size_t wanted = sizeof bytes;
    if (os_read_self(pc - wanted, bytes, wanted) != wanted) { // code may begin less far in front of it
        wanted = ARCH_SYSTEM_CALL_BYTES;
        if (os_read_self(pc - wanted, bytes, wanted) != wanted)
            return false;
    }
    if (!arch_is_system_call(arch, bytes + wanted - ARCH_SYSTEM_CALL_BYTES))
        return false;
    uint64_t number_register = arch->call_number_reg ? os_load(block + layout->reg_offset[arch->call_number_reg]) : 0;
    long number = arch_call_behind(arch, number_register, bytes, wanted);
    *code = number < 0 ? (uint32_t)QUT_TRACE_KERNEL_CALL : (uint32_t)(QUT_TRACE_KERNEL_CALLS + number);
    return true;
}

// A forbidden getrusage ends some programs: those that settled.
static uint32_t code_without_call(struct sample_ticker *ticker)
{
    if (atomic_load_explicit(&sample_sampler.is_settled, memory_order_relaxed))
        return QUT_TRACE_KERNEL_OTHER;
    uint64_t faults = faults_so_far(), before = ticker->faults_seen;
    ticker->faults_seen = faults;
    return faults > before ? QUT_TRACE_KERNEL_FAULT : QUT_TRACE_KERNEL_OTHER;
}

// A tick that meets a handler of ours has to wait until that has ended, and comes right behind it.
static bool is_behind_handler(const struct sample_ticker *ticker, uint64_t within_ns)
{
    uint64_t now_ns = os_now_ns();
    return ticker->handler_left_ns && now_ns - ticker->handler_left_ns < within_ns;
}

bool sample_kernel_look(struct sample_ticker *ticker, const void *ucontext, struct sample_kernel_tick *tick)
{
    struct os_task_times now, before = ticker->seen_times;
    if (!os_task_times(atomic_load_explicit(&ticker->tid, memory_order_relaxed), &now))
        return false;
    ticker->seen_times = now;
    uint64_t window_ns = since(now.cpu_ns, before.cpu_ns), all_ns = since(now.all_ns, before.all_ns);
    uint64_t user_ns = since(now.user_ns, before.user_ns), kernel_ns = since(all_ns, user_ns);
    // On a machine whose other tenants are busy its tick may be away for long, and then tells of the last moment only.
    // Perf's clock knows of the rest; without it each tick stands for all since the one before.
    if (sample_ticker_has_event(ticker) && window_ns > WINDOW_TICKS * all_ns)
        window_ns = WINDOW_TICKS * all_ns;
    if (is_behind_handler(ticker, SAMPLE_OWN_NS)) {
        *tick = (struct sample_kernel_tick){.code = QUT_TRACE_KERNEL_OWN, .cpu_ns = segment_whole_units(&window_ns)};
        ticker->seen_times.cpu_ns -= window_ns; // what is left is in the next window
        return tick->cpu_ns != 0;
    }
    if (kernel_ns == 0)
        return false;
    ticker->kernel_ns += (uint64_t)((double)window_ns * ((double)kernel_ns / (double)all_ns));
    if (!find_call(ucontext, &tick->code)) {
        if (user_ns)
            return false;
        tick->code = code_without_call(ticker);
        // What the kernel does to come back from a handler takes 5 to 9 us on some virtual machines.
        if (tick->code == QUT_TRACE_KERNEL_OTHER && is_behind_handler(ticker, SAMPLE_OWN_MOST_NS))
            tick->code = QUT_TRACE_KERNEL_OWN;
    }
    tick->cpu_ns = segment_whole_units(&ticker->kernel_ns);
    return tick->cpu_ns != 0;
}
