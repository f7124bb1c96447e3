// SPDX-License-Identifier: Apache-2.0
#include "tracer/inject/frame_x86_64.h"

#include <assert.h>
#include <string.h>

enum {
    HAS_XSTATE = 1,
    HAS_SS = 2,
    STRICT_SS = 4,
    NO_ALTERNATE_STACK_MODE = 0x7fffffff, // no such mode: the kernel leaves the alternate stack as it is
    MAGIC1 = 0x46505853,
    MAGIC2 = 0x46505845,
    SOFTWARE_BYTES_OFFSET = 464, // of an FXSAVE area
};

// struct ucontext of <asm/ucontext.h>, with struct sigcontext_64.
struct kernel_context {
    uint64_t flags, link;
    uint64_t stack_address;
    int32_t stack_flags;
    uint32_t padding;
    uint64_t stack_bytes;
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
    uint16_t cs, gs, fs, ss;
    uint64_t error, trap, old_mask, cr2, state_address, reserved[8];
    uint64_t mask;
};
static_assert(sizeof(struct kernel_context) == FRAME_CONTEXT_BYTES, "the kernel's");

struct software_bytes {
    uint32_t magic1, extended_bytes;
    uint64_t features;
    uint32_t state_bytes, zero[7];
};

void inject_frame_write(const struct frame_context *context, uint64_t state_address,
                        uint8_t ucontext[FRAME_CONTEXT_BYTES], uint8_t state[FRAME_STATE_BYTES_MAX + 64])
{
    const struct user_regs_struct *from = &context->registers;
    const struct kernel_context frame = {
        .flags = HAS_XSTATE | HAS_SS | STRICT_SS,
        .stack_flags = NO_ALTERNATE_STACK_MODE,
        .r8 = from->r8,
        .r9 = from->r9,
        .r10 = from->r10,
        .r11 = from->r11,
        .r12 = from->r12,
        .r13 = from->r13,
        .r14 = from->r14,
        .r15 = from->r15,
        .rdi = from->rdi,
        .rsi = from->rsi,
        .rbp = from->rbp,
        .rbx = from->rbx,
        .rdx = from->rdx,
        .rax = from->rax,
        .rcx = from->rcx,
        .rsp = from->rsp,
        .rip = from->rip,
        .eflags = from->eflags,
        .cs = (uint16_t)from->cs,
        .ss = (uint16_t)from->ss,
        .state_address = state_address,
        .mask = context->mask,
    };
    memcpy(ucontext, &frame, sizeof frame);
    memcpy(state, context->state, context->state_bytes);
    // ptrace gives in the first of these bytes which parts the processor saves.
    struct software_bytes software = {.magic1 = MAGIC1,
                                      .extended_bytes = (uint32_t)context->state_bytes + 4,
                                      .state_bytes = (uint32_t)context->state_bytes};
    memcpy(&software.features, context->state + SOFTWARE_BYTES_OFFSET, sizeof software.features);
    memcpy(state + SOFTWARE_BYTES_OFFSET, &software, sizeof software);
    const uint32_t magic2 = MAGIC2;
    memcpy(state + context->state_bytes, &magic2, sizeof magic2);
}
