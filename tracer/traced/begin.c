// SPDX-License-Identifier: Apache-2.0
// What is done once, before the first event is read: the process's memory, its file, its code.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "tracer/traced/clock.h"
#include "tracer/traced/events.h"
#include "tracer/traced/inside.h"

enum { FULL_WAIT_US = 1000000 }; // of a thread for us: no longer, should we hang

// ---- clocks

struct moment {
    uint64_t ticks, ns;
};

// The same moment by both clocks: the closest of some attempts.
static struct moment now_by_both(void)
{
    enum { ATTEMPTS = 5 };
    struct moment best = {0, 0};
    uint64_t closest = UINT64_MAX;
    for (unsigned i = 0; i < ATTEMPTS; i++) {
        const uint64_t before = traced_ticks(), ns = base_clock_now_ns(), after = traced_ticks();
        if (after - before >= closest)
            continue;
        closest = after - before;
        best = (struct moment){before + closest / 2, ns};
    }
    return best;
}

int traced_write_clock(struct traced_process *process, struct base_error *error)
{
    const struct moment now = now_by_both();
    return collect_calls_clock(process->writer, now.ticks, now.ns, error);
}

// So that durations can be compared at once: a few milliseconds are exact enough for that.
uint64_t traced_ticks_of(uint64_t ns)
{
    const struct timespec nap = {.tv_nsec = 5000000};
    if (!ns)
        return 0;
    const struct moment begin = now_by_both();
    nanosleep(&nap, NULL);
    const struct moment end = now_by_both();
    return (uint64_t)((double)ns * (double)(end.ticks - begin.ticks) / (double)(end.ns - begin.ns));
}

// ---- its memory, its file

static int map_memory(struct traced_process *process, struct base_error *error)
{
    struct stat status;
    const int fd = process->begin.memory_fd;
    if (fstat(fd, &status) != 0 || status.st_size < QUT_CALLS_HEADER_BYTES)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "the agent's memory for calls is none");
    process->memory_bytes = (size_t)status.st_size;
    void *memory = mmap(NULL, process->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED)
        return base_fail(error, BASE_ERR_IO, "", 0, "mmap: %s", strerror(errno));
    process->memory = memory;
    memcpy(&process->header, memory, sizeof process->header);
    if (!qut_calls_header_is_sound(&process->header, process->memory_bytes))
        return base_fail(error, BASE_ERR_MALFORMED, "", 0,
                         "the agent's memory for calls is of another version, or damaged");
    if (process->options->waits_for_room)
        __atomic_store_n(&((struct qut_calls_header *)memory)->full_wait_us, FULL_WAIT_US, __ATOMIC_RELAXED);
    return 0;
}

static int open_process(struct traced_process *process, struct base_error *error)
{
    process->patch = patch_open(process->pid, error);
    if (process->patch)
        traced_use_stub(process, process->patch);
    if (process->patch || !process->begin.parent)
        return process->patch ? 0 : -1;
    // A child of fork that has ended already: its events are there.
    *error = (struct base_error){0};
    return 0;
}

void traced_use_stub(const struct traced_process *process, struct patch_process *patch)
{
    const struct qut_calls_header *header = &process->header;
    const struct patch_stub stub = {.start = header->stub_begin,
                                    .end = header->stub_end,
                                    .exit_return = header->exit_return,
                                    .exit_end = header->exit_end,
                                    .shadow_distance = header->shadow_distance,
                                    .words_distance = header->words_distance,
                                    .granules_address = header->granules_address};
    patch_set_stub(patch, &stub);
}

static int open_file(struct traced_process *process, struct base_error *error)
{
    const struct collect_calls_process told = {.pid = (uint32_t)process->pid,
                                               .arch = process->header.arch,
                                               .begin_ns = base_clock_now_ns(),
                                               .command = process->command[0] ? process->command : NULL};
    process->writer = collect_calls_begin(process->begin.file_fd, &told, error);
    return process->writer ? traced_write_clock(process, error) : -1;
}

static void read_command(struct traced_process *process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)process->pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(process->command, 1, sizeof process->command - 1, file) : 0;
    if (file)
        fclose(file);
    process->command[size] = 0;
    process->command[strcspn(process->command, "\n")] = 0;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)process->pid);
    ssize_t length = readlink(path, process->program_path, sizeof process->program_path - 1);
    process->program_path[length > 0 ? length : 0] = 0;
    // As it was started: of a file with several names the one that people know.
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)process->pid);
    file = fopen(path, "re");
    size = file ? fread(process->started_as, 1, sizeof process->started_as - 1, file) : 0;
    if (file)
        fclose(file);
    process->started_as[size] = 0;
}

// The first place of functions is nobody's: an event's id is never 0.
static int begin_code(struct traced_process *process, struct base_error *error)
{
    if (process->begin.parent)
        return traced_inherit(process, error);
    struct traced_function *none = BASE_ADD(&process->functions);
    if (!none)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    *none = (struct traced_function){.address = 0};
    return traced_probe_tell(process, error) == 0 ? traced_modules_look(process, error) : -1;
}

int traced_begin_process(struct traced_process *process, struct base_error *error)
{
    read_command(process);
    for (size_t i = 0; i < process->options->pattern_count; i++) {
        if (calls_patterns_add(&process->patterns, process->options->patterns[i], process->options->is_excluded[i],
                               error) != 0)
            return -1;
        process->patterns.items[i].is_caller = process->options->is_caller[i];
    }
    return traced_leasts_begin(process, error) == 0 && map_memory(process, error) == 0 &&
                   traced_rings_begin(process, error) == 0 && open_file(process, error) == 0 &&
                   open_process(process, error) == 0 && traced_probe_begin(process, error) == 0 &&
                   begin_code(process, error) == 0
               ? 0
               : -1;
}
