// SPDX-License-Identifier: Apache-2.0
// One target as libFuzzer calls it.
#include "tests/proof/fuzz/targets.h"

#define PASTE(A, B)  A##B
#define PASTED(A, B) PASTE(A, B)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return PASTED(fuzz_, FUZZ_TARGET)(data, size);
}

// Every second change is libFuzzer's own, which knows the dictionary and what was compared.
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_mutation mutation = {.bytes = LLVMFuzzerMutate, .random = (uint64_t)seed << 1 | 1};
    if (fuzz_random(&mutation, 2) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    return PASTED(fuzz_mutate_, FUZZ_MUTATOR)(&mutation, data, size, max_size);
}
