// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_TARGET_PYTHON_INSIDE_H
#define QUT_TARGET_PYTHON_INSIDE_H

#include "libqut/target/machine.h"
#include "libqut/target/python.h"

struct content;

struct target_python {
    struct cpython_runtime runtime;
    uint64_t text_start, text_end;             // of the code that the evaluator lies in
    uint64_t found;                            // where _PyRuntime was seen last; 0: there is none
    enum cpython_fault fault;                  // UNKNOWN_VERSION, or FINE
    struct target_python_function **functions; // from number 1 on
    size_t function_count, function_capacity;
    struct content *content; // of a code object that is looked at
    uint32_t *heads;         // by hash
    struct qut_frame *scratch;
    size_t scratch_capacity;
};

// ---- python_functions.c

// The number of a code object's function; 0: there is no room.
uint32_t target_python_intern(struct target_python *python, const struct cpython_code *code);
// A new one, which comes before those that are like it.
uint32_t target_python_add(struct target_python *python, const struct cpython_code *code);
// The line of an instruction of it; 0: not known.
uint32_t target_python_line_of(const struct target_python *python, const struct target_python_function *function,
                               uint64_t instruction);

#endif
