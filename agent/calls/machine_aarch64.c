// SPDX-License-Identifier: Apache-2.0
#include "agent/calls/inside.h"
#include "formats/qut_rule.h"

const struct calls_machine calls_machine = {
    .arch = QUT_ARCH_AARCH64,
    .shadow_log2 = QUT_CALLS_AARCH64_SHADOW_LOG2,
    .words_log2 = QUT_CALLS_AARCH64_WORDS_LOG2,
    .address_log2 = QUT_CALLS_AARCH64_ADDRESS_LOG2,
    .slot_bytes = 16,
    .times_log2 = 36,
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

uint64_t calls_slot(uint64_t word)
{
    const uint64_t stored = ((uint64_t)1 << QUT_CALLS_SLOT_BITS) - 1;
    return (qut_calls_word_slot(word) & stored) | ((uintptr_t)__builtin_frame_address(0) & ~stored);
}

// stub_aarch64.S: what lies in its frame, of 176 bytes below the slot.
static uint64_t kept_at(uint64_t slot, unsigned offset)
{
    enum { FRAME = 176 };
    return *(const uint64_t *)(slot - FRAME + offset);
}

void calls_kept_arguments(uint64_t slot, uint64_t arguments[6])
{
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = kept_at(slot, 8 * i);
}

uint64_t calls_kept_result(uint64_t slot)
{
    return kept_at(slot, 0);
}

// At an exit it is in x30 by now, and no longer in the shadow.
uint64_t calls_returns_to(uint64_t slot)
{
    enum { X30_AT = 152 };
    const uint64_t shadow = *(const uint64_t *)(slot - calls_distance(calls_machine.shadow_log2));
    return shadow ? shadow : kept_at(slot, X30_AT);
}

uint64_t calls_jumped_from(uint64_t slot)
{
    enum { JUMPED_FROM_AT = 168 };
    return kept_at(slot, JUMPED_FROM_AT);
}

// No stacks are taken here yet: nobody asks.
void calls_kept_registers(uint64_t slot, bool is_exit, struct calls_caller *caller)
{
    (void)slot;
    (void)is_exit;
    caller->pc = 0;
}

uint64_t calls_aside(calls_take_stack *take, const struct calls_caller *caller, uint32_t frames)
{
    (void)take;
    (void)caller;
    (void)frames;
    return 0;
}
