// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/aarch64/definition.h"

const struct arch_call_site arch_aarch64_call_sites[ARCH_AARCH64_CALL_SITES] = {
    {2, {0x00, 0xfc}, {0x00, 0x94}}, // bl
    {2, {0xff, 0xfe}, {0x3f, 0xd6}}, // blr, blraa and its like
};
