// SPDX-License-Identifier: Apache-2.0
// Coprocessors, floating point, vectors: what of them meets core registers.
#include "qutc/code/arm/inside.h"

// vldr, vstr, vldm, vpush and others: an offset in words.
static void transfer(const struct code_arm *a)
{
    struct code_instruction *in = a->in;
    uint32_t word = a->word;
    bool before = word >> 24 & 1, up = word >> 23 & 1, writes_back = word >> 21 & 1, loads = word >> 20 & 1;
    unsigned base = code_arm_field(word, 16, 4), words = code_arm_field(word, 0, 8);
    bool is_vfp = code_arm_field(word, 9, 3) == 5;
    int32_t bytes = 4 * (int32_t)words;
    unsigned stored = !is_vfp || (before && !writes_back) ? (word >> 8 & 1 ? 8 : 4) : words < 32 ? words * 4 : 128;
    int32_t offset = before ? (up ? bytes : -bytes) : 0;
    if (base == CODE_ARM_PC) {
        if (writes_back)
            code_arm_unknown(a);
        return;
    }
    if (writes_back && before) {
        code_set(in, base, base, up ? bytes : -bytes);
        offset = 0;
    }
    if (!loads && stored)
        code_store(in, base, offset, CODE_REG_NONE, stored);
    if (writes_back && !before)
        code_set(in, base, base, up ? bytes : -bytes);
}

void code_arm_coprocessor(const struct code_arm *a)
{
    uint32_t word = a->word;
    unsigned coprocessor = code_arm_field(word, 8, 4);
    bool loads = word >> 20 & 1;
    if (word >> 28 == 15 && coprocessor >= 8 && coprocessor < 14) // vectors that came later: none has core registers
        return;
    if (!(word >> 25 & 1)) {
        if ((word & 0x0fe00000) == 0x0c400000) { // to or from two core registers
            if (loads) {
                code_arm_lose(a, code_arm_field(word, 12, 4));
                code_arm_lose(a, code_arm_field(word, 16, 4));
            }
        } else if ((word & 0x0fa00000) == 0x0c000000) {
            code_arm_unknown(a);
        } else {
            transfer(a);
        }
    } else if (word >> 4 & 1 && loads) { // to one; to the flags
        if (code_arm_field(word, 12, 4) == CODE_ARM_PC)
            code_arm_lose_flags(a);
        else
            code_lose(a->in, code_arm_field(word, 12, 4));
    }
}

void code_arm_structures(const struct code_arm *a)
{
    // One to four vectors of 8 bytes, by type; or one element of each, or one for all elements of each.
    static const uint8_t registers[16] = {4, 4, 4, 2, 3, 3, 3, 1, 2, 2, 2};
    uint32_t word = a->word;
    unsigned base = code_arm_field(word, 16, 4), by = code_arm_field(word, 0, 4), type = code_arm_field(word, 8, 4);
    bool is_element = word >> 23 & 1, loads = word >> 21 & 1;
    unsigned size = type >> 2, bytes = is_element ? ((type & 3) + 1) << (size == 3 ? code_arm_field(word, 6, 2) : size)
                                                  : registers[type] * 8u;
    if (base == CODE_ARM_PC) {
        code_arm_unknown(a);
        return;
    }
    if (!loads && bytes)
        code_store(a->in, base, 0, CODE_REG_NONE, bytes);
    if (by == CODE_ARM_SP && !(is_element && size == 3 && (type & 3) != 0))
        code_set(a->in, base, base, bytes);
    else if (by != CODE_ARM_PC)
        code_lose(a->in, base);
}
