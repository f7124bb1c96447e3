// SPDX-License-Identifier: Apache-2.0
#ifndef BYTECODE_INSIDE_H
#define BYTECODE_INSIDE_H

#include "bytecode/verify.h"

// One program of an image whose parts are sound; *fault is filled.
bool bytecode_verify_program(const struct qut_probe_image *image, uint32_t number, struct bytecode_workspace *workspace,
                             struct bytecode_fault *fault);

#endif
