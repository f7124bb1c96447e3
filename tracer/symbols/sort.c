// SPDX-License-Identifier: Apache-2.0
// Radix sort of (number, index) pairs. A pass in which all have the same digit is left out: the addresses of one
// library take two or three of six.
#include "tracer/symbols/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

struct pair {
    uint64_t key;
    size_t index;
};

static bool sort_pass(const struct pair *from, struct pair *to, size_t count, unsigned shift)
{
    size_t starts[DIGITS] = {0};
    for (size_t i = 0; i < count; i++)
        starts[from[i].key >> shift & (DIGITS - 1)]++;
    if (starts[from[0].key >> shift & (DIGITS - 1)] == count)
        return false;
    for (size_t digit = 0, start = 0; digit < DIGITS; digit++) {
        size_t size = starts[digit];
        starts[digit] = start;
        start += size;
    }
    for (size_t i = 0; i < count; i++)
        to[starts[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    return true;
}

static void sort_pairs(struct pair **pairs, struct pair **spare, size_t count)
{
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        if (!sort_pass(*pairs, *spare, count, shift))
            continue;
        struct pair *sorted = *spare;
        *spare = *pairs;
        *pairs = sorted;
    }
}

int symbols_sort_by_first_u64(void *records, size_t count, size_t record_bytes)
{
    if (count < 2)
        return 0;
    struct pair *pairs = malloc(count * sizeof *pairs);
    struct pair *spare = malloc(count * sizeof *spare);
    uint8_t *copy = malloc(count * record_bytes);
    int result = pairs && spare && copy ? 0 : -1;
    if (result == 0) {
        memcpy(copy, records, count * record_bytes);
        for (size_t i = 0; i < count; i++) {
            memcpy(&pairs[i].key, copy + i * record_bytes, sizeof pairs[i].key);
            pairs[i].index = i;
        }
        sort_pairs(&pairs, &spare, count);
        for (size_t i = 0; i < count; i++)
            memcpy((uint8_t *)records + i * record_bytes, copy + pairs[i].index * record_bytes, record_bytes);
    }
    free(pairs);
    free(spare);
    free(copy);
    return result;
}
