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
