// SPDX-License-Identifier: Apache-2.0
// Memory as CPython has it: a runtime, an interpreter, thread states, frames, code objects.
#ifndef TESTS_UNIT_LIBQUT_CPYTHON_FAKE_CPYTHON_H
#define TESTS_UNIT_LIBQUT_CPYTHON_FAKE_CPYTHON_H

#include "libqut/cpython/cpython.h"

enum { FAKE_BASE = 0x10000000, FAKE_BYTES = 0x40000 };

struct fake_cpython {
    uint8_t bytes[FAKE_BYTES];
    uint64_t next; // where there is room
    uint64_t interpreter, state;
    struct elf_art_memory memory;
    struct cpython_runtime runtime;
    struct cpython_thread threads[CPYTHON_THREADS_MAX];
    struct cpython_frame frames[CPYTHON_FRAMES_MAX];
    struct cpython_group groups[CPYTHON_GROUPS_MAX];
    struct cpython_view view;
    struct cpython_stack stack;
};

enum { FAKE_TID = 4242 };

// One interpreter with one thread, which is in no function.
void fake_begin(struct fake_cpython *fake, unsigned minor);
uint64_t fake_room(struct fake_cpython *fake, size_t size);
void fake_put(struct fake_cpython *fake, uint64_t address, uint64_t word);
void fake_put_bytes(struct fake_cpython *fake, uint64_t address, const void *bytes, size_t size);
// width: 1, 2 or 4 bytes a character; 0: ASCII.
uint64_t fake_text(struct fake_cpython *fake, const void *units, size_t count, unsigned width);
uint64_t fake_code(struct fake_cpython *fake, const char *name, const char *file);
// owner: of enum; is_entry: 3.11.
uint64_t fake_frame(struct fake_cpython *fake, uint64_t code, uint64_t previous, unsigned owner, bool is_entry);
// An evaluator's record.
uint64_t fake_record(struct fake_cpython *fake, uint64_t frame, uint64_t previous);
uint64_t fake_root(const struct fake_cpython *fake);
// What the thread state leads to: a frame, or a record.
void fake_set_innermost(struct fake_cpython *fake, uint64_t address);
void fake_take(struct fake_cpython *fake);

#endif
