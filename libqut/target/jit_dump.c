// SPDX-License-Identifier: Apache-2.0
// jit-PID.dump: what just-in-time compilers write for `perf inject --jit` where they are asked to (node --perf-prof,
// python3 -X perf_jit, LLVM's and Mono's listeners): a record for each piece of code, with its name and its bytes, and
// one where it is moved. They map the file, executable, to leave a trace of it: so it is found. It only grows: each
// reading goes on where the last one ended.
//
// The file lags behind: V8 keeps the last 2 MiB of it to itself until it ends. So a record is believed of a moment only
// if the file says more of later moments; or the process has gone and the file ends with a whole record; or memory has
// the very code that the record has.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/target/code_map.h"
#include "libqut/target/opened_target.h"

enum {
    MAGIC = 0x4a695444, // "JiTD", as a number of the machine that wrote it
    VERSION = 1,
    CODE_LOAD = 0,
    CODE_MOVE = 1,
    RECORD_BYTES_READ = 640, // of each: as much as its numbers and the longest name that is kept
    RECORDS_MAX = 1 << 22,
    COMPARED_BYTES_MAX = 4096,
    DIFFERING_PARTS = 8, // one of so many parts may differ: collectors of garbage change addresses in code
};

struct dump_header {
    uint32_t magic, version, header_bytes, elf_machine, padding, pid;
    uint64_t written_ns, flags; // flags: times are by another clock than the monotonic one
};
static_assert(sizeof(struct dump_header) == 40, "as perf reads it");

struct record_head {
    uint32_t kind, record_bytes;
    uint64_t written_ns;
};
static_assert(sizeof(struct record_head) == 16, "as perf reads it");

struct code_load {
    uint32_t pid, tid;
    uint64_t vaddr, start, code_bytes, code_number; // then the name, with its NUL, and the code
};
static_assert(sizeof(struct code_load) == 40, "as perf reads it");

struct code_move {
    uint32_t pid, tid;
    uint64_t vaddr, old_start, start, code_bytes, code_number;
};
static_assert(sizeof(struct code_move) == 48, "as perf reads it");

// A piece's name and code, by the number that its compiler counts up.
struct numbered {
    uint64_t code_number, code_at;
    size_t name_offset;
    uint32_t name_bytes;
};

struct target_jit_dump {
    struct target_code_map map;
    struct numbered *numbered; // ascending
    size_t numbered_count, numbered_capacity;
    uint64_t next_offset; // of the record that is read next; 0: the header was not read yet
    uint64_t told_ns;     // the file says all up to then
    uint64_t read_bytes;  // of the file, when it was read last
    bool is_whole;        // it ends with a whole record
    bool has_source;
    const char *searched_maps;        // in which no such file was
    struct target_code_source source; // as it was while the process lived
};

// ---- records

static bool add_code(struct target_code_map *map, struct target_code_entry *entry, uint64_t start, uint64_t bytes)
{
    entry->start = start;
    entry->end = start + bytes;
    return bytes == 0 || entry->end < start || target_code_map_add(map, entry);
}

static bool number_name(struct target_jit_dump *dump, uint64_t code_number, const struct target_code_entry *entry)
{
    if (dump->numbered_count && dump->numbered[dump->numbered_count - 1].code_number >= code_number)
        return true; // its moves have no name
    if (dump->numbered_count == dump->numbered_capacity) {
        size_t wanted = dump->numbered_capacity ? dump->numbered_capacity * 2 : 64;
        struct numbered *more = realloc(dump->numbered, wanted * sizeof *more);
        if (!more)
            return false;
        dump->numbered = more;
        dump->numbered_capacity = wanted;
    }
    dump->numbered[dump->numbered_count++] =
        (struct numbered){code_number, entry->code_at, entry->name_offset, entry->name_bytes};
    return true;
}

static int by_number(const void *key, const void *item)
{
    uint64_t wanted = *(const uint64_t *)key, there = ((const struct numbered *)item)->code_number;
    return wanted < there ? -1 : wanted > there;
}

// The record of the file at next_offset, and as many of its bytes behind the head as were read. False: no memory.
static bool take_record(struct target_jit_dump *dump, const struct record_head *head, const uint8_t *bytes, size_t size)
{
    struct target_code_entry entry = {.written_ns = head->written_ns};
    if (head->kind == CODE_LOAD && size > sizeof(struct code_load)) {
        struct code_load load;
        memcpy(&load, bytes, sizeof load);
        if (load.code_bytes <= head->record_bytes - sizeof *head - sizeof load)
            entry.code_at = dump->next_offset + head->record_bytes - load.code_bytes;
        const char *name = (const char *)bytes + sizeof load;
        return target_code_map_add_name(&dump->map, name, strnlen(name, size - sizeof load), &entry) &&
               number_name(dump, load.code_number, &entry) && add_code(&dump->map, &entry, load.start, load.code_bytes);
    }
    if (head->kind == CODE_MOVE && size >= sizeof(struct code_move) && dump->numbered_count) {
        struct code_move move;
        memcpy(&move, bytes, sizeof move);
        const struct numbered *piece =
            bsearch(&move.code_number, dump->numbered, dump->numbered_count, sizeof *dump->numbered, by_number);
        if (!piece)
            return true;
        entry.name_offset = piece->name_offset;
        entry.name_bytes = piece->name_bytes;
        entry.code_at = piece->code_at;
        return add_code(&dump->map, &entry, move.start, move.code_bytes);
    }
    return true;
}

