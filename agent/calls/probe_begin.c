// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"
#include "bytecode/verify.h"
#include "libqut/host/host.h"

static const uint64_t run_most_ns = 50000; // beyond that a thread has lost its processor within one

bool calls_probe_is_sound(const void *image, size_t bytes)
{
    struct bytecode_workspace *workspace =
        mmap(NULL, sizeof *workspace, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct bytecode_fault fault;
    if (workspace == MAP_FAILED)
        return false;
    const bool is_sound = bytecode_verify(image, bytes, workspace, &fault);
    munmap(workspace, sizeof *workspace);
    return is_sound;
}

static void sort_program(struct calls_probe *probe, uint32_t number)
{
    const uint32_t bit = UINT32_C(1) << number, kind = probe->image.programs[number].kind;
    probe->entry_programs |= kind == QUT_PROBE_ENTRY ? bit : 0;
    probe->return_programs |= kind == QUT_PROBE_RETURN ? bit : 0;
    probe->unwind_programs |= kind == QUT_PROBE_UNWIND ? bit : 0;
    probe->place_programs |= kind == QUT_PROBE_PLACE ? bit : 0;
    probe->throw_marks |= kind == QUT_PROBE_THROWS ? bit : 0;
    probe->catch_marks |= kind == QUT_PROBE_CATCHES ? bit : 0;
}

// Calls that are left are noticed at entries.
static void find_who_wants_ticks(struct calls_probe *probe)
{
    const uint32_t count = probe->image.header->program_count;
    uint32_t last = 0, time = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t fields = probe->image.programs[i].fields, bit = UINT32_C(1) << i;
        last |= fields >> QUT_PROBE_DURATION & 1 ? bit : 0;
        time |= fields >> QUT_PROBE_TIME & 1 ? bit : 0;
    }
    const bool all = probe->unwind_programs != 0;
    probe->lasting_programs = probe->unwind_programs | (all ? probe->return_programs : probe->return_programs & last);
    probe->entry_has_ticks = all || (probe->entry_programs & time) != 0;
    probe->exit_has_ticks = (probe->return_programs & (last | time)) != 0;
    probe->place_has_ticks = (probe->place_programs & time) != 0;
}

// Marks are the tool's own affair.
static uint32_t find_told(const struct calls_probe *probe, uint32_t flags)
{
    return flags & QUT_PROBE_LIVE_TELLS_CALLS ? probe->entry_programs | probe->return_programs | probe->unwind_programs
                                              : 0;
}

static bool use_image(struct calls_probe *probe, const struct qut_probe_live *live, const void *image)
{
    probe->image = qut_probe_parts(image);
    bytecode_maps_lay_out(&probe->maps, &probe->image);
    if (probe->maps.words > (live->total_bytes - live->maps_offset_bytes) / sizeof(uint64_t))
        return false;
    probe->maps.memory = (uint64_t *)((uintptr_t)probe->live + live->maps_offset_bytes);
    for (uint32_t i = 0; i < probe->image.header->record_count; i++)
        if (probe->image.records[i].words >= live->slot_words)
            return false;
    for (uint32_t i = 0; i < probe->image.header->program_count; i++)
        sort_program(probe, i);
    find_who_wants_ticks(probe);
    probe->told_programs = find_told(probe, live->flags);
    probe->slots = (uint64_t *)((uintptr_t)probe->live + live->slots_offset_bytes);
    probe->slot_count = live->slot_count;
    probe->slot_words = live->slot_words;
    probe->base_ticks = live->base_ticks;
    probe->base_ns = live->base_ns;
    probe->rate = live->rate;
    probe->errno_distance = (uintptr_t)&errno - calls_thread_pointer();
    probe->budget_permille = live->budget_permille;
    probe->run_most_ticks = live->rate ? (run_most_ns << 32) / live->rate : 0;
    return true;
}

static void run_as_machine_code(struct calls_probe *probe, uint32_t flags)
{
    const int error = flags & QUT_PROBE_LIVE_INTERPRETS ? 0 : calls_probe_make_code(probe);
    if (error == 0)
        return;
    __atomic_store_n(&probe->live->interpreted_error, (uint64_t)-error, __ATOMIC_RELAXED);
    __atomic_fetch_add(&probe->live->interpreted, 1, __ATOMIC_RELAXED);
}

