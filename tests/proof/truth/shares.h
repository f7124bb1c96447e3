// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_PROOF_TRUTH_SHARES_H
#define TESTS_PROOF_TRUTH_SHARES_H

#include <stdint.h>

// Of a library that is built without frame pointers.
uint64_t library_part(uint64_t rounds);

// So many steps of arithmetic that no compiler can shorten: the same time for each.
static inline __attribute__((always_inline)) uint64_t shares_spin(uint64_t rounds, uint64_t value)
{
    for (uint64_t i = 0; i < rounds; i++) {
        value = value * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(value));
    }
    return value;
}

#endif
