// SPDX-License-Identifier: Apache-2.0
// Allocates in several threads and counts it itself; says what it counted. Own allocations only: it links nothing that
// allocates, and prints without stdio.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 20000, KEPT = 64 };

struct counts {
    uint64_t allocations, bytes, frees, freed_bytes;
    uint32_t seed;
};

static void made(struct counts *counts, size_t size)
{
    counts->allocations++;
    counts->bytes += size;
}

static void let_go(struct counts *counts, void *memory)
{
    counts->frees++;
    counts->freed_bytes += malloc_usable_size(memory);
}

static void *work(void *argument)
{
    struct counts *counts = argument;
    void *kept[KEPT] = {NULL};
    uint32_t random = counts->seed;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * 1664525 + 1013904223;
        size_t size = random >> 20, at = random % KEPT;
        void *old = kept[at];
        if (old && i % 5 == 0) {
            let_go(counts, old);
            kept[at] = realloc(old, size + 1);
            made(counts, size + 1);
            continue;
        }
        if (old) {
            let_go(counts, old);
            free(old);
        }
        kept[at] = i % 3 ? malloc(size) : i % 2 ? calloc(3, size) : aligned_alloc(64, 64);
        made(counts, i % 3 ? size : i % 2 ? 3 * size : 64);
    }
    for (int i = 0; i < KEPT; i++)
        if (kept[i]) {
            let_go(counts, kept[i]);
            free(kept[i]);
        }
    return NULL;
}

static void put(char *line, uint64_t value)
{
    char digits[24];
    size_t first = sizeof digits;
    do
        digits[--first] = (char)('0' + value % 10);
    while (value /= 10);
    strncat(line, digits + first, sizeof digits - first);
    strcat(line, " ");
}

int main(void)
{
    static struct counts counts[THREADS];
    struct counts sum = {0};
    pthread_t threads[THREADS];
    char line[200] = "";
    for (uint32_t i = 0; i < THREADS; i++) {
        counts[i].seed = i + 1;
        pthread_create(&threads[i], NULL, work, &counts[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum.allocations += counts[i].allocations;
        sum.bytes += counts[i].bytes;
        sum.frees += counts[i].frees;
        sum.freed_bytes += counts[i].freed_bytes;
    }
    put(line, sum.allocations);
    put(line, sum.bytes);
    put(line, sum.frees);
    put(line, sum.freed_bytes);
    return write(1, line, strlen(line)) < 0;
}
