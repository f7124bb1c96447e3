// SPDX-License-Identifier: Apache-2.0
// Calls a function with structs, and keeps its own account of what is in them. Built with debug information.
//
//     probe_arguments LIBRARY CALLS     also calls the library's function of that name, once probe_later of it is
//                                       probed; prints sums, then ends
//     probe_arguments LIBRARY wait      prints "ready"; calls both; ends with its standard input
#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "item.h"

enum { TRIES = 60000 };

static long sizes, kinds, nexts, counts, negative;

__attribute__((noinline)) struct probe_item *probe_take(struct probe_item *item, int count, const char *label)
{
    sizes += item->size;
    kinds += item->kind;
    nexts += item->next ? item->next->size : 0;
    counts += count;
    __asm__ volatile("" : "+r"(item) : "r"(count), "r"(label) : "memory");
    return item;
}

static void call(int number)
{
    struct probe_item last = {.size = (short)(number * 3), .name = "last"};
    struct probe_item item = {.size = (short)-number, .kind = (unsigned)number & 7, .next = number & 1 ? &last : NULL};
    memcpy(item.name, number & 1 ? "all of 8" : "even", number & 1 ? 8 : 5);
    negative += probe_take(&item, -number, number & 1 ? "odd" : "even")->size < 0;
}

// Whether somebody has put a jump at its entry, or behind its endbr64: it is loaded, and then noticed.
static bool is_probed(void (*function)(void))
{
    const volatile unsigned char *code = (const volatile unsigned char *)(uintptr_t)function;
    const unsigned at = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e ? 4 : 0;
    return code[at] == 0xe9 || code[at] == 0xeb;
}

static int wait_for_end(void (*later)(void))
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct probe_item item = {.size = 7, .name = "seven"};
    puts("ready");
    fflush(stdout);
    while (poll(&input, 1, 1) == 0)
        for (unsigned i = 0; i < 10; i++) {
            probe_take(&item, 1, "wait");
            later();
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void (*later)(void) = library ? (void (*)(void))dlsym(library, "probe_later") : NULL;
    if (!later)
        return 2;
    if (strcmp(argv[2], "wait") == 0)
        return wait_for_end(later);
    for (unsigned tries = 0; !is_probed(later); tries++) {
        if (tries == TRIES)
            return 3;
        usleep(1000);
    }
    for (int i = 0; i < atoi(argv[2]); i++) {
        call(i);
        later();
    }
    printf("sizes %ld kinds %ld nexts %ld counts %ld negative %ld\n", sizes, kinds, nexts, counts, negative);
    return 7;
}
