// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/cold.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64 };

// From sysfs, not sysconf: in virtual machines that counts the caches of the whole host.
static size_t cache_bytes(unsigned level, size_t fallback)
{
    size_t found = 0;
    for (unsigned index = 0; index < 8; index++) {
        char path[96];
        unsigned this_level = 0;
        size_t kib = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/level", index);
        FILE *file = fopen(path, "r");
        if (!file)
            break;
        int values = fscanf(file, "%u", &this_level);
        fclose(file);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/size", index);
        file = values == 1 && this_level == level ? fopen(path, "r") : NULL;
        if (!file)
            continue;
        if (fscanf(file, "%zuK", &kib) == 1 && kib * 1024 > found)
            found = kib * 1024;
        fclose(file);
    }
    return found ? found : fallback;
}

static void read_other(size_t size_bytes)
{
    static volatile unsigned char *memory;
    static size_t memory_bytes;
    if (size_bytes > memory_bytes) {
        void *mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED)
            return;
        memory = mapped;
        memory_bytes = size_bytes;
        for (size_t i = 0; i < size_bytes; i += 4096)
            memory[i] = 1; // else all of it is one page of zeroes
    }
    for (size_t i = 0; i < size_bytes; i += LINE_BYTES)
        (void)memory[i];
}

void bench_cool_l2(void)
{
    static size_t size_bytes;
    if (!size_bytes) {
        size_bytes = 4 * cache_bytes(2, 1 << 20);
        if (size_bytes < 4 << 20)
            size_bytes = 4 << 20;
    }
    read_other(size_bytes);
}

void bench_cool_all(void)
{
    static size_t size_bytes;
    if (!size_bytes)
        size_bytes = 3 * cache_bytes(3, 32 << 20);
    read_other(size_bytes);
}
