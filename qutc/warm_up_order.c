// SPDX-License-Identifier: Apache-2.0
#include "qutc/warm_up_order.h"

#include <stdlib.h>
#include <string.h>

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

bool qutc_is_core(const char *name)
{
    static const char *const names[] = {"libc.so",  "libc.so.6", "libart.so", "libart.so.0",
                                        "linker64", "linker",    "[vdso]",    "libandroid_runtime.so"};
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(base, names[i]) == 0)
            return true;
    return begins_with(base, "ld-linux") || (begins_with(base, "boot") && ends_with(base, ".oat"));
}

size_t *qutc_warm_up_order(const struct input_inputs *inputs, size_t mapped_count, const struct qutc_keeper *keeper)
{
    enum { CORE = 1, MAPPED = 2, UNSUSPECTED = 4, RANKS = 8 };
    size_t *order = malloc((inputs->count + 1) * sizeof *order);
    uint8_t *ranks = malloc(inputs->count + 1);
    size_t used = 0;
    for (size_t i = 0; order && ranks && i < inputs->count; i++) {
        const char *name = inputs->items[i].name;
        ranks[i] = (uint8_t)((qutc_is_core(name) ? CORE : 0) | (i < mapped_count ? MAPPED : 0) |
                             (qutc_keeper_suspects(keeper, name) ? 0 : UNSUSPECTED));
    }
    for (unsigned rank = RANKS; order && ranks && rank-- > 0;)
        for (size_t i = 0; i < inputs->count; i++)
            if (ranks[i] == rank)
                order[used++] = i;
    if (!ranks) {
        free(order);
        order = NULL;
    }
    free(ranks);
    return order;
}
