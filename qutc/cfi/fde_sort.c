// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/fde_sort.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 3, BUCKETS = 1 << DIGIT_BITS };

// Linkers mostly lay the records out in the order of the code.
static bool is_ascending(const struct qutc_fde *fdes, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (fdes[i].start_rel <= fdes[i - 1].start_rel)
            return false;
    return true;
}

static void reverse(struct qutc_fde *fdes, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        struct qutc_fde swapped = fdes[i];
        fdes[i] = fdes[count - 1 - i];
        fdes[count - 1 - i] = swapped;
    }
}

// One stable pass over one digit of the key. False where all keys share it: nothing moved.
static bool sort_digit(const struct qutc_fde *from, struct qutc_fde *to, size_t count, unsigned shift)
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

int qutc_fdes_sort(struct qutc_fde *fdes, size_t count)
{
    if (is_ascending(fdes, count))
        return 0;
    struct qutc_fde *scratch = malloc(count * sizeof *scratch);
    if (!scratch)
        return -1;
    // The passes are stable: reversed first, the later of two equal ones stays before the earlier.
    reverse(fdes, count);
    struct qutc_fde *from = fdes, *to = scratch;
    for (unsigned digit = 0; digit < DIGITS; digit++) {
        if (sort_digit(from, to, count, digit * DIGIT_BITS)) {
            struct qutc_fde *swapped = from;
            from = to;
            to = swapped;
        }
    }
    if (from != fdes)
        memcpy(fdes, from, count * sizeof *fdes);
    free(scratch);
    return 0;
}
