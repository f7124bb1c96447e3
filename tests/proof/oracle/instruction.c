// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/oracle/instruction.h"

#include <string.h>

static uint32_t word_at(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

static bool is_x86_prefix(uint8_t byte, bool is_64)
{
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x36 ||
           byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65 || byte == 0xf0 ||
           (is_64 && (byte & 0xf0) == 0x40);
}

static enum instruction_kind x86_kind(bool is_64, const uint8_t *bytes, size_t size)
{
    while (size > 1 && is_x86_prefix(*bytes, is_64)) {
        bytes++;
        size--;
    }
    uint8_t op = bytes[0], next = size > 1 ? bytes[1] : 0;
    if (op == 0xe8 || (op == 0xff && ((next >> 3 & 7) == 2 || (next >> 3 & 7) == 3)))
        return INSTRUCTION_CALL;
    if (op == 0xeb || op == 0xe9 || (op & 0xf0) == 0x70 || (op & 0xfc) == 0xe0 || (op == 0x0f && (next & 0xf0) == 0x80))
        return INSTRUCTION_JUMP;
    if ((op == 0x0f && (next == 0x05 || next == 0x34)) || (op == 0xcd && next == 0x80))
        return INSTRUCTION_SYSCALL;
    return INSTRUCTION_OTHER;
}

static enum instruction_kind aarch64_kind(uint32_t word)
{
    if (word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfefff800) == 0xd63f0800)
        return INSTRUCTION_CALL; // bl, blr, blraa and its like
    if (word >> 26 == 0x05 || word >> 24 == 0x54 || (word & 0x7c000000) == 0x34000000)
        return INSTRUCTION_JUMP; // b, b.cond, cbz, cbnz, tbz, tbnz
    return (word & 0xffe0001f) == 0xd4000001 ? INSTRUCTION_SYSCALL : INSTRUCTION_OTHER;
}

static enum instruction_kind arm_kind(uint32_t word)
{
    if ((word & 0xfe000000) == 0xfa000000 || (word & 0x0ffffff0) == 0x012fff30)
        return INSTRUCTION_CALL; // blx
    if (word >> 28 == 0xf)
        return INSTRUCTION_OTHER;
    switch (word >> 24 & 0xf) {
    case 0xb: return INSTRUCTION_CALL;
    case 0xa: return INSTRUCTION_JUMP;
    case 0xf: return INSTRUCTION_SYSCALL;
    default: return INSTRUCTION_OTHER;
    }
}

static enum instruction_kind thumb_kind(uint16_t first, uint16_t second, bool is_wide)
{
    if (is_wide) {
        if ((first & 0xf800) != 0xf000 || !(second & 0x8000))
            return INSTRUCTION_OTHER;
        if (second & 0x4000)
            return INSTRUCTION_CALL; // bl, blx
        bool conditional = !(second & 0x1000);
        return conditional && (first & 0x0380) == 0x0380 ? INSTRUCTION_OTHER : INSTRUCTION_JUMP;
    }
    if ((first & 0xff80) == 0x4780)
        return INSTRUCTION_CALL; // blx register
    if ((first & 0xff00) == 0xdf00)
        return INSTRUCTION_SYSCALL;
    if ((first & 0xf000) == 0xd000 || (first & 0xf800) == 0xe000 || (first & 0xf500) == 0xb100)
        return INSTRUCTION_JUMP; // b, b.cond, cbz, cbnz
    return INSTRUCTION_OTHER;
}

enum instruction_kind instruction_kind(const struct arch *arch, bool thumb, const uint8_t *bytes, size_t size)
{
    if (arch->id == QUT_ARCH_X86_64 || arch->id == QUT_ARCH_X86)
        return x86_kind(arch->id == QUT_ARCH_X86_64, bytes, size);
    if (thumb) {
        uint16_t first, second = 0;
        memcpy(&first, bytes, 2);
        if (size >= 4)
            memcpy(&second, bytes + 2, 2);
        return thumb_kind(first, second, size >= 4);
    }
    if (size < 4)
        return INSTRUCTION_OTHER;
    return arch->id == QUT_ARCH_ARM ? arm_kind(word_at(bytes)) : aarch64_kind(word_at(bytes));
}

bool instruction_is_signal_return(const struct arch *arch, const uint8_t bytes[SIGNAL_RETURN_BYTES])
{
    static const struct {
        enum qut_arch_id arch;
        uint8_t size, code[SIGNAL_RETURN_BYTES];
    } known[] = {
        {QUT_ARCH_X86_64, 9, {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}}, // mov $15, %rax; syscall
        {QUT_ARCH_X86, 7, {0xb8, 0xad, 0, 0, 0, 0xcd, 0x80}},                // mov $173, %eax; int $0x80
        {QUT_ARCH_X86, 8, {0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80}},          // pop %eax; mov $119, %eax; int $0x80
        {QUT_ARCH_AARCH64, 8, {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}},   // mov x8, #139; svc #0
        {QUT_ARCH_ARM, 8, {0xad, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef}},          // mov r7, #173; svc #0
        {QUT_ARCH_ARM, 4, {0xad, 0x27, 0x00, 0xdf}},                         // the same in Thumb
        {QUT_ARCH_ARM, 6, {0x4f, 0xf0, 0xad, 0x07, 0x00, 0xdf}},             // the same, mov.w
        {QUT_ARCH_ARM, 6, {0x4f, 0xf0, 0x77, 0x07, 0x00, 0xdf}},             // mov.w r7, #119; svc #0
        {QUT_ARCH_ARM, 8, {0x77, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef}},          // mov r7, #119; svc #0
        {QUT_ARCH_ARM, 4, {0x77, 0x27, 0x00, 0xdf}},                         // the same in Thumb
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].arch == arch->id && memcmp(known[i].code, bytes, known[i].size) == 0)
            return true;
    return false;
}
