// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_PROOF_FUZZ_SEEDS_H
#define TESTS_PROOF_FUZZ_SEEDS_H

#include <stddef.h>

// Into the folder of a target. A first byte that is not negative goes before the others. Ends the program on failure.
void write_seed(const char *target, const char *name, int first_byte, const void *bytes, size_t size);

void trace_seeds(void);

#endif
