// SPDX-License-Identifier: Apache-2.0
// A library in C: exported functions, and ones that only it knows.
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static int names_inner(const char *text, int depth)
{
    return depth > 0 ? names_inner(text + 1, depth - 1) + (int)strlen(text) : 1;
}

__attribute__((noinline)) static int names_compare(const void *one, const void *other)
{
    const int *a = one, *b = other;
    return (*a > *b) - (*a < *b);
}

int names_exported(const char *text, int *values, int count);
int names_exported(const char *text, int *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, names_compare);
    return names_inner(text, count) + values[0];
}

int names_second(int value);
int names_second(int value)
{
    return value * 3 + 1;
}
