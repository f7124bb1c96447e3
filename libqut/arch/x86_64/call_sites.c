// SPDX-License-Identifier: Apache-2.0
#include "libqut/arch/x86_64/definition.h"

// call rel32 (e8), and call of a register or of memory (ff /2) in each length that ModRM and SIB give it. A prefix
// before it does not matter.
const struct arch_call_site arch_x86_64_call_sites[ARCH_X86_64_CALL_SITES] = {
    {5, {0xff, 0x00}, {0xe8, 0x00}}, // call rel32
    {2, {0xff, 0xf8}, {0xff, 0xd0}}, // call *%reg
    {2, {0xff, 0xf8}, {0xff, 0x10}}, // call *(%reg)
    {3, {0xff, 0xf8}, {0xff, 0x50}}, // call *disp8(%reg)
    {3, {0xff, 0xff}, {0xff, 0x14}}, // call *(%reg,%index)
    {4, {0xff, 0xff}, {0xff, 0x54}}, // call *disp8(%reg,%index)
    {6, {0xff, 0xf8}, {0xff, 0x90}}, // call *disp32(%reg)
    {6, {0xff, 0xff}, {0xff, 0x15}}, // call *disp32(%rip)
    {7, {0xff, 0xff}, {0xff, 0x94}}, // call *disp32(%reg,%index)
    {7, {0xff, 0xff}, {0xff, 0x14}}, // call *disp32(,%index)
};

const struct arch_frame_edge arch_x86_64_frame_edges[ARCH_X86_64_FRAME_EDGES] = {
    {.at_bytes = 1, .at = {0x55}},                   // push %rbp; it comes first
    {.at_bytes = 4, .at = {0xf3, 0x0f, 0x1e, 0xfa}}, // endbr64; push
    {.before_bytes = 1, .before = {0x55}, .at_bytes = 3, .at = {0x48, 0x89, 0xe5}, .saved_words = 1}, // mov %rsp, %rbp
    {.before_bytes = 1, .before = {0x55}, .at_bytes = 3, .at = {0x48, 0x8b, 0xec}, .saved_words = 1}, // the same
    {.at_bytes = 1, .at = {0xc3}},                                                                    // ret
    {.at_bytes = 1, .at = {0xc2}},                                                                    // ret imm16
    {.at_bytes = 2, .at = {0xf3, 0xc3}},                                                              // rep ret
};
