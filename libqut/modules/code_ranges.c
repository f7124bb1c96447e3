// SPDX-License-Identifier: Apache-2.0
// Executable memory that no loader listed: where a virtual machine puts the code it makes. Walks ask only whether an
// address lies in some, and only where libqut may follow frame pointers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/modules/registry.h"

enum {
    READ_EVERY_MS = 20,     // at most so often,
    READ_PART_OF_TIME = 50, // and for so small a part of one core
};

struct range {
    uintptr_t start, end;
};

struct code_ranges {
    struct modules_retired retired;
    size_t count, capacity;
    struct range items[]; // ascending, apart
};
static_assert(offsetof(struct code_ranges, retired) == 0, "freed by its node");

static _Atomic(struct code_ranges *) current; // NULL: nothing is asked for
static _Atomic uint32_t wanted;
static uint64_t due_ns; // under work

// ---- walks

bool modules_is_code(uintptr_t pc)
{
    const struct code_ranges *ranges = atomic_load_explicit(&current, memory_order_seq_cst);
    if (!ranges)
        return false;
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < ranges->count && ranges->items[low].start <= pc)
        return true;
    if (!atomic_load_explicit(&wanted, memory_order_relaxed) &&
        atomic_exchange_explicit(&wanted, 1, memory_order_acq_rel) == 0)
        modules_registry_ring();
    return false;
}

// ---- our thread

static void free_ranges(struct modules_retired *retired)
{
    free(retired);
}

static struct code_ranges *new_ranges(size_t capacity)
{
    struct code_ranges *ranges = malloc(sizeof *ranges + capacity * sizeof ranges->items[0]);
    if (!ranges)
        return NULL;
    *ranges = (struct code_ranges){.retired = {.free = free_ranges}, .capacity = capacity};
    return ranges;
}

static int add(void *context, uintptr_t start, uintptr_t end)
{
    struct code_ranges **ranges = context;
    struct range *last = (*ranges)->count ? &(*ranges)->items[(*ranges)->count - 1] : NULL;
    if (last && last->end == start) {
        last->end = end;
        return 0;
    }
    if ((*ranges)->count == (*ranges)->capacity) {
        size_t capacity = (*ranges)->capacity * 2;
        struct code_ranges *grown = realloc(*ranges, sizeof **ranges + capacity * sizeof grown->items[0]);
        if (!grown)
            return -ENOMEM;
        *ranges = grown;
        grown->capacity = capacity;
    }
    (*ranges)->items[(*ranges)->count++] = (struct range){start, end};
    return 0;
}

// Under lock.
static void replace(struct code_ranges *ranges)
{
    struct code_ranges *old = atomic_exchange_explicit(&current, ranges, memory_order_seq_cst);
    if (old)
        modules_registry_push_retired(&old->retired);
}

void modules_code_ranges_start(bool are_wanted)
{
    replace(are_wanted ? new_ranges(1) : NULL);
    atomic_store_explicit(&wanted, are_wanted, memory_order_relaxed);
    due_ns = 0;
}

void modules_code_ranges_read(void)
{
    struct code_ranges *known = atomic_load_explicit(&current, memory_order_relaxed), *ranges;
    if (!known)
        return;
    // What is asked for from here on may have come after it was read.
    atomic_store_explicit(&wanted, 0, memory_order_relaxed);
    uint64_t begin_ns = os_now_ns();
    ranges = new_ranges(known->count + 16);
    bool is_new = ranges && os_each_code_mapping(add, &ranges) == 0 &&
                  (ranges->count != known->count ||
                   memcmp(ranges->items, known->items, known->count * sizeof known->items[0]) != 0);
    if (is_new) {
        os_lock(&modules_registry.lock);
        replace(ranges);
        os_unlock(&modules_registry.lock);
    } else {
        free(ranges);
    }
    uint64_t now_ns = os_now_ns(), rest_ns = (now_ns - begin_ns) * READ_PART_OF_TIME;
    due_ns = now_ns + (rest_ns > READ_EVERY_MS * 1000000u ? rest_ns : READ_EVERY_MS * 1000000u);
}

bool modules_code_ranges_step(int *wait_ms)
{
    *wait_ms = -1;
    if (!atomic_load_explicit(&wanted, memory_order_acquire) || !atomic_load_explicit(&current, memory_order_relaxed))
        return false;
    uint64_t now_ns = os_now_ns();
    if (now_ns < due_ns) {
        *wait_ms = (int)((due_ns - now_ns + 999999u) / 1000000u);
        return false;
    }
    modules_code_ranges_read();
    return true;
}
