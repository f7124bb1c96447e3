// SPDX-License-Identifier: Apache-2.0
// kernel WORK MS FOLDER: computes and calls the kernel in turns, for MS ms of processor time, once a line comes on
// standard input. WORK: write, read, fsync, faults, pingpong, naps. Ends with "USER_NS KERNEL_NS": how the kernel
// itself splits what was used since the line.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MS_NS = 1000000, US_NS = 1000, MAPPING_BYTES = 1 << 20, PAGE_BYTES = 4096 };

static volatile uint64_t sink;
static char buffer[1 << 16];
static int file, there[2], back[2];

__attribute__((noinline)) static void do_compute(unsigned rounds)
{
    uint64_t value = sink;
    for (unsigned i = 0; i < rounds; i++)
        value = value * 6364136223846793005u + 1;
    sink = value;
}

static uint64_t used_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000 * MS_NS + (uint64_t)time.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void do_write(void)
{
    do_compute(6000);
    if (pwrite(file, buffer, sizeof buffer, 0) != sizeof buffer)
        fail("pwrite");
}

static void do_read(void)
{
    do_compute(3000);
    if (read(file, buffer, sizeof buffer) <= 0) // less than asked for: this device stops at a stop
        fail("read");
}

static void do_fsync(void)
{
    do_compute(30000);
    if (pwrite(file, buffer, sizeof buffer, 0) != sizeof buffer || fsync(file) != 0)
        fail("fsync");
}

static void do_faults(void)
{
    char *mapping = mmap(NULL, MAPPING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        fail("mmap");
    for (size_t i = 0; i < MAPPING_BYTES; i += PAGE_BYTES) {
        do_compute(200);
        mapping[i] = 1;
    }
    munmap(mapping, MAPPING_BYTES);
}

static void *answer(void *unused)
{
    char byte;
    while (read(there[0], &byte, 1) == 1) {
        do_compute(2000);
        if (write(back[1], &byte, 1) != 1)
            fail("write");
    }
    return unused;
}

static void do_pingpong(void)
{
    char byte = 0;
    do_compute(2000);
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
        fail("pipe");
}

// A thread that waits about once in a millisecond.
static void do_naps(void)
{
    const struct timespec nap = {0, 200000};
    uint64_t end_ns = used_ns() + 1300 * US_NS;
    do
        do_compute(50000);
    while (used_ns() < end_ns);
    nanosleep(&nap, NULL);
}

static void times(uint64_t *user_ns, uint64_t *kernel_ns)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    *user_ns = (uint64_t)usage.ru_utime.tv_sec * 1000 * MS_NS + (uint64_t)usage.ru_utime.tv_usec * US_NS;
    *kernel_ns = (uint64_t)usage.ru_stime.tv_sec * 1000 * MS_NS + (uint64_t)usage.ru_stime.tv_usec * US_NS;
}

static const struct work {
    const char *name;
    void (*run)(void);
    unsigned between; // two looks at the clock
} works[] = {
    {"write", do_write, 100}, {"read", do_read, 100},         {"fsync", do_fsync, 5},
    {"faults", do_faults, 2}, {"pingpong", do_pingpong, 100}, {"naps", do_naps, 2},
};

static void prepare(const char *name, const char *folder)
{
    char path[4096];
    pthread_t thread;
    memset(buffer, 1, sizeof buffer);
    snprintf(path, sizeof path, "%s/kernel-%d", folder, (int)getpid());
    file = strcmp(name, "read") == 0 ? open("/dev/zero", O_RDONLY) : open(path, O_RDWR | O_CREAT, 0600);
    unlink(path);
    if (file < 0 || pipe(there) != 0 || pipe(back) != 0)
        fail(path);
    if (strcmp(name, "pingpong") == 0 && pthread_create(&thread, NULL, answer, NULL) != 0)
        fail("thread");
}

int main(int argc, char **argv)
{
    const struct work *work = NULL;
    uint64_t user_ns, kernel_ns, user_end_ns, kernel_end_ns;
    for (size_t i = 0; argc == 4 && i < sizeof works / sizeof *works; i++)
        if (strcmp(works[i].name, argv[1]) == 0)
            work = &works[i];
    if (!work)
        return 2;
    prepare(argv[1], argv[3]);
    if (getchar() == EOF)
        return 2;
    times(&user_ns, &kernel_ns);
    uint64_t end_ns = used_ns() + strtoull(argv[2], NULL, 10) * MS_NS;
    do
        for (unsigned i = 0; i < work->between; i++)
            work->run();
    while (used_ns() < end_ns);
    times(&user_end_ns, &kernel_end_ns);
    printf("%llu %llu\n", (unsigned long long)(user_end_ns - user_ns), (unsigned long long)(kernel_end_ns - kernel_ns));
    return 0;
}
