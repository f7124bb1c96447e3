// SPDX-License-Identifier: Apache-2.0
// /tmp/perf-PID.map: lines "START SIZE NAME", in hexadecimal, which just-in-time compilers append to where they are
// asked to (node --perf-basic-prof, DOTNET_PerfMapEnabled=1, erl +JPperf true, ...). Where code was put in place of
// other code both have lines, and the later one holds.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/target/code_map.h"
#include "libqut/target/opened_target.h"

enum { FILE_BYTES_MAX = 256 << 20 };

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
static bool take_line(const char *at, const char *end, struct target_code_entry *entry, const char **name)
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
    *name = at;
    return size != 0 && entry->end > entry->start;
}

static bool parse(const char *text, size_t size, struct target_code_map *map)
{
    const char *end = text + size;
    for (const char *at = text, *next; at < end && (next = memchr(at, '\n', (size_t)(end - at))); at = next + 1) {
        struct target_code_entry entry = {0};
        const char *name;
        if (take_line(at, next, &entry, &name) &&
            (!target_code_map_add_name(map, name, (size_t)(next - name), &entry) || !target_code_map_add(map, &entry)))
            return false;
    }
    target_code_map_settle(map);
    return true;
}

// What is there now, if it is due. Where it cannot be read any more, what was read holds.
static void read_if_due(struct qut_target *target, struct target_code_map *map)
{
    struct target_code_map fresh = {0};
    struct target_code_source source;
    char path[PATH_MAX];
    void *pages;
    size_t size;
    uint64_t begin_ns = os_now_ns();
    if (!target_code_map_is_due(map, begin_ns))
        return;
    if (target->kind->code_source(target, &source) &&
        snprintf(path, sizeof path, "/proc/%d/root/tmp/perf-%ld.map", (int)source.tid, source.inner_pid) < PATH_MAX &&
        os_read_file_of(path, source.user_id, FILE_BYTES_MAX, &pages, &size) == 0) {
        bool is_whole = parse(pages, size, &fresh);
        struct target_code_map *older = is_whole ? map : &fresh;
        target_code_map_free(older);
        if (is_whole)
            *map = fresh;
        os_free_pages(pages, size);
    }
    target_code_map_rest(map, begin_ns, os_now_ns());
}

bool target_perf_map_find(struct qut_target *target, uint64_t address, struct qut_made_code *code)
{
    if (!target->kind->code_source)
        return false;
    if (!target->perf_map)
        target->perf_map = calloc(1, sizeof *target->perf_map);
    if (!target->perf_map)
        return false;
    read_if_due(target, target->perf_map);
    const struct target_code_entry *entry = target_code_map_find(target->perf_map, address, UINT64_MAX);
    if (entry)
        target_code_map_tell(target->perf_map, entry, code);
    return entry != NULL;
}

void target_free_perf_map(struct qut_target *target)
{
    if (target->perf_map)
        target_code_map_free(target->perf_map);
    free(target->perf_map);
    target->perf_map = NULL;
}
