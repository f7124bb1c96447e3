// SPDX-License-Identifier: Apache-2.0
// Which file is mapped at an address of this process, and which memory is executable, by /proc/self/maps.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"

static bool is_same_file(const char *path, unsigned device_major, unsigned device_minor, unsigned long long inode)
{
    struct stat status;
    return stat(path, &status) == 0 && major(status.st_dev) == device_major && minor(status.st_dev) == device_minor &&
           status.st_ino == inode;
}

// False where the line is of another address.
void os_maps_unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        bool escaped = strncmp(from, "\\012", 4) == 0;
        *to = escaped ? '\n' : *from;
        from += escaped ? 4 : 1;
    }
    *to = 0;
}

static bool parse_line(char *line, uintptr_t address, struct os_mapping *mapping)
{
    unsigned long long start, end, offset, inode;
    unsigned device_major, device_minor;
    int path_at = 0;
    if (sscanf(line, "%llx-%llx %*4s %llx %x:%x %llu %n", &start, &end, &offset, &device_major, &device_minor, &inode,
               &path_at) < 6 ||
        address < start || address >= end)
        return false;
    const char *path = line + path_at;
    size_t size = path_at ? strcspn(path, "\n") : 0;
    if (size >= sizeof mapping->path)
        size = 0;
    memcpy(mapping->path, path, size);
    mapping->path[size] = 0;
    os_maps_unescape(mapping->path);
    mapping->start = (uintptr_t)start;
    mapping->end = (uintptr_t)end;
    mapping->offset_bytes = offset;
    mapping->is_file = mapping->path[0] == '/';
    // A file that was removed has " (deleted)" behind its name, and is told by there being no such file. One whose
    // name ends so is found.
    mapping->is_there = mapping->is_file && is_same_file(mapping->path, device_major, device_minor, inode);
    return true;
}

int os_mapping_at(uintptr_t address, struct os_mapping *mapping)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (!file)
        return -errno;
    char *line = NULL;
    size_t line_size = 0;
    int result = -ENOENT;
    while (result != 0 && getline(&line, &line_size, file) > 0)
        if (parse_line(line, address, mapping))
            result = 0;
    free(line);
    fclose(file);
    return result;
}

// "start-end rwxp offset major:minor inode   path". False: it is none.
static bool parse_map_line(const char *at, struct os_map_line *line)
{
    char *next;
    line->start = (uintptr_t)strtoull(at, &next, 16);
    if (*next != '-')
        return false;
    line->end = (uintptr_t)strtoull(next + 1, &next, 16);
    if (line->end <= line->start || strnlen(next, 6) < 6)
        return false;
    line->is_readable = next[1] == 'r';
    line->is_executable = next[3] == 'x';
    line->offset_bytes = strtoull(next + 6, &next, 16);
    uint64_t device_major = strtoull(next, &next, 16);
    if (*next != ':')
        return false;
    line->device = device_major << 32 | strtoull(next + 1, &next, 16);
    line->inode = strtoull(next, &next, 10);
    line->path = next + strspn(next, " ");
    line->path_bytes = strcspn(line->path, "\n");
    return true;
}

int os_each_mapping(int (*each)(void *context, const struct os_map_line *line), void *context)
{
    enum { MAPS_BYTES_MAX = 64 << 20 };
    char *text;
    size_t size;
    int result = os_read_text("/proc/self/maps", MAPS_BYTES_MAX, &text, &size);
    if (result != 0)
        return result;
    for (char *at = text; *at && result == 0;) {
        struct os_map_line line;
        char *end_of_line = strchr(at, '\n');
        if (parse_map_line(at, &line))
            result = each(context, &line);
        at = end_of_line ? end_of_line + 1 : text + size;
    }
    free(text);
    return result;
}
