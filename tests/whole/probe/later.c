// SPDX-License-Identifier: Apache-2.0
// Loaded when the program has begun: its function has the name of one of the program's, and other arguments.
#include "item.h"

static struct probe_item one = {.other = 1000, .size = 9};

__attribute__((noinline)) struct probe_item *probe_take(struct probe_item *item, int count, const char *label)
{
    item = item ? item : &one;
    __asm__ volatile("" : "+r"(item) : "r"(count), "r"(label) : "memory");
    return item;
}

void probe_later(void)
{
    // Handed over by itself, so that the argument is what it is.
    probe_take(&one, 1, "later");
}
