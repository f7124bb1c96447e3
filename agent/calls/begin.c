// SPDX-License-Identifier: Apache-2.0
// Makes the memory of a traced process, and gives it back.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/calls/calls.h"
#include "agent/calls/inside.h"
#include "libqut/host/host.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

enum { PAGE_BYTES = 4096 };
static const size_t granule_bytes = (size_t)1 << QUT_CALLS_GRANULE_LOG2;

static uint32_t forked_from_pid; // 0: it was not traced

static uint64_t whole_pages(uint64_t size)
{
    return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static size_t area_bytes(uint32_t ring_count)
{
    return whole_pages(sizeof(struct calls_area) + ring_count * sizeof(struct calls_own));
}

// The header of as many rings as fit.
static void lay_out(struct qut_calls_header *header, const struct calls_options *options, uint32_t ring_count)
{
    const uint64_t directory = QUT_CALLS_HEADER_BYTES;
    const uint64_t rings = whole_pages(directory + ring_count * sizeof(struct qut_calls_ring));
    const uint64_t counts = rings + ring_count * options->ring_bytes;
    memset(header, 0, sizeof *header);
    memcpy(header->magic, QUT_CALLS_MAGIC, sizeof header->magic);
    header->version = QUT_CALLS_VERSION;
    header->arch = calls_machine.arch;
    header->pid = (uint32_t)getpid();
    header->ring_count = ring_count;
    header->granule_shift = QUT_CALLS_GRANULE_LOG2;
    header->cell_count = options->cell_count;
    header->ring_bytes = options->ring_bytes;
    header->directory_offset_bytes = directory;
    header->rings_offset_bytes = rings;
    header->counts_offset_bytes = counts;
    header->total_bytes = whole_pages(counts + (uint64_t)ring_count * options->cell_count * 8);
    header->shadow_distance = calls_distance(calls_machine.shadow_log2);
    header->words_distance = calls_distance(calls_machine.words_log2);
    header->state = QUT_CALLS_READY;
}

static void fill_addresses(struct qut_calls_header *header)
{
    header->granules_address = (uint64_t)(uintptr_t)calls_granules;
    header->enter_stub = (uint64_t)(uintptr_t)calls_enter;
    header->count_stub = (uint64_t)(uintptr_t)calls_count;
    header->place_stub = (uint64_t)(uintptr_t)calls_machine.place_stub;
    header->exit_return = header->exit_begin = (uint64_t)(uintptr_t)calls_exit;
    header->exit_end = (uint64_t)(uintptr_t)calls_exit_end;
    header->stub_begin = (uint64_t)(uintptr_t)calls_stub_begin;
    header->stub_end = (uint64_t)(uintptr_t)calls_stub_end;
    header->own_tls_offset = (int64_t)((uint64_t)(uintptr_t)&calls_own - calls_thread_pointer());
}

// Touched here and there only, and no part of the program's core files (other than the shadow, which their readers
// need).
static void *map(size_t size, int fd)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
                    fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_NOHUGEPAGE);
    madvise(at, size, MADV_DONTDUMP);
    return at;
}

// A file may not be longer than that: the kernel ends a process that tries. In a child of fork the table of granules
// stays, since the shadow does.
static uint64_t file_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// With half of the rings where there is no room for all of them.
static int make_memory(const struct calls_options *options, struct qut_calls_header *header, int *made_fd)
{
    int fd = memfd_create("qut-calls", MFD_CLOEXEC);
    if (fd < 0)
        return os_failed(SYS_memfd_create);
    int error = -EFBIG;
    for (uint32_t count = options->ring_count; count > 0; count /= 2) {
        lay_out(header, options, count);
        if (header->total_bytes > file_limit())
            continue;
        if (ftruncate(fd, (off_t)header->total_bytes) != 0) {
            error = os_failed(SYS_ftruncate);
            break;
        }
        calls_header = map(header->total_bytes, fd);
        if (calls_header) {
            *made_fd = fd;
            return 0;
        }
        error = os_failed(SYS_mmap);
    }
    close(fd);
    return error;
}

