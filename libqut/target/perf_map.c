// SPDX-License-Identifier: Apache-2.0
// /tmp/perf-PID.map: lines "START SIZE NAME", in hexadecimal, which just-in-time compilers append to where they are
// asked to (node --perf-basic-prof, DOTNET_PerfMapEnabled=1, erl +JPperf true, ...). Where code was put in place of
// other code both have lines, and the later one holds.
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/target/opened_target.h"

enum {
    FILE_BYTES_MAX = 256 << 20,
    STEPS_MAX = 64, // back from an address: code that was put in place of other code
    WAIT_LEAST_MS = 100,
    WAIT_FACTOR = 20, // at most so small a part of the time goes into reading it
};

struct entry {
    uint64_t start, end;
    uint32_t order, name_bytes;
    const char *name; // in the file's pages
};

struct target_perf_map {
    void *pages; // the file
    size_t size;
    struct entry *entries; // by start, then by order
    size_t count;
    uint64_t due_ns; // when it may be read again
};

static const char *take_hex(const char *at, const char *end, uint64_t *value)
{
    const char *begin = at;
    *value = 0;
    for (; at < end && at - begin < 16; at++) {
        int digit = *at >= '0' && *at <= '9'   ? *at - '0'
                    : *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
                    : *at >= 'A' && *at <= 'F' ? *at - 'A' + 10
                                               : -1;
        if (digit < 0)
            break;
        *value = *value << 4 | (unsigned)digit;
    }
    return at == begin ? NULL : at;
}

// A line that is none is left out: the last one may be half written.
static bool take_line(const char *at, const char *end, struct entry *entry)
{
    uint64_t size;
    if (end - at > 2 && at[0] == '0' && at[1] == 'x')
        at += 2;
    if (!(at = take_hex(at, end, &entry->start)) || at == end || *at++ != ' ')
        return false;
    if (end - at > 2 && at[0] == '0' && at[1] == 'x')
        at += 2;
    if (!(at = take_hex(at, end, &size)) || at == end || *at++ != ' ' || at == end)
        return false;
    entry->end = entry->start + size;
    entry->name = at;
    entry->name_bytes = (uint32_t)(end - at);
    return size != 0 && entry->end > entry->start;
}

static int by_start(const void *a, const void *b)
{
    const struct entry *one = a, *other = b;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    return one->order < other->order ? -1 : one->order > other->order;
}

static bool parse(struct target_perf_map *map)
{
    const char *text = map->pages, *end = text + map->size;
    size_t lines = 0;
    for (const char *at = text; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        lines++;
    map->entries = malloc((lines + 1) * sizeof *map->entries);
    if (!map->entries)
        return false;
    for (const char *at = text, *next; at < end && (next = memchr(at, '\n', (size_t)(end - at))); at = next + 1) {
        struct entry *entry = &map->entries[map->count];
        entry->order = (uint32_t)map->count;
        map->count += take_line(at, next, entry);
    }
    qsort(map->entries, map->count, sizeof *map->entries, by_start);
    return true;
}

static void forget(struct target_perf_map *map)
{
    if (map->pages)
        os_free_pages(map->pages, map->size);
    free(map->entries);
    map->pages = NULL;
    map->entries = NULL;
    map->size = map->count = 0;
}

// What is there now, if it is due. Where it cannot be read any more, what was read holds.
static void read_if_due(struct qut_target *target)
{
    struct target_perf_map *map = target->perf_map, fresh = {0};
    char path[PATH_MAX];
    uint32_t user_id;
    uint64_t begin_ns = os_now_ns();
    if (begin_ns < map->due_ns)
        return;
    if (target->kind->code_map(target, path, &user_id) &&
        os_read_file_of(path, user_id, FILE_BYTES_MAX, &fresh.pages, &fresh.size) == 0 && parse(&fresh)) {
        forget(map);
        *map = fresh;
    } else {
        forget(&fresh);
    }
    uint64_t now_ns = os_now_ns(), rest_ns = (now_ns - begin_ns) * WAIT_FACTOR;
    map->due_ns = now_ns + (rest_ns > WAIT_LEAST_MS * 1000000u ? rest_ns : WAIT_LEAST_MS * 1000000u);
}

static const struct entry *find(const struct target_perf_map *map, uint64_t address)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct entry *best = NULL;
    for (unsigned steps = 0; low > 0 && steps < STEPS_MAX; steps++) {
        const struct entry *entry = &map->entries[--low];
        if (address < entry->end && (!best || entry->order > best->order))
            best = entry;
    }
    return best;
}

bool target_perf_map_find(struct qut_target *target, uint64_t address, struct qut_made_code *code)
{
    if (!target->kind->code_map)
        return false;
    if (!target->perf_map)
        target->perf_map = calloc(1, sizeof *target->perf_map);
    if (!target->perf_map)
        return false;
    read_if_due(target);
    const struct entry *entry = find(target->perf_map, address);
    if (!entry)
        return false;
    *code = (struct qut_made_code){.start = entry->start, .end = entry->end};
    size_t kept = entry->name_bytes < sizeof code->name ? entry->name_bytes : sizeof code->name - 1;
    memcpy(code->name, entry->name, kept);
    return true;
}

void target_free_perf_map(struct qut_target *target)
{
    if (target->perf_map)
        forget(target->perf_map);
    free(target->perf_map);
    target->perf_map = NULL;
}
