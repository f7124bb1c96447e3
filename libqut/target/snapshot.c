// SPDX-License-Identifier: Apache-2.0
// A directory with maps.txt, regs.txt, *.data and the mapped files: one thread, as AOSP's offline unwinding tests and
// Studio's captures keep it.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/target/opened_target.h"

enum { DATA_FILES_MAX = 1024, TEXT_BYTES_MAX = 64 << 20, ADDRESS_BYTES = 8 };
#define DATA_BYTES_MAX ((size_t)1 << 30)

struct data_file { // the address of its contents, then the contents
    uint8_t *pages;
    size_t size;
    uint64_t start;
};

struct snapshot {
    char directory[PATH_MAX];
    struct data_file data[DATA_FILES_MAX];
    size_t data_count;
    size_t bad_data_files;
};

static size_t read_memory(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    const struct snapshot *snapshot = target->source;
    for (size_t i = 0; i < snapshot->data_count; i++) {
        const struct data_file *data = &snapshot->data[i];
        uint64_t into = address - data->start, length = data->size - ADDRESS_BYTES;
        if (address < data->start || into >= length)
            continue;
        size_t got = length - into < size ? (size_t)(length - into) : size;
        memcpy(bytes, data->pages + ADDRESS_BYTES + into, got);
        return got;
    }
    return 0;
}

static bool mapped_file(struct qut_target *target, const struct target_map *map, unsigned n, char *path)
{
    const struct snapshot *snapshot = target->source;
    const char *slash = strrchr(map->path, '/');
    const char *name = slash ? slash + 1 : map->path;
    if (strcmp(name, "[vdso]") == 0)
        name = "vdso.so";
    if (n > 0 || !name[0] || name[0] == '[' || strcmp(name, "..") == 0)
        return false;
    return snprintf(path, PATH_MAX, "%s/%s", snapshot->directory, name) < PATH_MAX;
}

static void close_snapshot(struct qut_target *target)
{
    struct snapshot *snapshot = target->source;
    for (size_t i = 0; snapshot && i < snapshot->data_count; i++)
        os_free_pages(snapshot->data[i].pages, snapshot->data[i].size);
    free(snapshot);
}

static const struct target_kind snapshot_kind = {
    .read = read_memory,
    .file = mapped_file,
    .close = close_snapshot,
};

static int add_data(void *context, const char *name)
{
    struct snapshot *snapshot = context;
    size_t length = strlen(name);
    char path[PATH_MAX];
    if (length < 5 || strcmp(name + length - 5, ".data") != 0)
        return 0;
    void *pages;
    size_t size;
    if (snapshot->data_count == DATA_FILES_MAX ||
        snprintf(path, sizeof path, "%s/%s", snapshot->directory, name) >= (int)sizeof path ||
        os_read_file(path, DATA_BYTES_MAX, &pages, &size) != 0) {
        snapshot->bad_data_files++;
        return 0;
    }
    if (size < ADDRESS_BYTES) {
        os_free_pages(pages, size);
        snapshot->bad_data_files++;
        return 0;
    }
    struct data_file *data = &snapshot->data[snapshot->data_count++];
    *data = (struct data_file){.pages = pages, .size = size};
    memcpy(&data->start, data->pages, sizeof data->start);
    return 0;
}

// "name: hex"; the next line, or NULL behind the last.
static char *next_register(char *at, char **name, uint64_t *value)
{
    while (at && *at) {
        char *line = at, *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        at = end ? end + 1 : line + strlen(line);
        char *colon = strchr(line, ':'), *rest;
        if (!colon)
            continue;
        *colon = '\0';
        *value = strtoull(colon + 1, &rest, 16);
        *name = line + strspn(line, " \t");
        if (rest != colon + 1)
            return at;
    }
    return NULL;
}

// A register that only one architecture has; else by the mapped files.
static const struct arch *find_arch(const struct qut_target *target, const char *text)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_by_id((enum qut_arch_id)id);
        size_t length = strlen(arch->telling_register);
        for (const char *at = text; (at = strstr(at, arch->telling_register)); at += length)
            if (at[length] == ':' && (at == text || at[-1] == '\n' || at[-1] == ' '))
                return arch;
    }
    for (size_t i = 0; i < target->image_count; i++) {
        const struct elf_head *head = target->images[i]->head;
        const struct arch *arch = head ? arch_by_elf_machine(head->machine) : NULL;
        if (arch)
            return arch;
    }
    return NULL;
}

