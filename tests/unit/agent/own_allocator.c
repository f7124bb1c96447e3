// SPDX-License-Identifier: Apache-2.0
// A program with an allocator of its own, that ends if it is handed what is not its.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Alignas(16) char heap[8 << 20];
static size_t used;

static void check(const void *memory)
{
    if (memory && (uintptr_t)memory - (uintptr_t)heap >= sizeof heap)
        _exit(99);
}

void *malloc(size_t size)
{
    size_t whole = (size + 31) & ~(size_t)15, at = __atomic_fetch_add(&used, whole, __ATOMIC_RELAXED);
    if (whole < size || at > sizeof heap - whole)
        return NULL;
    memcpy(heap + at, &size, sizeof size);
    return heap + at + 16;
}

void free(void *memory)
{
    check(memory);
}

void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

void *realloc(void *memory, size_t size)
{
    check(memory);
    void *copy = malloc(size);
    if (copy && memory) {
        size_t old;
        memcpy(&old, (char *)memory - 16, sizeof old);
        memcpy(copy, memory, old < size ? old : size);
    }
    return copy;
}

int main(void)
{
    char *text = strdup("a text");
    for (int i = 0; i < 1000; i++) {
        void *volatile memory = malloc(100);
        free(memory);
    }
    puts(text);
    free(text);
    return used == 0;
}
