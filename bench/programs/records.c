// SPDX-License-Identifier: Apache-2.0
#include "bench/programs/records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/measure.h"
#include "machine.h"

enum { VERSION = 2, CAPACITY = 1 << 18, EMPTY_WALKS = 1001 };
static const uint64_t calibration_ns = 20000000;

static struct {
    struct records_header header;
    struct record records[CAPACITY];
} * file;

bool records_open(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    void *at = MAP_FAILED;
    if (ftruncate(fd, sizeof *file) == 0)
        at = mmap(NULL, sizeof *file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return false;
    file = at;
    file->header.version = VERSION;
    file->header.record_bytes = sizeof(struct record);
    file->header.header_bytes = sizeof(struct records_header);
    file->header.capacity = CAPACITY;
    return true;
}

struct records_header *records_header(void)
{
    return &file->header;
}

void records_add(const struct record *record)
{
    uint32_t index = atomic_fetch_add_explicit(&file->header.count, 1, memory_order_relaxed);
    if (index < CAPACITY)
        file->records[index] = *record;
}

static int by_value(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

void records_calibrate(void)
{
    uint64_t begin_ns = bench_now_ns(), begin = bench_ticks(), now_ns;
    do
        now_ns = bench_now_ns();
    while (now_ns - begin_ns < calibration_ns);
    file->header.ns_per_tick = (double)(now_ns - begin_ns) / (double)(bench_ticks() - begin);

    uint32_t empty[EMPTY_WALKS];
    for (int i = 0; i < EMPTY_WALKS; i++) {
        uint64_t before = bench_ticks();
        empty[i] = (uint32_t)(bench_ticks() - before);
    }
    qsort(empty, EMPTY_WALKS, sizeof *empty, by_value);
    file->header.empty_ticks = empty[EMPTY_WALKS / 2];
}
