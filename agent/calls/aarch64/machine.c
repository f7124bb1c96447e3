// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stddef.h>
#include <ucontext.h>

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

// stub.S: what lies in its frame below the slot.
static uint64_t kept_at(uint64_t slot, unsigned offset)
{
    enum { FRAME = 272 };
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

void calls_kept_registers(uint64_t slot, bool is_exit, struct calls_caller *caller)
{
    enum { X19_AT = 176 };
    (void)is_exit; // the stub has the same frame there
    *caller = (struct calls_caller){.pc = calls_returns_to(slot), .sp = slot};
    for (unsigned i = 0; i < CALLS_CALLER_KEPT; i++)
        caller->kept[i] = kept_at(slot, X19_AT + 8 * i);
}

// At the call itself, whose rules are those that hold. The return address is none of its own registers' then.
void calls_caller_context(const struct calls_caller *caller, struct calls_context *context)
{
    enum {
        FIRST = offsetof(ucontext_t, uc_mcontext.regs) / sizeof(uint64_t),
        X19 = 19,
        SP = 31,
        PC = 32,
        CALL_BYTES = 4
    };
    static_assert(FIRST + PC < sizeof context->words / sizeof *context->words, "it has room");
    *context = (struct calls_context){{0}};
    context->words[FIRST + PC] = caller->pc - CALL_BYTES;
    context->words[FIRST + SP] = caller->sp;
    for (unsigned i = 0; i < CALLS_CALLER_KEPT; i++)
        context->words[FIRST + X19 + i] = caller->kept[i];
}

// All vectors, of 128 bits: what scalable ones have beyond that is nobody's at a call of a function that takes none.
#define EACH_PAIR(OF)                                                                                                  \
    OF("q0", "q1", "0")                                                                                                \
    OF("q2", "q3", "32")                                                                                               \
    OF("q4", "q5", "64") OF("q6", "q7", "96") OF("q8", "q9", "128") OF("q10", "q11", "160") OF("q12", "q13", "192")    \
        OF("q14", "q15", "224") OF("q16", "q17", "256") OF("q18", "q19", "288") OF("q20", "q21", "320")                \
            OF("q22", "q23", "352") OF("q24", "q25", "384") OF("q26", "q27", "416") OF("q28", "q29", "448")            \
                OF("q30", "q31", "480")
#define STORE(A, B, AT) "stp " A ", " B ", [%0, #" AT "]\n\t"
#define LOAD(A, B, AT)  "ldp " A ", " B ", [%0, #" AT "]\n\t"

__attribute__((noinline)) uint64_t calls_aside(calls_take_stack *take, const struct calls_caller *caller,
                                               uint32_t frames)
{
    enum { VECTOR_BYTES = 16, VECTORS = 32 };
    _Alignas(16) uint8_t area[VECTORS * VECTOR_BYTES];
    uint8_t *at = area;
    uint64_t status, control;
    __asm__ volatile(EACH_PAIR(STORE) "mrs %1, fpsr\n\tmrs %2, fpcr"
                     : "+r"(at), "=&r"(status), "=&r"(control)
                     :
                     : "memory");
    const uint64_t taken = take(caller, frames);
    __asm__ volatile(EACH_PAIR(LOAD) "msr fpsr, %1\n\tmsr fpcr, %2" : : "r"(at), "r"(status), "r"(control) : "memory");
    return taken;
}
