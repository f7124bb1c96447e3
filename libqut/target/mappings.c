// SPDX-License-Identifier: Apache-2.0
#include "libqut/target/mappings.h"

#include <stdlib.h>
#include <string.h>

#include "libqut/os/os.h"

// Up to 16 hexadecimal digits; NULL where there are none, or too many.
static const char *parse_hex(const char *at, uint64_t *value)
{
    const char *start = at;
    *value = 0;
    for (;; at++) {
        unsigned digit;
        if (*at >= '0' && *at <= '9')
            digit = (unsigned)(*at - '0');
        else if ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'f')
            digit = (unsigned)((*at | 0x20) - 'a') + 10;
        else
            break;
        if (*value >> 60)
            return NULL;
        *value = *value << 4 | digit;
    }
    return at == start ? NULL : at;
}

static const char *skip_spaces(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

static bool at_column_end(const char *at)
{
    return *at == ' ' || *at == '\t' || *at == '\0';
}

// Offset, device and inode, as far as they are there; returns where the path begins.
static const char *parse_columns(const char *at, struct target_map *map)
{
    uint64_t major, minor;
    const char *end = parse_hex(at, &map->offset);
    if (!end || !at_column_end(end)) {
        map->offset = 0;
        return at;
    }
    at = skip_spaces(end);
    end = parse_hex(at, &major);
    if (!end || *end != ':')
        return at;
    end = parse_hex(end + 1, &minor);
    if (!end || !at_column_end(end))
        return at;
    map->device = major << 32 | (minor & UINT32_MAX);
    at = skip_spaces(end);
    for (end = at; *end >= '0' && *end <= '9'; end++)
        map->inode = map->inode * 10 + (uint64_t)(*end - '0');
    if (!at_column_end(end)) {
        map->inode = 0;
        return at;
    }
    return skip_spaces(end);
}

static bool parse_line(char *line, struct target_map *map)
{
    static const char deleted[] = " (deleted)";
    const char *at = skip_spaces(line);
    *map = (struct target_map){0};
    at = parse_hex(at, &map->start);
    if (!at || *at != '-')
        return false;
    at = parse_hex(at + 1, &map->end);
    if (!at || !at_column_end(at))
        return false;
    // Old snapshots name the last byte.
    if ((map->end & 0xfff) == 0xfff && map->end != UINT64_MAX)
        map->end++;
    if (map->start >= map->end)
        return false;
    at = skip_spaces(at);
    size_t flags = strcspn(at, " \t");
    if (flags < 3)
        return false;
    map->readable = at[0] == 'r';
    map->writable = at[1] == 'w';
    map->executable = at[2] == 'x';
    at = parse_columns(skip_spaces(at + flags), map);

    char *path = line + (at - line);
    size_t length = strlen(path);
    if (length > sizeof deleted - 1 && strcmp(path + length - (sizeof deleted - 1), deleted) == 0) {
        map->deleted = true;
        path[length - (sizeof deleted - 1)] = '\0';
    }
    os_maps_unescape(path);
    map->path = path;
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct target_map *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

void target_maps_settle(struct target_maps *maps)
{
    for (size_t i = 1; i < maps->count; i++) {
        if (maps->items[i].start < maps->items[i - 1].start) {
            qsort(maps->items, maps->count, sizeof *maps->items, by_start);
            break;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < maps->count; i++) {
        if (kept && maps->items[i].start < maps->items[kept - 1].end)
            maps->skipped_lines++;
        else
            maps->items[kept++] = maps->items[i];
    }
    maps->count = kept;
}

int target_maps_parse(struct target_maps *maps, char *text, size_t size)
{
    *maps = (struct target_maps){.text = text};
    size_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    maps->items = calloc(lines, sizeof *maps->items);
    char *last = realloc(text, size + 1);
    if (last)
        maps->text = text = last;
    if (!maps->items || !last) {
        target_maps_free(maps);
        return -1;
    }
    text[size] = '\0';
    for (char *line = text, *end = text + size; line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        if (next)
            *next = '\0';
        else
            next = end;
        if (parse_line(line, &maps->items[maps->count]))
            maps->count++;
        else if (*skip_spaces(line))
            maps->skipped_lines++;
        line = next + 1;
    }
    target_maps_settle(maps);
    return 0;
}

struct target_map *target_maps_find(const struct target_maps *maps, uint64_t address)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (maps->items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < maps->count && maps->items[low].start <= address ? &maps->items[low] : NULL;
}

void target_maps_free(struct target_maps *maps)
{
    free(maps->text);
    free(maps->items);
    *maps = (struct target_maps){0};
}
