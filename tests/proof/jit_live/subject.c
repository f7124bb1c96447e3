// SPDX-License-Identifier: Apache-2.0
// Runs for ever, at depths that change: recursion, callbacks from libc, frames of a size that only it knows. For a
// just-in-time compiler to compile, or an emulator to translate.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 24, DEPTH = 6 };

static unsigned long rounds;

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
    char text[2][16];
    snprintf(text[0], sizeof text[0], "%08d", *(const int *)a);
    snprintf(text[1], sizeof text[1], "%08d", *(const int *)b);
    return strcmp(text[0], text[1]);
}

__attribute__((noinline)) static int sort(int seed)
{
    int values[VALUES];
    for (int i = 0; i < VALUES; i++)
        values[i] = (i * 7919 + seed) % 1000;
    qsort(values, VALUES, sizeof *values, compare);
    return values[0];
}

__attribute__((noinline)) static int descend(int depth, int size)
{
    volatile char *room = __builtin_alloca((unsigned)size + 16);
    room[size] = (char)depth;
    int result = depth ? descend(depth - 1, size * 5 % 331 + 1) : sort(size);
    return result + room[size];
}

int main(void)
{
    int sum = 0;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        sum += descend(DEPTH, (int)(rounds % 97) + 1);
        rounds++;
        if (sum == 12345678)
            rounds += (unsigned long)sum;
    }
}
