// SPDX-License-Identifier: Apache-2.0
// Bytes without a structure that is worth keeping: libFuzzer's own changes are enough.
#include "tests/proof/fuzz/targets.h"

size_t fuzz_mutate_bytes(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size)
{
    return m->bytes(data, size, max_size);
}
