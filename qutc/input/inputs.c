// SPDX-License-Identifier: Apache-2.0
#include "qutc/input/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash_index.h"
#include "base/vector.h"
#include "qutc/input/elf_file.h"
#include "qutc/input/inputs_list.h"

enum {
    DIRECTORY_DEPTH_MAX = 128,
    ELF_HEADER_BYTES = 64,
};

// A set with an index: trees have a hundred thousand files.
struct seen_key {
    uint64_t device, inode, offset;
};

struct input_inputs_seen {
    BASE_VECTOR(struct seen_key);
    struct base_hash_index index;
};

// 1: new, and now known; 0: known; -1: no memory.
static int remember(struct input_inputs *inputs, const struct input_file *file, uint64_t offset)
{
    if (!inputs->seen)
        inputs->seen = calloc(1, sizeof *inputs->seen);
    struct input_inputs_seen *seen = inputs->seen;
    if (!seen)
        return -1;
    const struct seen_key key = {file->device, file->inode, offset};
    uint64_t hash = base_hash_bytes(0, &key, sizeof key);
    for (uint32_t step = 0, i; (i = base_hash_next(&seen->index, hash, &step)) != BASE_HASH_NONE;)
        if (memcmp(&seen->items[i], &key, sizeof key) == 0)
            return 0;
    struct seen_key *added = BASE_ADD(seen);
    if (!added || !base_hash_add(&seen->index, hash, (uint32_t)seen->count - 1))
        return -1;
    *added = key;
    return 1;
}

void input_inputs_init(struct input_inputs *inputs)
{
    *inputs = (struct input_inputs){0};
}

void input_inputs_free(struct input_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].path);
        free(inputs->items[i].name);
        free((void *)(uintptr_t)inputs->items[i].memory.data);
    }
    free(inputs->items);
    if (inputs->seen) {
        base_vector_free(&inputs->seen->vector);
        base_hash_free(&inputs->seen->index);
    }
    free(inputs->seen);
    input_inputs_init(inputs);
}

static int append(struct input_inputs *inputs, const struct input *item, struct base_error *error)
{
    struct input *place = BASE_ADD(inputs);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of inputs");
    *place = *item;
    return 0;
}

// Names end up on terminals and in line-based output.
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static char *full_name(const char *name, const char *member)
{
    char *text = NULL;
    int length = asprintf(&text, "%s%s%s", name, member ? "!" : "", member ? member : "");
    if (length < 0)
        return NULL;
    make_printable(text);
    return text;
}

int input_inputs_add_file(struct input_inputs *inputs, const struct input_file *file, const char *member,
                          uint64_t offset_bytes, uint64_t size_bytes, struct base_error *error)
{
    int is_new = remember(inputs, file, offset_bytes);
    if (is_new == 0)
        return 0;
    struct input item = {.path = strdup(file->path),
                         .name = full_name(file->name, member),
                         .offset_bytes = offset_bytes,
                         .size_bytes = size_bytes};
    if (is_new < 0 || !item.path || !item.name) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of inputs");
    } else if (append(inputs, &item, error) == 0) {
        return 0;
    }
    free(item.path);
    free(item.name);
    return -1;
}

int input_inputs_add_memory(struct input_inputs *inputs, uint8_t *data, size_t size, const char *name,
                            struct base_error *error)
{
    struct input item = {.path = strdup(name), .name = strdup(name), .memory = {data, size}};
    if (!item.path || !item.name) {
        base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of inputs");
    } else if (append(inputs, &item, error) == 0) {
        return 0;
    }
    free(item.path);
    free(item.name);
    free(data);
    return -1;
}

static enum input_file_kind kind_of_start(struct base_bytes start)
{
    bool is_elf;
    if (input_elf_probe(start, &is_elf))
        return INPUT_FILE_ELF;
    if (is_elf)
        return INPUT_FILE_ELF_UNSUPPORTED;
    if (start.size >= 4 && memcmp(start.data, "PK\3\4", 4) == 0)
        return INPUT_FILE_ARCHIVE;
    return INPUT_FILE_OTHER;
}

enum input_file_kind input_file_kind(struct input_file *file, bool follow, struct base_error *error)
{
    enum input_file_kind kind = INPUT_FILE_OTHER;
    uint8_t start[ELF_HEADER_BYTES];
    struct stat status;
    // A pipe or a device must neither block nor be disturbed.
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0 || fstat(fd, &status)) {
        base_fail_errno(error, errno);
        kind = INPUT_FILE_UNREADABLE;
    } else if (S_ISREG(status.st_mode)) {
        file->device = (uint64_t)status.st_dev;
        file->inode = (uint64_t)status.st_ino;
        ssize_t got = pread(fd, start, sizeof start, 0);
        if (got < 0) {
            base_fail_errno(error, errno);
            kind = INPUT_FILE_UNREADABLE;
        } else {
            kind = kind_of_start((struct base_bytes){start, (size_t)got});
        }
    }
    if (fd >= 0)
        close(fd);
    return kind;
}

