// SPDX-License-Identifier: Apache-2.0
// The bytes. Sites that lie on the same or neighbouring pages are read and written together: a system call and the
// kernel's way to a page cost more than copying it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "libqut/os/process.h"
#include "libqut/target/live.h"
#include "tracer/patch/inside.h"

enum { PAGE_BYTES = 4096, RUN_BYTES_MAX = 256 << 10 };

static uint64_t page_of(uint64_t address)
{
    return address / PAGE_BYTES;
}

static bool joins(const struct patch_run *run, const struct patch_site *site)
{
    return page_of(site->address) <= page_of(run->address + run->size - 1) + 1 &&
           site->address + site->size - run->address <= RUN_BYTES_MAX;
}

int patch_plan_runs(struct patch_work *work, struct base_error *error)
{
    size_t bytes = 0;
    work->runs = calloc(work->site_count + 1, sizeof *work->runs);
    if (!work->runs)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    for (size_t i = 0; i < work->site_count; i++) {
        const struct patch_site *site = work->sites[i];
        struct patch_run *run = work->run_count ? &work->runs[work->run_count - 1] : NULL;
        if (!run || !joins(run, site)) {
            run = &work->runs[work->run_count++];
            *run = (struct patch_run){.address = site->address, .first = i};
        }
        run->size = (size_t)(site->address + site->size - run->address);
        run->count++;
    }
    for (size_t i = 0; i < work->run_count; i++)
        bytes += work->runs[i].size;
    work->bytes = calloc(bytes + 1, 1); // touched before the stop
    if (!work->bytes)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory");
    memset(work->bytes, 0xcc, bytes);
    bytes = 0;
    for (size_t i = 0; i < work->run_count; i++) {
        work->runs[i].bytes = work->bytes + bytes;
        bytes += work->runs[i].size;
    }
    return 0;
}

void patch_read_runs(struct patch_work *work)
{
    enum { AT_ONCE = 64 };
    const struct target_live *live = work->process->target->source;
    struct os_piece pieces[AT_ONCE];
    for (size_t first = 0; first < work->run_count; first += AT_ONCE) {
        size_t count = work->run_count - first < AT_ONCE ? work->run_count - first : AT_ONCE;
        for (size_t i = 0; i < count; i++)
            pieces[i] = (struct os_piece){.address = work->runs[first + i].address,
                                          .bytes = work->runs[first + i].bytes,
                                          .size = work->runs[first + i].size};
        os_read_process_pieces(live->memory_tid, work->process->memory_fd, pieces, count);
        for (size_t i = 0; i < count; i++) {
            work->runs[first + i].got = pieces[i].got;
            work->figures->moved_bytes += pieces[i].got;
        }
    }
}

uint8_t *patch_run_bytes(struct patch_run *run, const struct patch_site *site)
{
    size_t offset = (size_t)(site->address - run->address);
    return offset + site->size <= run->got ? run->bytes + offset : NULL;
}

static bool write_all(int fd, uint64_t address, const uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(fd, bytes + done, size - done, (off_t)(address + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

int patch_write_runs(struct patch_work *work, size_t *written, struct base_error *error)
{
    for (*written = 0; *written < work->run_count; ++*written) {
        const struct patch_run *run = &work->runs[*written];
        if (!run->is_changed)
            continue;
        errno = 0;
        if (!write_all(work->process->memory_fd, run->address, run->bytes, run->got))
            return base_fail(error, BASE_ERR_IO, "", 0,
                             "%d: its code at 0x%llx cannot be written: %s (does the kernel forbid it? "
                             "proc_mem.force_override, or a security module)",
                             (int)work->process->pid, (unsigned long long)run->address,
                             errno ? strerror(errno) : "nothing was taken");
        work->figures->moved_bytes += run->got;
    }
    return 0;
}

int patch_write(struct patch_process *process, uint64_t address, const void *bytes, size_t size,
                struct base_error *error)
{
    errno = 0;
    return write_all(process->memory_fd, address, bytes, size)
               ? 0
               : base_fail(error, BASE_ERR_IO, "", 0, "%d: memory at 0x%llx cannot be written: %s", (int)process->pid,
                           (unsigned long long)address, errno ? strerror(errno) : "nothing was taken");
}

bool patch_identify(const struct patch_process *process, const struct patch_site *site,
                    struct patch_installed *installed)
{
    const struct target_map *map = target_maps_find(&process->target->maps, site->address);
    if (!map || !map->executable || site->address + site->size > map->end)
        return false;
    *installed = (struct patch_installed){.site = *site,
                                          .device = map->device,
                                          .inode = map->inode,
                                          .file_offset = map->offset + (site->address - map->start)};
    return true;
}
