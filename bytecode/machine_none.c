// SPDX-License-Identifier: Apache-2.0
// For machines without a translator.
#include "bytecode/machine.h"

const struct bytecode_machine bytecode_machine = {NULL, NULL};