int input_inputs_add_found(struct input_inputs *inputs, struct input_file *file, bool follow, struct base_error *error)
{
    size_t found = 0;
    struct base_error reason = {0};
    switch (input_file_kind(file, follow, NULL)) {
    case INPUT_FILE_ELF: return input_inputs_add_file(inputs, file, NULL, 0, 0, error);
    case INPUT_FILE_ELF_UNSUPPORTED: inputs->skipped_unsupported++; return 0;
    case INPUT_FILE_UNREADABLE: inputs->skipped_unreadable++; return 0;
    case INPUT_FILE_OTHER: inputs->skipped_not_elf++; return 0;
    case INPUT_FILE_ARCHIVE: break;
    }
    if (input_inputs_add_archive(inputs, file, INPUT_ARCHIVE_ALL, &found, &reason)) {
        if (reason.reason == BASE_ERR_NO_MEMORY) {
            if (error && error->reason == BASE_OK)
                *error = reason;
            return -1;
        }
        inputs->skipped_unreadable++;
    } else if (!found) {
        inputs->skipped_not_elf++;
    }
    return 0;
}

// The kernel's own file systems hold no ELF files, but files that are endless, or change something when read.
static bool is_kernel_file_system(const char *path)
{
    struct statfs status;
    if (statfs(path, &status))
        return false;
    switch ((unsigned long)status.f_type) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case BPF_FS_MAGIC: return true;
    default: return false;
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int add_directory(struct input_inputs *inputs, const char *path, unsigned depth, struct base_error *error);

static int add_entry(struct input_inputs *inputs, const char *path, unsigned depth, struct base_error *error)
{
    struct stat status;
    if (lstat(path, &status)) {
        inputs->skipped_unreadable++;
        return 0;
    }
    if (S_ISDIR(status.st_mode)) {
        if (depth < DIRECTORY_DEPTH_MAX)
            return add_directory(inputs, path, depth + 1, error);
        inputs->skipped_unreadable++;
        return 0;
    }
    if (!S_ISREG(status.st_mode))
        return 0;
    struct input_file file = {.path = path, .name = path};
    return input_inputs_add_found(inputs, &file, false, error);
}

static int add_directory(struct input_inputs *inputs, const char *path, unsigned depth, struct base_error *error)
{
    struct dirent **entries = NULL;
    int count = is_kernel_file_system(path) ? 0 : scandir(path, &entries, NULL, by_name);
    if (count < 0 && (depth == 0 || errno == ENOMEM))
        return base_fail_errno(error, errno);
    if (count < 0)
        inputs->skipped_unreadable++;
    size_t length = strlen(path);
    int result = 0;
    for (int i = 0; i < count; i++) {
        char *child = NULL;
        if (result == 0 && !is_dots(entries[i]->d_name)) {
            if (asprintf(&child, "%s%s%s", path, length && path[length - 1] == '/' ? "" : "/", entries[i]->d_name) < 0)
                result = base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "path");
            else
                result = add_entry(inputs, child, depth, error);
            free(child);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int add_named_archive(struct input_inputs *inputs, const struct input_file *file, struct base_error *error)
{
    size_t found = 0;
    size_t compressed_before = inputs->skipped_compressed;
    if (input_inputs_add_archive(inputs, file, INPUT_ARCHIVE_ALL, &found, error))
        return -1;
    if (!found)
        return base_fail(error, BASE_ERR_NOT_ELF, "", 0, "an archive without stored ELF files (%zu compressed)",
                         inputs->skipped_compressed - compressed_before);
    return 0;
}

int input_inputs_add_path(struct input_inputs *inputs, const char *path, struct base_error *error)
{
    struct stat status;
    if (stat(path, &status))
        return base_fail_errno(error, errno);
    if (S_ISDIR(status.st_mode))
        return add_directory(inputs, path, 0, error);
    if (!S_ISREG(status.st_mode))
        return base_fail(error, BASE_ERR_IO, "", 0, "neither a file nor a directory");
    struct input_file file = {.path = path, .name = path};
    switch (input_file_kind(&file, true, error)) {
    case INPUT_FILE_ELF:
    case INPUT_FILE_ELF_UNSUPPORTED: return input_inputs_add_file(inputs, &file, NULL, 0, 0, error);
    case INPUT_FILE_ARCHIVE: return add_named_archive(inputs, &file, error);
    case INPUT_FILE_UNREADABLE: return -1;
    default: return base_fail(error, BASE_ERR_NOT_ELF, "", 0, "neither ELF nor an archive");
    }
}

int input_open(const struct input *input, const struct input_image_options *options, struct input_image **image,
               struct base_error *error)
{
    if (input->memory.data)
        return input_image_open_memory(input->memory, input->name, options, image, error);
    return input_image_open(input->path, input->name, input->offset_bytes, input->size_bytes, options, image, error);
}
