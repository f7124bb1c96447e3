// SPDX-License-Identifier: Apache-2.0
#include "agent/calls/inside.h"
#include "formats/qut_rule.h"

const struct calls_machine calls_machine = {
    .arch = QUT_ARCH_X86_64,
    .shadow_log2 = QUT_CALLS_X86_64_SHADOW_LOG2,
    .words_log2 = QUT_CALLS_X86_64_WORDS_LOG2,
    .address_log2 = QUT_CALLS_X86_64_ADDRESS_LOG2,
    .slot_bytes = 8,
    .times_log2 = 44,
    .slot_holds_exit = true,
};

long calls_system(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

uint64_t calls_thread_pointer(void)
{
    uint64_t value;
    __asm__("movq %%fs:0, %0" : "=r"(value));
    return value;
}

uint64_t calls_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

// stub_x86_64.S: what calls_enter keeps itself, and what call_c keeps in its frame of 192 bytes.
void calls_kept_arguments(uint64_t slot, uint64_t arguments[6])
{
    static const uint16_t below[6] = {160, 56, 32, 48, 168, 176}; // rdi, rsi, rdx, rcx, r8, r9
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = *(const uint64_t *)(slot - below[i]);
}

uint64_t calls_kept_result(uint64_t slot)
{
    return *(const uint64_t *)(slot - 8);
}
