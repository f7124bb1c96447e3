// SPDX-License-Identifier: Apache-2.0
#include "agent/calls/inside.h"
#include "formats/qut_rule.h"

const struct calls_machine calls_machine = {
    .arch = QUT_ARCH_AARCH64,
    .shadow_log2 = QUT_CALLS_AARCH64_SHADOW_LOG2,
    .words_log2 = QUT_CALLS_AARCH64_WORDS_LOG2,
    .address_log2 = QUT_CALLS_AARCH64_ADDRESS_LOG2,
    .slot_bytes = 16,
};

long calls_system(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c,
                     x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
    return x0;
}

uint64_t calls_thread_pointer(void)
{
    uint64_t value;
    __asm__("mrs %0, tpidr_el0" : "=r"(value));
    return value;
}

uint64_t calls_ticks(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}

// There are no probes yet: nobody asks.
void calls_kept_arguments(uint64_t slot, uint64_t arguments[6])
{
    (void)slot;
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = 0;
}

uint64_t calls_kept_result(uint64_t slot)
{
    (void)slot;
    return 0;
}

void calls_kept_registers(uint64_t slot, bool is_exit, struct calls_caller *caller)
{
    (void)slot;
    (void)is_exit;
    caller->pc = 0;
}

uint64_t calls_returns_to(uint64_t slot)
{
    (void)slot;
    return 0;
}

uint64_t calls_jumped_from(uint64_t slot)
{
    (void)slot;
    return 0;
}

bool calls_returns_to_us(uint64_t slot)
{
    (void)slot;
    return false;
}

uint64_t calls_aside(calls_take_stack *take, const struct calls_caller *caller, uint32_t frames)
{
    (void)take;
    (void)caller;
    (void)frames;
    return 0;
}
