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

#include "qutc/input/elf_file.h"
#include "qutc/input/inputs_list.h"

enum {
    DIRECTORY_DEPTH_MAX = 128,
    ELF_HEADER_BYTES = 64,
};

// An open-addressing set: trees have a hundred thousand files.
struct seen_key {
    uint64_t device;
    uint64_t inode;
    uint64_t offset_plus_1; // 0: the slot is free
};

struct qutc_inputs_seen {
    struct seen_key *slots;
    size_t slot_count; // a power of two
    size_t used;
};

static struct seen_key *find_slot(struct seen_key *slots, size_t slot_count, const struct seen_key *key)
{
    uint64_t hash = (key->inode * 0x9e3779b97f4a7c15U) ^ (key->device * 0xc2b2ae3d27d4eb4fU) ^ key->offset_plus_1;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15U;
    for (size_t i = (size_t)(hash >> 32);; i++) {
        struct seen_key *slot = &slots[i & (slot_count - 1)];
        if (!slot->offset_plus_1 || memcmp(slot, key, sizeof *key) == 0)
            return slot;
    }
}

static int grow_seen(struct qutc_inputs_seen *seen)
{
    size_t slot_count = seen->slot_count ? seen->slot_count * 2 : 64;
    struct seen_key *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return -1;
    for (size_t i = 0; i < seen->slot_count; i++)
        if (seen->slots[i].offset_plus_1)
            *find_slot(slots, slot_count, &seen->slots[i]) = seen->slots[i];
    free(seen->slots);
    seen->slots = slots;
    seen->slot_count = slot_count;
    return 0;
}

// 1: new, and now known; 0: known; -1: no memory.
static int remember(struct qutc_inputs *inputs, const struct qutc_input_file *file, uint64_t offset)
{
    if (!inputs->seen)
        inputs->seen = calloc(1, sizeof *inputs->seen);
    struct qutc_inputs_seen *seen = inputs->seen;
    if (!seen || (seen->used * 2 >= seen->slot_count && grow_seen(seen)))
        return -1;
    struct seen_key key = {file->device, file->inode, offset + 1};
    struct seen_key *slot = find_slot(seen->slots, seen->slot_count, &key);
    if (slot->offset_plus_1)
        return 0;
    *slot = key;
    seen->used++;
    return 1;
}

void qutc_inputs_init(struct qutc_inputs *inputs)
{
    *inputs = (struct qutc_inputs){0};
}

void qutc_inputs_free(struct qutc_inputs *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].path);
        free(inputs->items[i].name);
        free((void *)(uintptr_t)inputs->items[i].memory.data);
    }
    free(inputs->items);
    if (inputs->seen)
        free(inputs->seen->slots);
    free(inputs->seen);
    qutc_inputs_init(inputs);
}

static int append(struct qutc_inputs *inputs, const struct qutc_input *item, struct qutc_error *error)
{
    if (inputs->count == inputs->capacity) {
        size_t capacity = inputs->capacity ? inputs->capacity * 2 : 16;
        struct qutc_input *items = realloc(inputs->items, capacity * sizeof *items);
        if (!items)
            return qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "%zu inputs", capacity);
        inputs->items = items;
        inputs->capacity = capacity;
    }
    inputs->items[inputs->count++] = *item;
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

int qutc_inputs_add_file(struct qutc_inputs *inputs, const struct qutc_input_file *file, const char *member,
                         uint64_t offset_bytes, uint64_t size_bytes, struct qutc_error *error)
{
    int is_new = remember(inputs, file, offset_bytes);
    if (is_new == 0)
        return 0;
    struct qutc_input item = {.path = strdup(file->path),
                              .name = full_name(file->name, member),
                              .offset_bytes = offset_bytes,
                              .size_bytes = size_bytes};
    if (is_new < 0 || !item.path || !item.name) {
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "list of inputs");
    } else if (append(inputs, &item, error) == 0) {
        return 0;
    }
    free(item.path);
    free(item.name);
    return -1;
}

int qutc_inputs_add_memory(struct qutc_inputs *inputs, uint8_t *data, size_t size, const char *name,
                           struct qutc_error *error)
{
    struct qutc_input item = {.path = strdup(name), .name = strdup(name), .memory = {data, size}};
    if (!item.path || !item.name) {
        qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "list of inputs");
    } else if (append(inputs, &item, error) == 0) {
        return 0;
    }
    free(item.path);
    free(item.name);
    free(data);
    return -1;
}

static enum qutc_file_kind kind_of_start(struct qutc_bytes start)
{
    bool is_elf;
    if (qutc_elf_probe(start, &is_elf))
        return QUTC_FILE_ELF;
    if (is_elf)
        return QUTC_FILE_ELF_UNSUPPORTED;
    if (start.size >= 4 && memcmp(start.data, "PK\3\4", 4) == 0)
        return QUTC_FILE_ARCHIVE;
    return QUTC_FILE_OTHER;
}

