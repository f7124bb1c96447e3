// SPDX-License-Identifier: Apache-2.0
#ifndef BYTECODE_INSIDE_H
#define BYTECODE_INSIDE_H

#include "bytecode/verify.h"

enum kind { // of a value
    UNSET = 0,
    NUMBER,
    CONSTANT, // `number`, sign-extended
    FIELDS,   // address of the fields
    STACK,    // address, `number` from the stack's end
};

// One program of an image whose parts are sound; *fault is filled.
bool bytecode_verify_program(const struct qut_probe_image *image, uint32_t number, struct bytecode_workspace *workspace,
                             struct bytecode_fault *fault);

#endif