static int make_area(uint32_t ring_count)
{
    const size_t size = area_bytes(ring_count);
    struct calls_area *area = map(size, -1);
    if (!area)
        return os_failed(SYS_mmap);
    if (madvise(area, size, MADV_WIPEONFORK) != 0) {
        int error = os_failed(SYS_madvise);
        munmap(area, size);
        return error == -EINVAL ? -ENOSYS : error;
    }
    area->is_here = 1;
    calls_area = area;
    return 0;
}

static int make_granules(void)
{
    if (!calls_granules)
        calls_granules = map(calls_granule_count(), -1);
    return calls_granules ? 0 : os_failed(SYS_mmap);
}

int calls_begin(const struct calls_options *options, uint64_t *memory_bytes)
{
    struct qut_calls_header header;
    int fd = -1;
    if (options->ring_bytes < QUT_CALLS_RING_BYTES_MIN || options->ring_bytes > QUT_CALLS_RING_BYTES_MAX ||
        (options->ring_bytes & (options->ring_bytes - 1)) != 0 || options->ring_count == 0 ||
        options->ring_count > QUT_CALLS_RINGS_MAX || options->cell_count > QUT_CALLS_CELLS_MAX)
        return -EINVAL;
    if (calls_are_ours())
        return -EALREADY;
    int error = make_granules();
    if (error != 0)
        return error;
    error = make_memory(options, &header, &fd);
    if (error != 0)
        return error;
    fill_addresses(&header);
    header.parent_pid = forked_from_pid;
    memcpy(calls_header, &header, sizeof header);
    calls_directory = (struct qut_calls_ring *)((char *)calls_header + header.directory_offset_bytes);
    error = make_area(header.ring_count);
    if (error != 0) {
        munmap(calls_header, header.total_bytes);
        calls_header = NULL;
        close(fd);
        return error;
    }
    calls_help_walkers();
    *memory_bytes = header.total_bytes;
    return fd;
}

// What is shared is the parent's, and goes on being written by it.
void calls_after_fork(void)
{
    if (!calls_header)
        return;
    forked_from_pid = calls_header->pid;
    calls_thread_is_new();
    munmap(calls_area, area_bytes(calls_header->ring_count));
    munmap(calls_header, calls_header->total_bytes);
    calls_area = NULL;
    calls_header = NULL;
}

// ---- the end

static void *shadow_of(uint64_t granule, unsigned distance_log2)
{
    return (void *)(uintptr_t)((granule << QUT_CALLS_GRANULE_LOG2) - calls_distance(distance_log2));
}

// Of a page of the shadow: some slot that it knows holds our address.
static bool is_page_in_use(const uint64_t *shadow)
{
    enum { WORDS = PAGE_BYTES / sizeof(uint64_t) };
    uint64_t slots[WORDS], any = 0;
    for (unsigned i = 0; i < WORDS; i++)
        any |= shadow[i];
    if (any == 0 || !calls_machine.slot_holds_exit)
        return any != 0;
    if (os_read_self((uintptr_t)shadow + calls_distance(calls_machine.shadow_log2), slots, sizeof slots) !=
        sizeof slots)
        return false;
    for (unsigned i = 0; i < WORDS; i++)
        if (slots[i] == (uint64_t)(uintptr_t)calls_exit && shadow[i] != 0)
            return true;
    return false;
}

// Pages that were written: the kernel has them, or has swapped them out. To read the others would map them, and shadows
// are large: that took longer than all else. All of them, where the kernel does not say.
enum { LOOK_PAGES = 256 };
struct pages {
    int fd;
    uint64_t entries[LOOK_PAGES];
};

static void look_at_pages(struct pages *pages, const void *at)
{
    const off_t offset = (off_t)((uintptr_t)at / PAGE_BYTES * sizeof *pages->entries);
    if (pages->fd < 0 ||
        pread(pages->fd, pages->entries, sizeof pages->entries, offset) != (ssize_t)sizeof pages->entries)
        memset(pages->entries, 0xff, sizeof pages->entries);
}

static bool is_written(const struct pages *pages, size_t page)
{
    return pages->entries[page % LOOK_PAGES] >> 62 != 0;
}

static bool is_granule_in_use(uint64_t granule, int pages_fd)
{
    const char *shadow = shadow_of(granule, calls_machine.shadow_log2);
    struct pages pages = {.fd = pages_fd};
    for (size_t page = 0; page < granule_bytes / PAGE_BYTES; page++) {
        const char *at = shadow + page * PAGE_BYTES;
        if (page % LOOK_PAGES == 0)
            look_at_pages(&pages, at);
        if (is_written(&pages, page) && is_page_in_use((const uint64_t *)(const void *)at))
            return true;
    }
    return false;
}

