// SPDX-License-Identifier: Apache-2.0
// A library that exports a list, as compilers do: what a debugger knows them by.
#include "tests/unit/libqut/modules/jit/owner.h"

#ifdef JIT_MAGIC
struct jit_descriptor __jit_debug_descriptor = {.version = 1,
                                                .magic = JIT_MAGIC,
                                                .descriptor_bytes = sizeof(struct jit_descriptor),
                                                .entry_bytes = JIT_ENTRY_BYTES};
#else
struct jit_gdb_descriptor __jit_debug_descriptor = {.version = 1};
#endif
