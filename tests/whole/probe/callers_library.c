// SPDX-License-Identifier: Apache-2.0
// Loaded, and unloaded, by callers_subject.c: calls out of it are told from those of others.
long callers_library_calls(long (*target)(long), long count);
void callers_library_noticed(void);

long callers_library_calls(long (*target)(long), long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += target(i);
    return sum;
}

static volatile long noticed;

// Long enough for a jump at its entry.
__attribute__((noinline)) void callers_library_noticed(void)
{
    noticed = noticed * 5 + 1;
}
