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

int os_each_code_mapping(int (*each)(void *context, uintptr_t start, uintptr_t end), void *context)
{
    enum { MAPS_BYTES_MAX = 64 << 20 };
    char *text;
    size_t size;
    int result = os_read_text("/proc/self/maps", MAPS_BYTES_MAX, &text, &size);
    if (result != 0)
        return result;
    for (char *line = text; *line && result == 0;) {
        char *next, *end_of_line = strchr(line, '\n');
        unsigned long long start = strtoull(line, &next, 16);
        unsigned long long end = *next == '-' ? strtoull(next + 1, &next, 16) : 0;
        // "start-end rwxp ..."
        if (end > start && strnlen(next, 4) == 4 && next[3] == 'x')
            result = each(context, (uintptr_t)start, (uintptr_t)end);
        line = end_of_line ? end_of_line + 1 : text + size;
    }
    free(text);
    return result;
}
