// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/frame_section.h"

#include <stdlib.h>

enum { DIGIT_BITS = 11, DIGITS = 3, BUCKETS = 1 << DIGIT_BITS };

struct key {
    uint32_t start_rel;
    uint32_t index;
};

// ---- a few sequences

// Linkers lay the records out by object files, and each of these has code in a few sections: so a few ascending
// sequences take turns, mostly one.
enum { SEQUENCES_MAX = 8, NO_RECORD = UINT32_MAX };

struct sequence {
    uint32_t first, last; // indexes
};

struct sequences {
    struct sequence items[SEQUENCES_MAX];
    size_t count;
    uint32_t *next; // of each record in its sequence
};

static size_t ascending_count(const struct cfi_fde *fdes, size_t count)
{
    size_t i = 1;
    while (i < count && fdes[i].start_rel > fdes[i - 1].start_rel)
        i++;
    return i;
}

// Whose last record is the nearest before the start, else a new one. *limit: up to where it stays the nearest. NULL:
// there are too many.
static struct sequence *find_sequence(struct sequences *sequences, const struct cfi_fde *fdes, uint32_t start,
                                      uint64_t *limit)
{
    struct sequence *best = NULL;
    *limit = UINT64_MAX;
    for (size_t i = 0; i < sequences->count; i++) {
        struct sequence *sequence = &sequences->items[i];
        const uint32_t last_start = fdes[sequence->last].start_rel;
        if (last_start >= start)
            *limit = last_start < *limit ? last_start : *limit;
        else if (!best || last_start > fdes[best->last].start_rel)
            best = sequence;
    }
    if (best || sequences->count == SEQUENCES_MAX)
        return best;
    best = &sequences->items[sequences->count++];
    *best = (struct sequence){NO_RECORD, NO_RECORD};
    return best;
}

// The first `done` are in order. False: they are more than a few sequences.
static bool split(struct sequences *sequences, const struct cfi_fde *fdes, size_t done, size_t count)
{
    struct sequence *sequence = &sequences->items[0];
    uint64_t limit = UINT64_MAX;
    *sequence = (struct sequence){0, (uint32_t)done - 1};
    sequences->count = 1;
    for (uint32_t i = 0; i < done; i++)
        sequences->next[i] = i + 1;
    for (uint32_t i = (uint32_t)done; i < count; i++) {
        const uint32_t start = fdes[i].start_rel;
        if (start <= fdes[sequence->last].start_rel || start >= limit)
            sequence = find_sequence(sequences, fdes, start, &limit);
        if (!sequence)
            return false;
        if (sequence->last == NO_RECORD)
            sequence->first = i;
        else
            sequences->next[sequence->last] = i;
        sequence->last = i;
    }
    return true;
}

// Of two that start at the same address, the later one.
static bool is_before(const struct cfi_fde *fdes, uint32_t one, uint32_t other)
{
    const uint32_t start = fdes[one].start_rel, other_start = fdes[other].start_rel;
    return start < other_start || (start == other_start && one > other);
}

static void merge(struct sequences *sequences, const struct cfi_fde *fdes, uint32_t *indexes)
{
    while (sequences->count) {
        struct sequence *best = &sequences->items[0];
        for (size_t i = 1; i < sequences->count; i++)
            if (is_before(fdes, sequences->items[i].first, best->first))
                best = &sequences->items[i];
        uint64_t limit = UINT64_MAX;
        for (size_t i = 0; i < sequences->count; i++)
            if (&sequences->items[i] != best && fdes[sequences->items[i].first].start_rel < limit)
                limit = fdes[sequences->items[i].first].start_rel;
        uint32_t at = best->first;
        do {
            *indexes++ = at;
            at = at == best->last ? NO_RECORD : sequences->next[at];
        } while (at != NO_RECORD && fdes[at].start_rel < limit);
        if (at == NO_RECORD)
            *best = sequences->items[--sequences->count];
        else
            best->first = at;
    }
}

// ---- any others

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

static void sort(const struct cfi_fde *fdes, size_t count, struct key *keys, uint32_t *indexes)
{
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
}

int cfi_fdes_order(const struct cfi_fde *fdes, size_t count, uint32_t **order)
{
    const size_t ascending = ascending_count(fdes, count);
    *order = NULL;
    if (ascending >= count)
        return 0;
    uint32_t *indexes = malloc(count * sizeof *indexes);
    struct sequences sequences = {.next = malloc(count * sizeof *sequences.next)};
    struct key *keys = NULL;
    bool is_done = indexes && sequences.next && split(&sequences, fdes, ascending, count);
    if (is_done) {
        merge(&sequences, fdes, indexes);
    } else if (indexes && sequences.next) {
        keys = malloc(2 * count * sizeof *keys);
        is_done = keys;
        if (is_done)
            sort(fdes, count, keys, indexes);
    }
    free(keys);
    free(sequences.next);
    if (is_done)
        *order = indexes;
    else
        free(indexes);
    return is_done ? 0 : -1;
}
