// SPDX-License-Identifier: Apache-2.0
// A live process: what /proc says of it.
#include "libqut/target/live.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/os/file.h"
#include "libqut/os/process.h"
#include "libqut/walk/walk_local.h"

enum { PROC_BYTES_MAX = 256 << 20 };

static size_t read_memory(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    const struct target_live *live = target->source;
    return os_read_process(live->memory_tid, live->memory_fd, address, bytes, size);
}

// A file that was removed or replaced is still to be had through /proc, with the right privileges.
static bool mapped_file(struct qut_target *target, const struct target_map *map, unsigned n, char *path)
{
    const struct target_live *live = target->source;
    int length;
    if (map->path[0] != '/')
        return false;
    switch (n) {
    case 0: length = snprintf(path, PATH_MAX, "%s%s", target->sysroot ? target->sysroot : "", map->path); break;
    case 1: // in another mount namespace
        length = snprintf(path, PATH_MAX, "/proc/%d/root%s", (int)live->memory_tid, map->path);
        break;
    case 2:
        length = snprintf(path, PATH_MAX, "/proc/%d/map_files/%llx-%llx", (int)live->memory_tid,
                          (unsigned long long)map->start, (unsigned long long)map->end);
        break;
    default: return false;
    }
    return length < PATH_MAX;
}

static int open_exe(pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)tid);
    return os_open_file(path, NULL);
}

static int take_if_it_has_memory(void *context, pid_t tid)
{
    struct target_live *live = context;
    int fd = open_exe(tid);
    if (fd < 0)
        return 0;
    os_close_file(fd);
    live->memory_tid = tid;
    return 1;
}

static void read_pieces(struct qut_target *target, struct elf_art_piece *pieces, size_t count)
{
    enum { AT_ONCE = 64 };
    const struct target_live *live = target->source;
    struct os_piece some[AT_ONCE];
    for (size_t first = 0; first < count; first += AT_ONCE) {
        size_t n = count - first < AT_ONCE ? count - first : AT_ONCE;
        for (size_t i = 0; i < n; i++)
            some[i] = (struct os_piece){
                .address = pieces[first + i].address, .bytes = pieces[first + i].bytes, .size = pieces[first + i].size};
        os_read_process_pieces(live->memory_tid, live->memory_fd, some, n);
        for (size_t i = 0; i < n; i++)
            pieces[first + i].got = some[i].got;
    }
}

// Of a thread that has ended, /proc shows no memory, also where it was the first one and others go on.
static void find_memory(struct target_live *live)
{
    live->memory_tid = live->pid;
    int fd = open_exe(live->pid);
    if (fd >= 0)
        os_close_file(fd);
    else if (fd == -ENOENT)
        target_live_each_tid(live->pid, take_if_it_has_memory, live);
}

static char *read_proc(pid_t pid, const char *name, size_t *size, int *result)
{
    char path[64], *text = NULL;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    *result = os_read_text(path, PROC_BYTES_MAX, &text, size);
    return text;
}

// The first or the last number of a line; -1: there is no such line.
static long status_number(pid_t pid, const char *field, bool is_last)
{
    size_t size, length = strlen(field);
    int result;
    char *text = read_proc(pid, "status", &size, &result);
    long number = -1;
    for (char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, length) != 0 || line[length] != ':')
            continue;
        char *at = line + length + 1, *behind;
        for (long next = strtol(at, &behind, 10); behind != at && *at != '\n'; next = strtol(at, &behind, 10)) {
            number = next;
            at = behind;
            if (!is_last || *at == '\n')
                break;
        }
        break;
    }
    free(text);
    return number;
}

long target_live_status_number(pid_t pid, const char *field)
{
    return status_number(pid, field, false);
}

// As it knows itself, in the innermost namespace of pids.
static long inner_pid(pid_t pid)
{
    return status_number(pid, "NSpid", true);
}

static pid_t inner_tid(struct qut_target *target, const struct qut_target_thread *thread)
{
    (void)target;
    long inner = inner_pid(thread->info.tid);
    return inner > 0 ? (pid_t)inner : thread->info.tid;
}

static bool code_source(struct qut_target *target, struct target_code_source *source)
{
    const struct target_live *live = target->source;
    long user = target_live_status_number(live->pid, "Uid"), inner = inner_pid(live->pid);
    *source = (struct target_code_source){live->memory_tid, inner, (uint32_t)user};
    return user >= 0 && inner > 0;
}

struct each_tid {
    int (*each)(void *context, pid_t tid);
    void *context;
};

static int take_name(void *context, const char *name)
{
    const struct each_tid *each = context;
    char *end;
    long tid = strtol(name, &end, 10);
    return tid > 0 && *end == '\0' ? each->each(each->context, (pid_t)tid) : 0;
}

int target_live_each_tid(pid_t pid, int (*each)(void *context, pid_t tid), void *context)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    struct each_tid all = {each, context};
    return os_each_name(path, take_name, &all);
}

int target_live_fail(struct qut_target_error *error, pid_t pid, int result)
{
    if (result == -ENOENT || result == -ESRCH)
        return target_fail(error, "%d: no such process", (int)pid);
    if (result == -EACCES || result == -EPERM) {
        char *text = NULL;
        size_t size;
        char scope = 0;
        if (os_read_text("/proc/sys/kernel/yama/ptrace_scope", 64, &text, &size) == 0)
            scope = text[0];
        free(text);
        return target_fail(error, "%d: not permitted: %s", (int)pid,
                           scope > '0' ? "it is not a child of ours and kernel.yama.ptrace_scope is not 0; "
                                         "CAP_SYS_PTRACE would do"
                                       : "it belongs to another user, or protects itself; CAP_SYS_PTRACE would do");
    }
    return target_fail(error, "%d: %s", (int)pid, strerror(-result));
}

