// SPDX-License-Identifier: Apache-2.0
// What is mapped, as /proc/self/maps has it: images that no loader lists (unlisted.c), and which memory is executable,
// where a virtual machine puts the code it makes. Read by our thread, when a walk has met code that is not known.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/modules/machine_code.h"
#include "libqut/modules/unlisted.h"
#include "libqut/os/task.h"

enum {
    READ_EVERY_MS = 20,     // at most so often,
    READ_PART_OF_TIME = 50, // and for so small a part of one core
    // Where walks meet only code that was there the last time: an image may have been put in its place.
    READ_AGAIN_MS = 1000,
    READ_AGAIN_PART_OF_TIME = 500,
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

enum wanted { WANTED_NOT, WANTED_AGAIN, WANTED };

static _Atomic(struct code_ranges *) current; // NULL: not started
static _Atomic uint32_t wanted;
static _Atomic uint32_t made_generation;
static bool has_frame_pointers;       // constant between start and stop
static uint64_t due_ns, due_again_ns; // under work

// ---- walks

static void want(enum wanted how)
{
    uint32_t now = atomic_load_explicit(&wanted, memory_order_relaxed);
    while (now < how)
        if (atomic_compare_exchange_weak_explicit(&wanted, &now, how, memory_order_acq_rel, memory_order_relaxed)) {
            modules_registry_ring();
            return;
        }
}

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
    bool is_known = low < ranges->count && ranges->items[low].start <= pc;
    want(is_known ? WANTED_AGAIN : WANTED);
    return is_known && has_frame_pointers;
}

uint32_t modules_made_generation(void)
{
    return atomic_load_explicit(&made_generation, memory_order_acquire);
}

void modules_want_mappings(void)
{
    want(WANTED);
}

// ---- our thread

static void free_ranges(struct modules_retired *retired)
{
    free(retired);
}

void modules_made_has_changed(void)
{
    atomic_fetch_add_explicit(&made_generation, 1, memory_order_release);
}

static struct code_ranges *new_ranges(size_t capacity)
{
    struct code_ranges *ranges = malloc(sizeof *ranges + capacity * sizeof ranges->items[0]);
    if (!ranges)
        return NULL;
    *ranges = (struct code_ranges){.retired = {.free = free_ranges}, .capacity = capacity};
    return ranges;
}

static int add(struct code_ranges **ranges, uintptr_t start, uintptr_t end)
{
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
    modules_made_has_changed();
    if (old)
        modules_registry_push_retired(&old->retired);
}

void modules_code_ranges_start(bool with_frame_pointers)
{
    has_frame_pointers = with_frame_pointers;
    atomic_store_explicit(&wanted, with_frame_pointers ? WANTED : WANTED_NOT, memory_order_relaxed);
    due_ns = due_again_ns = 0;
    replace(new_ranges(1));
}

void modules_code_ranges_stop(void)
{
    replace(NULL);
    modules_art_drop();
    atomic_store_explicit(&wanted, WANTED_NOT, memory_order_relaxed);
}

struct reading {
    struct code_ranges *ranges;
    struct modules_unlisted unlisted;
    struct modules_art_reading art;
};

static int see(void *context, const struct os_map_line *line)
{
    struct reading *reading = context;
    int result = modules_unlisted_see(&reading->unlisted, line);
    modules_art_see(&reading->art, line);
    return result == 0 && line->is_executable ? add(&reading->ranges, line->start, line->end) : result;
}

// What the loader has listed since would seem to be listed by nobody.
static bool is_loader_known(void)
{
    return os_is_generation(&modules_registry.loader) || modules_registry_scan() >= 0;
}

static void read_mappings(struct reading *reading, const struct code_ranges *known)
{
    if (!is_loader_known() || os_each_mapping(see, reading) != 0) {
        modules_scan_free(&reading->unlisted.scan);
        return;
    }
    const struct code_ranges *ranges = reading->ranges;
    if (ranges->count != known->count ||
        memcmp(ranges->items, known->items, known->count * sizeof known->items[0]) != 0) {
        os_lock(&modules_registry.lock);
        replace(reading->ranges);
        os_unlock(&modules_registry.lock);
        reading->ranges = NULL;
    }
    modules_art_take(&reading->art);
    modules_unlisted_take(&reading->unlisted);
}

// spent_ns: of processor time. How long it took says nothing: on a busy machine our thread waits most of that.
static uint64_t next_ns(uint64_t spent_ns, uint64_t now_ns, uint64_t every_ms, uint64_t part_of_time)
{
    uint64_t rest_ns = spent_ns * part_of_time;
    return now_ns + (rest_ns > every_ms * 1000000u ? rest_ns : every_ms * 1000000u);
}

void modules_code_ranges_read(void)
{
    struct code_ranges *known = atomic_load_explicit(&current, memory_order_relaxed);
    if (!known)
        return;
    // What is asked for from here on may have come after it was read.
    atomic_store_explicit(&wanted, WANTED_NOT, memory_order_relaxed);
    uint64_t spent_ns = os_thread_cpu_ns();
    struct reading *reading = calloc(1, sizeof *reading);
    uint8_t *buffer = malloc(MODULES_SCAN_BUFFER_BYTES);
    struct code_ranges *ranges = new_ranges(known->count + 16);
    if (reading && buffer && ranges) {
        reading->ranges = ranges;
        reading->unlisted.scan.buffer = buffer;
        read_mappings(reading, known);
        ranges = reading->ranges;
    }
    free(ranges);
    free(buffer);
    free(reading);
    uint64_t now_ns = os_now_ns();
    spent_ns = os_thread_cpu_ns() - spent_ns;
    due_ns = next_ns(spent_ns, now_ns, READ_EVERY_MS, READ_PART_OF_TIME);
    due_again_ns = next_ns(spent_ns, now_ns, READ_AGAIN_MS, READ_AGAIN_PART_OF_TIME);
}

bool modules_code_ranges_step(int *wait_ms)
{
    *wait_ms = -1;
    uint32_t how = atomic_load_explicit(&wanted, memory_order_acquire);
    if (how == WANTED_NOT || !atomic_load_explicit(&current, memory_order_relaxed))
        return false;
    uint64_t now_ns = os_now_ns(), due = how == WANTED ? due_ns : due_again_ns;
    if (now_ns < due) {
        *wait_ms = (int)((due - now_ns + 999999u) / 1000000u);
        return false;
    }
    modules_code_ranges_read();
    return true;
}
