// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <cpuid.h>
#include <stddef.h>
#include <ucontext.h>

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
    .place_stub = calls_place,
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

uint64_t calls_slot(uint64_t word)
{
    return qut_calls_word_slot(word);
}

// stub.S: what calls_enter keeps itself, and what call_c keeps in its frame of 192 bytes.
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

uint64_t calls_returns_to(uint64_t slot)
{
    return *(const uint64_t *)(slot - calls_distance(calls_machine.shadow_log2));
}

uint64_t calls_jumped_from(uint64_t slot)
{
    return *(const uint64_t *)(slot - 64);
}

// Those of call_c's frame. At an exit that lies one word further out.
void calls_kept_registers(uint64_t slot, bool is_exit, struct calls_caller *caller)
{
    const uint64_t frame = slot - 192 + (is_exit ? 8 : 0);
    const uint64_t *kept = (const uint64_t *)(frame + 48);
    *caller = (struct calls_caller){.pc = calls_returns_to(slot), .sp = slot + 8};
    for (unsigned i = 0; i < 6; i++)
        caller->kept[i] = kept[i];
}

// One byte before the return address lies in the call: there the rules of the calling function are those that hold.
void calls_caller_context(const struct calls_caller *caller, struct calls_context *context)
{
    static const uint8_t kept[6] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15};
    enum { FIRST = offsetof(ucontext_t, uc_mcontext.gregs) / sizeof(greg_t) };
    static_assert(FIRST + NGREG <= sizeof context->words / sizeof *context->words, "it has room");
    *context = (struct calls_context){{0}};
    context->words[FIRST + REG_RIP] = caller->pc - 1;
    context->words[FIRST + REG_RSP] = caller->sp;
    for (unsigned i = 0; i < 6; i++)
        context->words[FIRST + kept[i]] = caller->kept[i];
}

// ---- registers that are not general

enum {
    STATES = 0xe6,     // of XCR0: SSE, AVX, AVX-512. Not x87, which nobody in between uses
    AREA_BYTES = 2816, // XSAVE's plain form of these
    HEADER_AT = 512,   // behind what FXSAVE has; its words beside the first have to be 0
    HEADER_BYTES = 64,
    CANNOT = 1,
    BY_FXSAVE = 2,
    BY_XSAVE = 3,
};

// How they are kept: what the kernel has switched on, and whether there is room for it.
static uint32_t ways(void)
{
    uint32_t a, b, c, d, low, high;
    __cpuid(1, a, b, c, d);
    if (!(c & 1u << 27)) // OSXSAVE
        return BY_FXSAVE;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    for (uint32_t i = 2; i < 8; i++) {
        if (!(low & STATES & 1u << i))
            continue;
        __cpuid_count(13, i, a, b, c, d);
        if (a + b > AREA_BYTES)
            return CANNOT;
    }
    return BY_XSAVE;
}

__attribute__((noinline)) uint64_t calls_aside(calls_take_stack *take, const struct calls_caller *caller,
                                               uint32_t frames)
{
    static uint32_t known; // 0: not yet
    _Alignas(64) uint8_t area[AREA_BYTES];
    uint32_t way = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (way == 0) {
        way = ways();
        __atomic_store_n(&known, way, __ATOMIC_RELAXED);
    }
    if (way == CANNOT)
        return 0;
    if (way == BY_FXSAVE) {
        __asm__ volatile("fxsave64 (%0)" : : "r"(area) : "memory");
    } else {
        for (unsigned i = 0; i < HEADER_BYTES / 8; i++)
            *(volatile uint64_t *)(void *)(area + HEADER_AT + 8 * i) = 0;
        __asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(STATES), "d"(0) : "memory");
    }
    const uint64_t taken = take(caller, frames);
    if (way == BY_FXSAVE)
        __asm__ volatile("fxrstor64 (%0)" : : "r"(area) : "memory");
    else
        __asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"(STATES), "d"(0) : "memory");
    return taken;
}
