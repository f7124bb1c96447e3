// SPDX-License-Identifier: Apache-2.0
// What a live process has mapped executable. The process goes on meanwhile: a mapping that is gone when we look is
// counted, never an error.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qutc/input/elf_file.h"
#include "qutc/input/inputs_list.h"

enum { VDSO_MAX_BYTES = 1 << 20 };

struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t offset;
    uint64_t inode;
    bool executable;
    char *path; // in the line
};

// The latest run of neighbouring mappings of one file: where in the file it began.
struct file_run {
    uint64_t inode;
    uint64_t end;
    uint64_t first_offset;
};

// The kernel writes a line feed in a path as \012, and nothing else that way.
static void unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        bool escaped = strncmp(from, "\\012", 4) == 0;
        *to = escaped ? '\n' : *from;
        from += escaped ? 4 : 1;
    }
    *to = 0;
}

static bool parse_line(char *line, struct mapping *mapping)
{
    char permissions[5];
    int path_at = 0;
    line[strcspn(line, "\n")] = 0;
    int fields = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*x:%*x %" SCNu64 " %n", &mapping->start,
                        &mapping->end, permissions, &mapping->offset, &mapping->inode, &path_at);
    if (fields != 5 || path_at == 0 || mapping->end <= mapping->start)
        return false;
    mapping->executable = permissions[2] == 'x';
    mapping->path = line + path_at;
    unescape(mapping->path);
    return true;
}

static int add_process_vdso(struct input_inputs *inputs, int pid, const struct mapping *mapping,
                            struct base_error *error)
{
    char path[64];
    uint64_t size = mapping->end - mapping->start;
    uint8_t *copy = size <= VDSO_MAX_BYTES ? malloc((size_t)size) : NULL;
    if (!copy && size <= VDSO_MAX_BYTES)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "a vdso of 0x%jx bytes", (uintmax_t)size);
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = copy && fd >= 0 ? pread(fd, copy, (size_t)size, (off_t)mapping->start) : -1;
    if (fd >= 0)
        close(fd);
    if (got != (ssize_t)size) {
        free(copy);
        inputs->skipped_unreadable++;
        return 0;
    }
    return input_inputs_add_memory(inputs, copy, (size_t)size, "[vdso]", error);
}

// Device numbers in maps are not those of stat on some file systems (btrfs, overlayfs), so the mapping's own link
// decides where we may read it; the inode alone does where we may not.
static bool is_mapped_file(const char *path, const struct mapping *mapping, const struct stat *mapped)
{
    struct stat status;
    if (stat(path, &status) || !S_ISREG(status.st_mode))
        return false;
    if (mapped)
        return status.st_dev == mapped->st_dev && status.st_ino == mapped->st_ino;
    return status.st_ino == mapping->inode;
}

// A path by which the mapped file can be opened: its own name, the name in the process's root, the mapping's link.
// *path is allocated; NULL: none.
static int find_path(int pid, const struct mapping *mapping, char **path, struct base_error *error)
{
    char link[96], in_root[PATH_MAX + 32];
    struct stat status;
    snprintf(link, sizeof link, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->start, mapping->end);
    bool has_link = stat(link, &status) == 0;
    const struct stat *mapped = has_link ? &status : NULL;
    int length = snprintf(in_root, sizeof in_root, "/proc/%d/root%s", pid, mapping->path);
    const char *found = has_link ? link : NULL;
    if (is_mapped_file(mapping->path, mapping, mapped))
        found = mapping->path;
    else if (length < (int)sizeof in_root && is_mapped_file(in_root, mapping, mapped))
        found = in_root;
    *path = found ? strdup(found) : NULL;
    return found && !*path ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path") : 0;
}

// A damaged archive is one mapping less, not the end of the list.
static int add_archive_member(struct input_inputs *inputs, const struct input_file *file, uint64_t offset,
                              size_t *found, struct base_error *error)
{
    struct base_error reason = {0};
    if (input_inputs_add_archive(inputs, file, (int64_t)offset, found, &reason) == 0)
        return 0;
    if (reason.reason == BASE_ERR_NO_MEMORY)
        return base_fail_as(error, &reason);
    return 0;
}

// An ELF file inside a file that is no archive we can read: it begins where the loader began to map it.
static int add_embedded(struct input_inputs *inputs, const struct input_file *file, uint64_t offset,
                        struct base_error *error)
{
    struct input_file_map map;
    struct base_error why = {0};
    bool is_elf = false;
    if (offset && input_file_map_open(&map, file->path, offset, 0, INPUT_FILE_MAPPED, &why) == 0) {
        input_elf_probe(map.bytes, &is_elf);
        input_file_map_close(&map);
    }
    if (why.reason == BASE_ERR_NO_MEMORY)
        return base_fail_as(error, &why);
    if (!is_elf) {
        inputs->skipped_not_elf++;
        return 0;
    }
    char member[32];
    snprintf(member, sizeof member, "0x%" PRIx64, offset);
    return input_inputs_add_file(inputs, file, member, offset, 0, error);
}

static int add_mapped_file(struct input_inputs *inputs, int pid, const struct mapping *mapping,
                           const struct file_run *run, struct base_error *error)
{
    char *path;
    if (find_path(pid, mapping, &path, error) != 0)
        return -1;
    if (!path) {
        inputs->skipped_unreadable++;
        return 0;
    }
    struct input_file file = {.path = path, .name = mapping->path};
    enum input_file_kind kind = input_file_kind(&file, true, NULL);
    size_t found = 0;
    int result = 0;
    if (kind == INPUT_FILE_ARCHIVE)
        result = add_archive_member(inputs, &file, mapping->offset, &found, error);
    if (result == 0 && !found && (kind == INPUT_FILE_ARCHIVE || kind == INPUT_FILE_OTHER))
        result = add_embedded(inputs, &file, run->first_offset, error);
    else if (kind != INPUT_FILE_ARCHIVE)
        result = input_inputs_add_found(inputs, &file, true, error);
    free(path);
    return result;
}

static int add_mapping(struct input_inputs *inputs, int pid, const struct mapping *mapping, struct file_run *run,
                       struct base_error *error)
{
    if (mapping->inode != run->inode || mapping->start != run->end || mapping->offset < run->first_offset)
        run->first_offset = mapping->offset;
    run->inode = mapping->inode;
    run->end = mapping->end;
    if (!mapping->executable)
        return 0;
    if (strcmp(mapping->path, "[vdso]") == 0)
        return add_process_vdso(inputs, pid, mapping, error);
    if (mapping->path[0] == '/' && mapping->inode != 0)
        return add_mapped_file(inputs, pid, mapping, run, error);
    return 0;
}

int input_inputs_add_process(struct input_inputs *inputs, int pid, struct base_error *error)
{
    char path[64];
    char *line = NULL;
    size_t line_bytes = 0;
    struct mapping mapping;
    struct file_run run = {0};
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return base_fail(error, BASE_ERR_IO, "", 0, "%s", errno == ENOENT ? "no such process" : strerror(errno));
    int result = 0;
    while (result == 0 && getline(&line, &line_bytes, maps) >= 0)
        if (parse_line(line, &mapping))
            result = add_mapping(inputs, pid, &mapping, &run, error);
    if (result == 0 && !feof(maps))
        result = base_fail_errno(error, errno);
    free(line);
    fclose(maps);
    return result;
}