enum qutc_file_kind qutc_file_kind(struct qutc_input_file *file, bool follow, struct qutc_error *error)
{
    enum qutc_file_kind kind = QUTC_FILE_OTHER;
    uint8_t start[ELF_HEADER_BYTES];
    struct stat status;
    // A pipe or a device must neither block nor be disturbed.
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
    if (fd < 0 || fstat(fd, &status)) {
        qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
        kind = QUTC_FILE_UNREADABLE;
    } else if (S_ISREG(status.st_mode)) {
        file->device = (uint64_t)status.st_dev;
        file->inode = (uint64_t)status.st_ino;
        ssize_t got = pread(fd, start, sizeof start, 0);
        if (got < 0) {
            qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
            kind = QUTC_FILE_UNREADABLE;
        } else {
            kind = kind_of_start((struct qutc_bytes){start, (size_t)got});
        }
    }
    if (fd >= 0)
        close(fd);
    return kind;
}

int qutc_inputs_add_found(struct qutc_inputs *inputs, struct qutc_input_file *file, bool follow,
                          struct qutc_error *error)
{
    size_t found = 0;
    struct qutc_error reason = {0};
    switch (qutc_file_kind(file, follow, NULL)) {
    case QUTC_FILE_ELF: return qutc_inputs_add_file(inputs, file, NULL, 0, 0, error);
    case QUTC_FILE_ELF_UNSUPPORTED: inputs->skipped_unsupported++; return 0;
    case QUTC_FILE_UNREADABLE: inputs->skipped_unreadable++; return 0;
    case QUTC_FILE_OTHER: inputs->skipped_not_elf++; return 0;
    case QUTC_FILE_ARCHIVE: break;
    }
    if (qutc_inputs_add_archive(inputs, file, QUTC_ARCHIVE_ALL, &found, &reason)) {
        if (reason.reason == QUTC_ERR_NO_MEMORY) {
            if (error && error->reason == QUTC_OK)
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

static int add_directory(struct qutc_inputs *inputs, const char *path, unsigned depth, struct qutc_error *error);

static int add_entry(struct qutc_inputs *inputs, const char *path, unsigned depth, struct qutc_error *error)
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
    struct qutc_input_file file = {.path = path, .name = path};
    return qutc_inputs_add_found(inputs, &file, false, error);
}

static int add_directory(struct qutc_inputs *inputs, const char *path, unsigned depth, struct qutc_error *error)
{
    struct dirent **entries = NULL;
    int count = is_kernel_file_system(path) ? 0 : scandir(path, &entries, NULL, by_name);
    if (count < 0 && depth == 0)
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
    if (count < 0)
        inputs->skipped_unreadable++;
    size_t length = strlen(path);
    int result = 0;
    for (int i = 0; i < count; i++) {
        char *child = NULL;
        if (result == 0 && !is_dots(entries[i]->d_name)) {
            if (asprintf(&child, "%s%s%s", path, length && path[length - 1] == '/' ? "" : "/", entries[i]->d_name) < 0)
                result = qutc_fail(error, QUTC_ERR_NO_MEMORY, "", 0, "path");
            else
                result = add_entry(inputs, child, depth, error);
            free(child);
        }
        free(entries[i]);
    }
    free(entries);
    return result;
}

static int add_named_archive(struct qutc_inputs *inputs, const struct qutc_input_file *file, struct qutc_error *error)
{
    size_t found = 0;
    size_t compressed_before = inputs->skipped_compressed;
    if (qutc_inputs_add_archive(inputs, file, QUTC_ARCHIVE_ALL, &found, error))
        return -1;
    if (!found)
        return qutc_fail(error, QUTC_ERR_NOT_ELF, "", 0, "an archive without stored ELF files (%zu compressed)",
                         inputs->skipped_compressed - compressed_before);
    return 0;
}

int qutc_inputs_add_path(struct qutc_inputs *inputs, const char *path, struct qutc_error *error)
{
    struct stat status;
    if (stat(path, &status))
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return add_directory(inputs, path, 0, error);
    if (!S_ISREG(status.st_mode))
        return qutc_fail(error, QUTC_ERR_IO, "", 0, "neither a file nor a directory");
    struct qutc_input_file file = {.path = path, .name = path};
    switch (qutc_file_kind(&file, true, error)) {
    case QUTC_FILE_ELF:
    case QUTC_FILE_ELF_UNSUPPORTED: return qutc_inputs_add_file(inputs, &file, NULL, 0, 0, error);
    case QUTC_FILE_ARCHIVE: return add_named_archive(inputs, &file, error);
    case QUTC_FILE_UNREADABLE: return -1;
    default: return qutc_fail(error, QUTC_ERR_NOT_ELF, "", 0, "neither ELF nor an archive");
    }
}

int qutc_input_open(const struct qutc_input *input, const struct qutc_image_options *options, struct qutc_image **image,
                    struct qutc_error *error)
{
    if (input->memory.data)
        return qutc_image_open_memory(input->memory, input->name, options, image, error);
    return qutc_image_open(input->path, input->name, input->offset_bytes, input->size_bytes, options, image, error);
}
