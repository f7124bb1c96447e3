// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/system_call.h"

#include <string.h>

enum { INSTRUCTIONS = sizeof((struct arch *)NULL)->system_calls / sizeof *((struct arch *)NULL)->system_calls };

bool arch_is_system_call(const struct arch *arch, const uint8_t bytes[ARCH_SYSTEM_CALL_BYTES])
{
    for (unsigned i = 0; i < INSTRUCTIONS; i++) {
        size_t size = arch->system_calls[i].size_bytes;
        if (size && memcmp(bytes + ARCH_SYSTEM_CALL_BYTES - size, arch->system_calls[i].code, size) == 0)
            return true;
    }
    return false;
}

unsigned arch_system_call_bytes(const struct arch *arch, const uint8_t bytes[ARCH_SYSTEM_CALL_BYTES])
{
    for (unsigned i = 0; i < INSTRUCTIONS; i++) {
        size_t size = arch->system_calls[i].size_bytes;
        if (size && memcmp(bytes, arch->system_calls[i].code, size) == 0)
            return (unsigned)size;
    }
    return 0;
}

// mov $number, %eax: b8 and four bytes. Seen in glibc, musl and Go: right before the call, or with moves of arguments
// in between (mov %rcx, %r10 is three bytes). xor %eax, %eax: 31 c0, of the call 0.
static long number_in_x86_code(const uint8_t *code, size_t call_at)
{
    enum { MOVE_BYTES = 5, CLEAR_BYTES = 2, BETWEEN_MOST = 8 };
    if (call_at >= CLEAR_BYTES && code[call_at - 2] == 0x31 && code[call_at - 1] == 0xc0)
        return 0;
    for (size_t between = 0; between <= BETWEEN_MOST && between + MOVE_BYTES <= call_at; between++) {
        const uint8_t *move = code + call_at - between - MOVE_BYTES;
        uint32_t number =
            (uint32_t)move[1] | (uint32_t)move[2] << 8 | (uint32_t)move[3] << 16 | (uint32_t)move[4] << 24;
        if (move[0] == 0xb8 && number <= ARCH_CALL_NUMBER_MOST)
            return (long)number;
    }
    return -1;
}

long arch_call_behind(const struct arch *arch, uint64_t number_register, const uint8_t *code, size_t code_bytes)
{
    if (arch->call_number_reg)
        return number_register <= ARCH_CALL_NUMBER_MOST ? (long)number_register : -1;
    size_t call_bytes = arch->system_calls[0].size_bytes;
    return code_bytes >= call_bytes ? number_in_x86_code(code, code_bytes - call_bytes) : -1;
}
