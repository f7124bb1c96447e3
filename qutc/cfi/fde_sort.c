// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_section.h"

#include <stdlib.h>

enum { DIGIT_BITS = 11, DIGITS = 3, BUCKETS = 1 << DIGIT_BITS };

struct key {
    uint32_t start_rel;
    uint32_t index;
};

// Linkers mostly lay the records out in the order of the code.
static bool is_ascending(const struct cfi_fde *fdes, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (fdes[i].start_rel <= fdes[i - 1].start_rel)
            return false;
    return true;
}

// One stable pass over one digit. False where all keys share it: nothing moved.
static bool sort_digit(const struct key *from, struct key *to, size_t count, unsigned shift)
{
    size_t starts[BUCKETS] = {0};
    for (size_t i = 0; i < count; i++)
        starts[(from[i].start_rel >> shift) & (BUCKETS - 1)]++;
    if (starts[(from[0].start_rel >> shift) & (BUCKETS - 1)] == count)
        return false;
    size_t sum = 0;
    for (size_t b = 0; b < BUCKETS; b++) {
        size_t in_bucket = starts[b];
        starts[b] = sum;
        sum += in_bucket;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[(from[i].start_rel >> shift) & (BUCKETS - 1)]++] = from[i];
    return true;
}

int cfi_fdes_order(const struct cfi_fde *fdes, size_t count, uint32_t **order)
{
    *order = NULL;
    if (is_ascending(fdes, count))
        return 0;
    struct key *keys = malloc(2 * count * sizeof *keys);
    uint32_t *indexes = malloc(count * sizeof *indexes);
    if (!keys || !indexes) {
        free(keys);
        free(indexes);
        return -1;
    }
    // The passes are stable: begun from the last, the later of two equal ones stays before the earlier.
    for (size_t i = 0; i < count; i++)
        keys[i] = (struct key){fdes[count - 1 - i].start_rel, (uint32_t)(count - 1 - i)};
    struct key *from = keys, *to = keys + count;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        if (sort_digit(from, to, count, digit * DIGIT_BITS)) {
            struct key *swapped = from;
            from = to;
            to = swapped;
        }
    }
    for (size_t i = 0; i < count; i++)
        indexes[i] = from[i].index;
    free(keys);
    *order = indexes;
    return 0;
}