static bool unmap_granule(uint64_t granule, int pages_fd)
{
    (void)pages_fd;
    if (calls_has_times)
        munmap(shadow_of(granule, calls_machine.times_log2), granule_bytes);
    munmap(shadow_of(granule, calls_machine.shadow_log2), granule_bytes);
    munmap(shadow_of(granule, calls_machine.words_log2), granule_bytes);
    return false;
}

// Of all that are mapped, until one is what is looked for.
static bool any_granule(bool (*is_it)(uint64_t granule, int pages_fd), int pages_fd)
{
    struct pages pages = {.fd = pages_fd};
    for (size_t page = 0; calls_granules && page < calls_granule_count() / PAGE_BYTES; page++) {
        const uint8_t *at = calls_granules + page * PAGE_BYTES;
        if (page % LOOK_PAGES == 0)
            look_at_pages(&pages, at);
        for (size_t i = 0; i < PAGE_BYTES && is_written(&pages, page); i++)
            if (at[i] == QUT_CALLS_GRANULE_MAPPED && is_it(page * PAGE_BYTES + i, pages_fd))
                return true;
    }
    return false;
}

int calls_end(void)
{
    if (calls_are_ours() && __atomic_load_n(&calls_header->must_stay, __ATOMIC_ACQUIRE) != 0)
        return -EBUSY;
    const int pages_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const bool is_in_use = any_granule(is_granule_in_use, pages_fd);
    if (!is_in_use) {
        calls_leave_walkers();
        any_granule(unmap_granule, pages_fd);
    }
    if (pages_fd >= 0)
        close(pages_fd);
    if (is_in_use)
        return -EBUSY;
    calls_has_times = false;
    calls_probe_end();
    if (calls_header) {
        munmap(calls_area, area_bytes(calls_header->ring_count));
        __atomic_store_n(&calls_header->state, QUT_CALLS_ENDED, __ATOMIC_RELEASE);
        munmap(calls_header, calls_header->total_bytes);
    }
    if (calls_granules)
        munmap(calls_granules, calls_granule_count());
    calls_granules = NULL;
    calls_area = NULL;
    calls_header = NULL;
    return 0;
}

static bool map_times(uint64_t granule, int pages_fd)
{
    (void)pages_fd;
    const int error = calls_map_times(granule);
    return error != 0 && error != -EEXIST;
}

int calls_make_times(void)
{
    calls_has_times = true;
    return any_granule(map_times, -1) ? -ENOMEM : 0;
}

int calls_shadow(uint64_t begin, uint64_t end)
{
    int error = make_granules();
    if (begin <= calls_distance(calls_machine.shadow_log2) || end > calls_distance(calls_machine.address_log2) ||
        begin >= end)
        return -EINVAL;
    for (uint64_t i = begin >> QUT_CALLS_GRANULE_LOG2; i <= (end - 1) >> QUT_CALLS_GRANULE_LOG2 && error == 0; i++)
        if (__atomic_load_n(&calls_granules[i], __ATOMIC_ACQUIRE) != QUT_CALLS_GRANULE_MAPPED)
            error = calls_map_granule(i);
    return error;
}

void calls_look_for_ended(void)
{
    if (!calls_are_ours())
        return;
    const uint32_t used = __atomic_load_n(&calls_header->rings_used, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < used && i < calls_header->ring_count; i++) {
        struct qut_calls_ring *entry = &calls_directory[i];
        const uint32_t tid = __atomic_load_n(&entry->tid, __ATOMIC_RELAXED);
        uint32_t taken = QUT_CALLS_RING_TAKEN;
        if (tid == 0 || __atomic_load_n(&entry->state, __ATOMIC_RELAXED) != taken ||
            syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH)
            continue;
        if (__atomic_load_n(&entry->tid, __ATOMIC_RELAXED) != tid) // it has come to another thread meanwhile
            continue;
        __atomic_compare_exchange_n(&entry->state, &taken, QUT_CALLS_RING_ENDED, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
    }
}
