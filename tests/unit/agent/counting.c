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

static void *make(struct counts *counts, int how, size_t size)
{
    void *memory = NULL;
    made(counts, how == 2 ? 3 * size : size);
    switch (how) {
    case 0: return malloc(size);
    case 1: return aligned_alloc(64, size);
    case 2: return calloc(3, size);
    case 3: return memalign(64, size);
    case 4: return posix_memalign(&memory, 64, size) == 0 ? memory : NULL;
    case 5: return valloc(size);
    case 6: return pvalloc(size);
    case 7: return realloc(NULL, size);
    default: return reallocarray(NULL, 1, size);
    }
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
            if (i % 7 == 0)
                kept[at] = realloc(old, 0); // gives NULL
            else
                free(old);
        }
        kept[at] = make(counts, i % 9, size);
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
