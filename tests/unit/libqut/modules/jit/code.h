// SPDX-License-Identifier: Apache-2.0
// Machine code made at run time, the symbol files that tell of it, and tables of these.
#ifndef TESTS_UNIT_LIBQUT_MODULES_JIT_CODE_H
#define TESTS_UNIT_LIBQUT_MODULES_JIT_CODE_H

#include <stddef.h>
#include <stdint.h>

#include <qut/compiler.h>

#include "machine.h"

enum {
    CODE_SLOTS = 64,
    CODE_SLOT_BYTES = 64,
    CODE_METHODS_MAX = CODE_SLOTS, // of one symbol file
    CODE_SYMFILE_BYTES_MAX = 16384,
};

typedef void code_callee(void);
typedef void code_function(code_callee *callee);

struct code_method {
    uint64_t address;
    uint32_t frame_bytes;
    uint32_t zero;
};

extern uint8_t *code_buffer; // CODE_SLOTS functions fit

// Maps the buffer. False: it cannot be written and run.
int code_start(void);

// Another function in a slot; `size` tells its frame from others'.
struct code_method code_emit(unsigned slot, unsigned size);
static inline code_function *code_of(unsigned slot)
{
    return (code_function *)(uintptr_t)(code_buffer + (size_t)slot * CODE_SLOT_BYTES);
}

// An ELF file as compilers register it: .text without bytes, .debug_frame. Its size.
size_t code_symfile(const struct code_method *methods, unsigned count, uint8_t *bytes);

// The form that Android's runtime gives to many methods together: what code_symfile made, compressed by xz, is all that
// is in it.
size_t code_packed_symfile(const struct code_method *methods, unsigned count, const uint8_t *packed, size_t packed_size,
                           uint8_t *bytes);

// A qut_compile_fn for those, that knows them by what stands in them for it: for where libqutc is not.
int code_compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                 char *reason, size_t reason_size);

#endif
