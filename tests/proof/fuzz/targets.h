// SPDX-License-Identifier: Apache-2.0
// The targets, each a function that reads any bytes and aborts where a promise does not hold; and what changes inputs
// in ways that keep them worth reading. Which there are is said in tests/proof/fuzz/targets, once for meson, for the
// compiler and for tests/proof/fuzz/run.
#ifndef TESTS_PROOF_FUZZ_TARGETS_H
#define TESTS_PROOF_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#include "fuzz_targets.h" // FUZZ_TARGETS: TARGET(name, mutator) for each

// Changes some of `size` bytes, in place; returns how many there are then, at most max_size. libFuzzer's own, or a
// test's.
typedef size_t fuzz_bytes_fn(uint8_t *data, size_t size, size_t max_size);

struct fuzz_mutation {
    fuzz_bytes_fn *bytes;
    uint64_t random; // never 0
};
static inline uint32_t fuzz_random(struct fuzz_mutation *m, uint32_t below)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 16) % (below ? below : 1));
}
typedef size_t fuzz_mutate_fn(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size);

struct fuzz_target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size); // 0
    fuzz_mutate_fn *mutate;
};

#define TARGET(NAME, MUTATOR)                                                                                          \
    int fuzz_##NAME(const uint8_t *data, size_t size);                                                                 \
    size_t fuzz_mutate_##MUTATOR(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size);
FUZZ_TARGETS
#undef TARGET

// A section of frame programs: a part of what ELF files hold, and all of what one target reads.
size_t fuzz_mutate_records(struct fuzz_mutation *m, uint8_t *data, size_t size, size_t max_size);

// The bytes in a file that has no name: its path, in a buffer that stays. Aborts where there is none to be had.
const char *fuzz_file(const uint8_t *data, size_t size);
// A folder in memory that goes when the program ends, and files in it ("PART/PART/NAME").
const char *fuzz_folder(void);
void fuzz_write(const char *name, const uint8_t *data, size_t size);

#endif
