// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/system_call.h"

#include <string.h>

// Little-endian, as all of these are here.
static const struct instruction {
    uint8_t arch, size_bytes, code[QUT_SYSTEM_CALL_BYTES];
} instructions[] = {
    {QUT_ARCH_X86_64, 2, {0x0f, 0x05}},              // syscall
    {QUT_ARCH_AARCH64, 4, {0x01, 0x00, 0x00, 0xd4}}, // svc #0
    {QUT_ARCH_ARM, 4, {0x00, 0x00, 0x00, 0xef}},     // svc #0
    {QUT_ARCH_ARM, 2, {0x00, 0xdf}},                 // Thumb: svc #0
    {QUT_ARCH_X86, 2, {0xcd, 0x80}},                 // int $0x80; sysenter returns behind one, too
    {QUT_ARCH_RISCV64, 4, {0x73, 0x00, 0x00, 0x00}}, // ecall
};

unsigned qut_arch_result_register(const struct qut_arch *arch)
{
    return arch->id == QUT_ARCH_RISCV64 ? 10 : 0; // a0; rax, x0, r0, eax
}

bool qut_arch_is_system_call(const struct qut_arch *arch, const uint8_t bytes[QUT_SYSTEM_CALL_BYTES])
{
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const struct instruction *instruction = &instructions[i];
        size_t size = instruction->size_bytes;
        if (instruction->arch == arch->id && memcmp(bytes + QUT_SYSTEM_CALL_BYTES - size, instruction->code, size) == 0)
            return true;
    }
    return false;
}

unsigned qut_arch_system_call_bytes(const struct qut_arch *arch, const uint8_t bytes[QUT_SYSTEM_CALL_BYTES])
{
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const struct instruction *instruction = &instructions[i];
        if (instruction->arch == arch->id && memcmp(bytes, instruction->code, instruction->size_bytes) == 0)
            return instruction->size_bytes;
    }
    return 0;
}