// Others may write the header and the image at any time: what is used is a copy.
static int make(const struct qut_probe_live *live, void *mapped, const uint32_t *masks, size_t masks_bytes)
{
    const size_t bytes = sizeof(struct calls_probe) + live->image_bytes;
    struct calls_probe *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return os_failed(SYS_mmap);
    *probe = (struct calls_probe){.live = mapped,
                                  .live_bytes = live->total_bytes,
                                  .own_bytes = bytes,
                                  .masks = masks,
                                  .masks_bytes = masks_bytes,
                                  .callers = (const void *)((const char *)masks + QUT_PROBE_LIVE_MASKS_BYTES),
                                  .function_count = QUT_PROBE_LIVE_MASKS_BYTES / sizeof *masks,
                                  .called_programs = live->called_programs,
                                  .previous = calls_probe};
    memcpy(probe + 1, (const char *)mapped + live->image_offset_bytes, live->image_bytes);
    if (!calls_probe_is_sound(probe + 1, live->image_bytes) || !use_image(probe, live, probe + 1)) {
        munmap(probe, bytes);
        return -EINVAL;
    }
    const int error = calls_make_times();
    if (error == 0) {
        run_as_machine_code(probe, live->flags);
        calls_probe_budget_begin();
        __atomic_store_n(&calls_probe, probe, __ATOMIC_RELEASE);
    } else {
        munmap(probe, bytes);
    }
    return error;
}

int calls_probe_begin(int fd, uint64_t masks_begin, uint64_t masks_end)
{
    struct qut_probe_live live;
    struct stat status;
    if (calls_machine.times_log2 == 0)
        return -ENOSYS;
    if (fstat(fd, &status) != 0)
        return os_failed(SYS_fstat);
    const uint64_t size = status.st_size > 0 ? (uint64_t)status.st_size : 0;
    if (size < sizeof live || masks_begin % QUT_PROBE_LIVE_PAGE_BYTES != 0 || masks_end <= masks_begin ||
        masks_end - masks_begin != (uint64_t)QUT_PROBE_LIVE_PROCESS_BYTES || masks_end > size)
        return -EINVAL;
    const void *header = mmap(NULL, sizeof live, PROT_READ, MAP_SHARED, fd, 0);
    if (header == MAP_FAILED)
        return os_failed(SYS_mmap);
    memcpy(&live, header, sizeof live);
    munmap((void *)(uintptr_t)header, sizeof live);
    if (!qut_probe_live_is_sound(&live, size))
        return -EINVAL;
    const size_t masks_bytes = (size_t)(masks_end - masks_begin);
    void *mapped = mmap(NULL, live.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *masks = mmap(NULL, masks_bytes, PROT_READ, MAP_SHARED, fd, (off_t)masks_begin);
    int error = mapped == MAP_FAILED || masks == MAP_FAILED ? os_failed(SYS_mmap) : 0;
    if (error == 0)
        error = make(&live, mapped, masks, masks_bytes);
    if (error == 0) {
        madvise(mapped, live.total_bytes, MADV_DONTDUMP);
        return 0;
    }
    if (mapped != MAP_FAILED)
        munmap(mapped, live.total_bytes);
    if (masks != MAP_FAILED)
        munmap(masks, masks_bytes);
    return error;
}

void calls_probe_leave(void)
{
    if (calls_probe)
        __atomic_store_n(&calls_probe->is_left, 1, __ATOMIC_RELAXED);
}

bool calls_probe_is_on(void)
{
    return calls_probe && !__atomic_load_n(&calls_probe->is_left, __ATOMIC_RELAXED);
}

void calls_probe_end(void)
{
    struct calls_probe *probe = calls_probe;
    calls_probe = NULL;
    calls_open_end();
    while (probe) {
        struct calls_probe *previous = probe->previous;
        munmap(probe->live, probe->live_bytes);
        munmap((void *)(uintptr_t)probe->masks, probe->masks_bytes);
        calls_probe_free_code(probe);
        munmap(probe, probe->own_bytes);
        probe = previous;
    }
}