static int no_memory_there(const struct target_live *live, struct qut_target_error *error)
{
    char state = target_live_thread_state(live, live->pid);
    if (state == 'Z')
        return target_fail(error, "%d: has ended; its parent has not asked how", (int)live->pid);
    return state == 0 || state == 'X' ? target_fail(error, "%d: has ended", (int)live->pid)
                                      : target_fail(error, "%d: a kernel thread: it has no memory", (int)live->pid);
}

int target_live_refresh_maps(struct qut_target *target, struct qut_target_error *error)
{
    struct target_live *live = target->source;
    struct target_maps maps;
    size_t size;
    int result;
    char *text = read_proc(live->memory_tid, "maps", &size, &result);
    if (!text || size == 0) { // that thread has ended
        free(text);
        find_memory(live);
        text = read_proc(live->memory_tid, "maps", &size, &result);
    }
    if (!text)
        return target_live_fail(error, live->pid, result);
    // Read once more while the process stands still; mostly nothing has changed.
    if (live->maps_text && size == live->maps_text_size && memcmp(text, live->maps_text, size) == 0) {
        free(text);
        return 0;
    }
    free(live->maps_text);
    // Parsing takes the text. Without memory for a copy everything is parsed again.
    live->maps_text = malloc(size + 1);
    live->maps_text_size = size;
    if (live->maps_text)
        memcpy(live->maps_text, text, size);
    if (target_maps_parse(&maps, text, size) != 0 || target_take_maps(target, &maps) != 0)
        return target_fail(error, "%d: out of memory", (int)live->pid);
    if (target->maps.count == 0)
        return no_memory_there(live, error);
    return 0;
}

static size_t read_exe(void *context, uint64_t position, void *bytes, size_t size)
{
    return os_read_at(*(const int *)context, position, bytes, size);
}

// By the program's file: threads that run now tell nothing of themselves.
static int find_arch(struct qut_target *target, struct qut_target_error *error)
{
    const struct target_live *live = target->source;
    struct elf_head head;
    int fd = open_exe(live->memory_tid);
    if (fd < 0)
        return fd == -ENOENT ? no_memory_there(live, error) : target_live_fail(error, live->pid, fd);
    bool is_elf = elf_head_read(&head, read_exe, &fd);
    os_close_file(fd);
    target->arch = is_elf ? arch_by_elf_machine(head.machine) : NULL;
    if (target->arch && head.is_64 != (target->arch->word_bytes == 8))
        return target_fail(error, "%d: %s with 32-bit pointers is not supported", (int)live->pid, target->arch->name);
    if (target->arch && target->arch->id == arch_native_arch.id)
        target->vector_bytes = walk_local_vector_bytes();
    return target->arch ? 0
                        : target_fail(error, "%d: not of a supported architecture (ELF machine %u)", (int)live->pid,
                                      is_elf ? head.machine : 0u);
}

static int open_process(struct qut_target *target, pid_t pid, struct qut_target_error *error)
{
    struct target_live *live = target->source;
    long group = target_live_status_number(pid, "Tgid");
    if (pid <= 0 || group <= 0)
        return target_fail(error, "%d: no such process", (int)pid);
    live->pid = (pid_t)group;
    live->is_child = target_live_status_number(live->pid, "PPid") == (long)os_own_pid();
    if (live->pid == os_own_pid())
        return target_fail(error, "%d: a process cannot stop itself: use qut_backtrace", (int)pid);
    live->tasks_fd = os_open_tasks(live->pid);
    find_memory(live);
    if (find_arch(target, error) != 0)
        return -1;
    live->memory_fd = os_open_process_memory(live->memory_tid);
    size_t size;
    int result;
    char *auxv = read_proc(live->memory_tid, "auxv", &size, &result);
    if (auxv)
        target_take_auxv(target, (const uint8_t *)auxv, size, NULL);
    free(auxv);
    if (target_live_refresh_maps(target, error) != 0)
        return -1;
    if (target->pac_mask == 0)
        target->pac_mask = target_pac_mask_of_maps(target);
    return 0;
}

static void close_process(struct qut_target *target)
{
    struct target_live *live = target->source;
    if (!live)
        return;
    qut_target_resume(target);
    if (live->memory_fd >= 0)
        os_close_file(live->memory_fd);
    if (live->tasks_fd >= 0)
        os_close_file(live->tasks_fd);
    free(live->maps_text);
    free(live);
}

static const struct target_kind live_kind = {
    .read = read_memory,
    .read_pieces = read_pieces,
    .file = mapped_file,
    .registers = target_live_registers,
    .name_thread = target_live_name_thread,
    .list_threads = target_live_list_sleepers,
    .still_asleep = target_live_still_asleep,
    .retake = target_live_retake,
    .resume_thread = target_live_resume_thread,
    .inner_tid = inner_tid,
    .stop = target_live_stop,
    .code_source = code_source,
    .close = close_process,
};

struct qut_target *qut_target_process(pid_t pid, const struct qut_target_options *options,
                                      struct qut_target_error *error)
{
    struct target_live *live = calloc(1, sizeof *live);
    struct qut_target *target = live ? target_new(&live_kind, options) : NULL;
    if (!target) {
        free(live);
        target_fail(error, "%d: out of memory", (int)pid);
        return NULL;
    }
    live->memory_fd = live->tasks_fd = -1;
    target->source = live;
    if (open_process(target, pid, error) != 0) {
        qut_target_close(target);
        return NULL;
    }
    return target;
}
