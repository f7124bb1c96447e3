// SPDX-License-Identifier: Apache-2.0
// This process's memory, as readers of virtual machines want it.
#ifndef QUT_MODULES_OWN_MEMORY_H
#define QUT_MODULES_OWN_MEMORY_H

#include "libqut/elf/image_memory.h"

#pragma GCC visibility push(hidden)

// Never faults; pieces that are to lie side by side are read with one system call. Signal-safe.
extern const struct elf_art_memory modules_own_memory;

#pragma GCC visibility pop

#endif
