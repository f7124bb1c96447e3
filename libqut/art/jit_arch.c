// SPDX-License-Identifier: Apache-2.0
#include "libqut/art/jit_methods.h"
#include "libqut/art/traced.h"

const struct art_jit_arch *art_jit_arch(const struct arch *arch)
{
    static const struct art_jit_arch x86_64 = {
        .may_save_core = 0x1f028, // rbx rbp r12-r15, and the return address
        .may_save_fp = 0xf000,    // xmm12-15
        .callee_saves = 0xf028,
        .ra_number = 16,
        .dwarf_numbers = {0, 2, 1, 3, 7, 6, 4, 5},
    };
    return arch->id == QUT_ARCH_X86_64 ? &x86_64 : NULL;
}

const struct art_traced_layout *art_traced_layout(const struct arch *arch)
{
    static const struct art_traced_layout x86_64 = {
        .core_thread_at = 22 * 8, // gs_base
        .self_at = 0xe8,
        .returns_at = 0x140,
    };
    return arch->id == QUT_ARCH_X86_64 ? &x86_64 : NULL;
}

const struct art_jit_records *art_jit_records(const struct arch *arch)
{
    static const struct art_jit_records x86_64 = {
        .cache_at = 0x218,
        .code_at = 0x2a0,
        .methods_at = 0x370,
        .method_count_at = 0x388,
        .under_way_at = 0x440,
        .made_at = 0x458,
        .entered_at = 0x460,
        .begun_at = 0x468,
        .left_at = 16,
        .right_at = 24,
        .key_at = 32,
        .value_at = 40,
        .flags_at = 4,
        .bytecode_at = 8,
        .dex_cache_at = 16,
        .dex_file_at = 16,
        .file_begin_at = 8,
        .data_at = 24,
    };
    return arch->id == QUT_ARCH_X86_64 ? &x86_64 : NULL;
}
