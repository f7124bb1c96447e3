// SPDX-License-Identifier: Apache-2.0
// Where frames of ART's JIT stood that walks have left: to look for the method and to follow its instructions takes a
// hundred times as long as to see that all is as it was. Shared by all threads.
#ifndef QUT_MODULES_ART_MEMO_H
#define QUT_MODULES_ART_MEMO_H

#include "libqut/art/jit_code.h"

#pragma GCC visibility push(hidden)

// Of a return address. True: the same method stands there as then, by the chunk and the header before it, by what its
// CodeInfo begins with, and by the call before pc. Seven small system calls. Signal-safe.
bool modules_art_recall(uintptr_t pc, struct art_jit_frame *frame);
// Signal-safe.
void modules_art_remember(uintptr_t pc, const struct art_jit_method *method, const struct art_jit_frame *frame);

#pragma GCC visibility pop

#endif
