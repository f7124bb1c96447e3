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

static bool is_verified(const void *image, size_t bytes)
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
    for (uint32_t i = 0; i < probe->image.header->program_count; i++) {
        const uint32_t kind = probe->image.programs[i].kind, bit = UINT32_C(1) << i;
        probe->entry_programs |= kind == QUT_PROBE_ENTRY ? bit : 0;
        probe->return_programs |= kind == QUT_PROBE_RETURN ? bit : 0;
    }
    probe->slots = (uint64_t *)((uintptr_t)probe->live + live->slots_offset_bytes);
    probe->slot_count = live->slot_count;
    probe->slot_words = live->slot_words;
    probe->base_ticks = live->base_ticks;
    probe->base_ns = live->base_ns;
    probe->rate = live->rate;
    probe->budget_permille = live->budget_permille;
    probe->run_most_ticks = live->rate ? (run_most_ns << 32) / live->rate : 0;
    return true;
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
    if (!is_verified(probe + 1, live->image_bytes) || !use_image(probe, live, probe + 1)) {
        munmap(probe, bytes);
        return -EINVAL;
    }
    const int error = calls_make_times();
    if (error == 0) {
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
    while (probe) {
        struct calls_probe *previous = probe->previous;
        munmap(probe->live, probe->live_bytes);
        munmap((void *)(uintptr_t)probe->masks, probe->masks_bytes);
        munmap(probe, probe->own_bytes);
        probe = previous;
    }
}
