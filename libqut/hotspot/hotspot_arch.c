// SPDX-License-Identifier: Apache-2.0
#include "libqut/hotspot/hotspot_arch.h"

#include <string.h>

enum { RAX = 0, RDX = 1, RCX = 2, RBX = 3, RSI = 4, RDI = 5, RBP = 6, R11 = 11, R12, R13, R14, R15 }; // DWARF's numbers

// Seen in code of OpenJDK 17 and 25.
static const struct hotspot_step x86_64_steps[] = {
    {7, 3, {0x48, 0x81, 0xec}, HOTSPOT_GROWS, 3, 4},           // sub imm32, %rsp
    {4, 3, {0x48, 0x83, 0xec}, HOTSPOT_GROWS, 3, 1},           // sub imm8, %rsp
    {7, 3, {0x48, 0x81, 0xc4}, HOTSPOT_SHRINKS, 3, 4},         // add imm32, %rsp
    {4, 3, {0x48, 0x83, 0xc4}, HOTSPOT_SHRINKS, 3, 1},         // add imm8, %rsp
    {8, 4, {0x48, 0x89, 0xac, 0x24}, HOTSPOT_STORES_FP, 0, 0}, // mov %rbp, disp32(%rsp)
    {5, 4, {0x48, 0x89, 0x6c, 0x24}, HOTSPOT_STORES_FP, 0, 0}, // mov %rbp, disp8(%rsp)
    {3, 3, {0xc5, 0xf8, 0x77}, HOTSPOT_NOTHING, 0, 0},         // vzeroupper
    {7, 3, {0x49, 0x3b, 0xa7}, HOTSPOT_NOTHING, 0, 0},         // cmp disp32(%r15), %rsp: is a safepoint due?
    {4, 3, {0x49, 0x3b, 0x67}, HOTSPOT_NOTHING, 0, 0},         // cmp disp8(%r15), %rsp
    {6, 2, {0x0f, 0x87}, HOTSPOT_NOTHING, 0, 0},               // ja, to where it is told so
    {7, 3, {0x4d, 0x8b, 0x97}, HOTSPOT_NOTHING, 0, 0},         // mov disp32(%r15), %r10: the page to touch, to 15
    {3, 3, {0x41, 0x85, 0x02}, HOTSPOT_NOTHING, 0, 0},         // test %eax, (%r10)
    {6, 2, {0x85, 0x05}, HOTSPOT_NOTHING, 0, 0},               // test %eax, disp32(%rip), to 9
    {5, 1, {0xe9}, HOTSPOT_JUMPS, 0, 0},                       // jmp rel32
    {1, 1, {0x55}, HOTSPOT_PUSHES_FP, 0, 0},
    {1, 1, {0x5d}, HOTSPOT_POPS_FP, 0, 0},
    {1, 1, {0xc3}, HOTSPOT_RETURNS, 0, 0},
};

static const struct hotspot_take_down x86_64_take_downs[] = {
    {4, {0x59, 0x48, 0x8b, 0xe2}, 1, RCX, RDX},       // pop %rcx; mov %rdx, %rsp
    {4, {0x5e, 0x48, 0x8b, 0xe3}, 1, RSI, RBX},       // pop %rsi; mov %rbx, %rsp
    {5, {0x41, 0x5d, 0x48, 0x8b, 0xe3}, 2, R13, RBX}, // pop %r13; mov %rbx, %rsp
    {4, {0x5f, 0x49, 0x8b, 0xe3}, 1, RDI, R11},       // pop %rdi; mov %r11, %rsp
    {4, {0x5a, 0x48, 0x8b, 0xe3}, 1, RDX, RBX},       // pop %rdx; mov %rbx, %rsp
};

static const struct hotspot_arch known[] = {
    {
        .id = QUT_ARCH_X86_64,
        .fp_reg = RBP,
        .steps = x86_64_steps,
        .step_count = sizeof x86_64_steps / sizeof x86_64_steps[0],
        .call_stub_saved = {{RBX, -9}, {R12, -10}, {R13, -11}, {R14, -12}, {R15, -13}},
        .call_stub_saved_count = 5,
        .sender_sp_reg = R13,
        .bytecode_reg = R13,
        .entry_ra_reg = RAX,
        .entry_pop = 0x58,
        .entry_bytes = {0x50, 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55},
        .entry_sizes = {1, 1, 3, 2},
        .leave = 0xc9,
        .store_bytes = {0x41, 0xc6, 0x87}, // movb imm8, disp32(%r15)
        .store_size = 8,
        .take_downs = x86_64_take_downs,
        .take_down_count = sizeof x86_64_take_downs / sizeof x86_64_take_downs[0],
    },
};

const struct hotspot_arch *hotspot_arch_by_id(enum qut_arch_id id)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].id == id)
            return &known[i];
    return NULL;
}

// Most bytes begin none of the steps: a walk asks this of each frame that was interrupted.
static inline bool is_step(const struct hotspot_step *step, const uint8_t *bytes)
{
    return bytes[0] == step->byte[0] && memcmp(bytes, step->byte, step->compared_bytes) == 0;
}

const struct hotspot_step *hotspot_step_at(const struct hotspot_arch *arch, const uint8_t *bytes, size_t count)
{
    for (unsigned i = 0; i < arch->step_count; i++) {
        const struct hotspot_step *step = &arch->steps[i];
        if (count >= step->size_bytes && is_step(step, bytes))
            return step;
    }
    return NULL;
}

const struct hotspot_step *hotspot_step_before(const struct hotspot_arch *arch, const uint8_t *end, size_t count)
{
    for (unsigned i = 0; i < arch->step_count; i++) {
        const struct hotspot_step *step = &arch->steps[i];
        if (count >= step->size_bytes && is_step(step, end - step->size_bytes))
            return step;
    }
    return NULL;
}

const struct hotspot_step *hotspot_growth_before(const struct hotspot_arch *arch, const uint8_t *end, size_t count)
{
    for (unsigned i = 0; i < arch->step_count && arch->steps[i].effect == HOTSPOT_GROWS; i++) {
        const struct hotspot_step *step = &arch->steps[i];
        if (count >= step->size_bytes && is_step(step, end - step->size_bytes))
            return step;
    }
    return NULL;
}

uint32_t hotspot_step_immediate(const struct hotspot_step *step, const uint8_t *bytes)
{
    uint32_t value = 0;
    memcpy(&value, bytes + step->immediate_at, step->immediate_bytes);
    return value;
}