// Its DWARF number; -1: not a register that is walked with. AOSP writes names of the instruction set, and its own for
// some of them.
static int register_number(const struct arch *arch, const char *name)
{
    for (unsigned i = 0; i < arch->register_count; i++)
        if (strcmp(arch->register_names[i], name) == 0)
            return (int)i;
    if (strcmp(name, "sp") == 0)
        return arch->sp_reg;
    if (strcmp(name, "lr") == 0)
        return arch->ra_reg;
    if (strcmp(name, "fp") == 0)
        return arch->tracked[0];
    if (arch->id == QUT_ARCH_ARM && strcmp(name, "ip") == 0)
        return 12;
    return -1;
}

static int take_registers(struct qut_target *target, char *text, struct qut_target_error *error)
{
    const struct snapshot *snapshot = target->source;
    struct qut_target_thread *thread = target_add_thread(target, 1);
    if (!thread)
        return target_fail(error, "%s: out of memory", snapshot->directory);
    bool has_pc = false;
    char *name;
    uint64_t value;
    for (char *at = text; (at = next_register(at, &name, &value));) {
        int number = register_number(target->arch, name);
        if (strcmp(name, "pc") == 0 || strcmp(name, "rip") == 0 || strcmp(name, "eip") == 0) {
            thread->regs.pc = value;
            has_pc = true;
        } else if (target->arch->vector_bytes_reg && strcmp(name, target->arch->vector_bytes_name) == 0) {
            target->vector_bytes = arch_is_vector_bytes(value) ? value : 0;
        } else if (number >= 0) {
            thread->regs.reg[number] = value;
            thread->regs.valid |= (uint64_t)1 << number;
        }
    }
    thread->state = TARGET_REGISTERS_READ;
    return has_pc ? 0 : target_fail(error, "%s/regs.txt: no pc", snapshot->directory);
}

static int read_text(const struct snapshot *snapshot, const char *name, char **text, size_t *size,
                     struct qut_target_error *error)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", snapshot->directory, name);
    int result = os_read_text(path, TEXT_BYTES_MAX, text, size);
    return result == 0 ? 0 : target_fail(error, "%.200s: %s", path, strerror(-result));
}

static int open_snapshot(struct qut_target *target, struct qut_target_error *error)
{
    struct snapshot *snapshot = target->source;
    struct target_maps maps;
    char *text;
    size_t size;
    int result = os_each_name(snapshot->directory, add_data, snapshot);
    if (result < 0)
        return target_fail(error, "%.200s: %s", snapshot->directory, strerror(-result));
    if (read_text(snapshot, "maps.txt", &text, &size, error) != 0)
        return -1;
    if (target_maps_parse(&maps, text, size) != 0 || target_take_maps(target, &maps) != 0)
        return target_fail(error, "%.200s: out of memory", snapshot->directory);
    if (read_text(snapshot, "regs.txt", &text, &size, error) != 0)
        return -1;
    target->arch = find_arch(target, text);
    result = target->arch ? take_registers(target, text, error)
                          : target_fail(error, "%.200s/regs.txt: of no known architecture", snapshot->directory);
    free(text);
    target->files_are_memory = true;
    target->stopped = true;
    if (target->arch && target->pac_mask == 0)
        target->pac_mask = target_pac_mask_of_maps(target);
    return result;
}

struct qut_target *qut_target_snapshot(const char *directory, const struct qut_target_options *options,
                                       struct qut_target_error *error)
{
    struct qut_target *target = target_new(&snapshot_kind, options);
    struct snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (target)
        target->source = snapshot;
    if (!target || !snapshot) {
        if (!target)
            free(snapshot);
        qut_target_close(target);
        target_fail(error, "%.200s: out of memory", directory);
        return NULL;
    }
    if (snprintf(snapshot->directory, sizeof snapshot->directory, "%s", directory) >= (int)sizeof snapshot->directory) {
        target_fail(error, "%.200s...: path too long", directory);
        qut_target_close(target);
        return NULL;
    }
    if (open_snapshot(target, error) != 0) {
        qut_target_close(target);
        return NULL;
    }
    return target;
}