static bool take_header(struct target_jit_dump *dump, int fd)
{
    struct dump_header header;
    if (os_read_at(fd, 0, &header, sizeof header) != sizeof header || header.magic != MAGIC ||
        header.version != VERSION || header.header_bytes < sizeof header ||
        header.pid != (uint64_t)dump->source.inner_pid || header.flags != 0)
        return false;
    dump->next_offset = header.header_bytes;
    return true;
}

// As far as whole records are there: the last one may be half written.
static void take_records(struct target_jit_dump *dump, int fd, uint64_t file_bytes)
{
    uint8_t bytes[RECORD_BYTES_READ];
    struct record_head head;
    while (dump->map.count < RECORDS_MAX && file_bytes > dump->next_offset) {
        size_t there = os_read_at(fd, dump->next_offset, bytes, sizeof bytes);
        if (there < sizeof head)
            break;
        memcpy(&head, bytes, sizeof head);
        if (head.record_bytes < sizeof head || head.record_bytes > file_bytes - dump->next_offset)
            break;
        size_t size = there < head.record_bytes ? there : head.record_bytes;
        if (!take_record(dump, &head, bytes + sizeof head, size - sizeof head))
            break;
        dump->next_offset += head.record_bytes;
        if (head.written_ns > dump->told_ns)
            dump->told_ns = head.written_ns;
    }
    dump->read_bytes = file_bytes;
    dump->is_whole = dump->next_offset == file_bytes;
    target_code_map_settle(&dump->map);
}

// ---- the file

static const struct target_map *mapping_of_dump(const struct target_maps *maps, long inner_pid)
{
    char name[32];
    snprintf(name, sizeof name, "/jit-%ld.dump", inner_pid);
    size_t name_bytes = strlen(name);
    for (size_t i = 0; i < maps->count; i++) {
        const struct target_map *map = &maps->items[i];
        size_t path_bytes = strlen(map->path);
        if (map->executable && path_bytes >= name_bytes && strcmp(map->path + path_bytes - name_bytes, name) == 0)
            return map;
    }
    return NULL;
}

// The file, open; or negative. Its process may have ended since it was first seen.
static int open_file(struct qut_target *target, struct target_jit_dump *dump, uint64_t *file_bytes)
{
    char path[PATH_MAX];
    if (!dump->has_source)
        dump->has_source = target->kind->code_source(target, &dump->source);
    if (!dump->has_source || dump->searched_maps == target->maps.text)
        return -1;
    const struct target_map *map = mapping_of_dump(&target->maps, dump->source.inner_pid);
    if (!map)
        dump->searched_maps = target->maps.text;
    for (unsigned n = 0; map && target->kind->file(target, map, n, path); n++) {
        int fd = os_open_file_of(path, dump->source.user_id, file_bytes);
        if (fd >= 0 && (dump->next_offset || take_header(dump, fd)))
            return fd;
        if (fd >= 0)
            os_close_file(fd);
    }
    return -1;
}

// Whether memory has the code that the file has. *is_gone: it has none there.
static bool is_in_memory(struct qut_target *target, int fd, const struct target_code_entry *entry, bool *is_gone)
{
    uint8_t there[COMPARED_BYTES_MAX], written[COMPARED_BYTES_MAX];
    uint64_t code_bytes = entry->end - entry->start;
    size_t size = code_bytes < sizeof there ? (size_t)code_bytes : sizeof there, differing = 0;
    *is_gone = target->kind->read(target, entry->start, there, size) != size;
    if (*is_gone || !entry->code_at || os_read_at(fd, entry->code_at, written, size) != size)
        return false;
    for (size_t i = 0; i < size; i++)
        differing += there[i] != written[i];
    return differing <= size / DIFFERING_PARTS;
}

static bool find(struct qut_target *target, struct target_jit_dump *dump, int fd, uint64_t address, uint64_t at_ns,
                 struct qut_made_code *code)
{
    const struct target_code_entry *entry = target_code_map_find(&dump->map, address, at_ns);
    bool is_gone = false;
    if (!entry || (dump->told_ns < at_ns && !is_in_memory(target, fd, entry, &is_gone) && !(is_gone && dump->is_whole)))
        return false;
    target_code_map_tell(&dump->map, entry, code);
    return true;
}

bool target_jit_dump_find(struct qut_target *target, uint64_t address, uint64_t at_ns, struct qut_made_code *code)
{
    uint64_t begin_ns = os_now_ns(), file_bytes = 0;
    if (!target->kind->code_source)
        return false;
    if (!target->jit_dump)
        target->jit_dump = calloc(1, sizeof *target->jit_dump);
    struct target_jit_dump *dump = target->jit_dump;
    int fd = dump ? open_file(target, dump, &file_bytes) : -1;
    if (fd < 0)
        return false;
    bool is_past = at_ns < begin_ns && dump->told_ns < at_ns; // there is no other time to ask for it
    if (file_bytes != dump->read_bytes && (is_past || target_code_map_is_due(&dump->map, begin_ns))) {
        take_records(dump, fd, file_bytes);
        target_code_map_rest(&dump->map, begin_ns, os_now_ns());
    }
    bool is_found = find(target, dump, fd, address, at_ns, code);
    os_close_file(fd);
    return is_found;
}

void target_free_jit_dump(struct qut_target *target)
{
    struct target_jit_dump *dump = target->jit_dump;
    if (!dump)
        return;
    target_code_map_free(&dump->map);
    free(dump->numbered);
    free(dump);
    target->jit_dump = NULL;
}
