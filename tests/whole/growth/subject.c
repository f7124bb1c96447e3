// SPDX-License-Identifier: Apache-2.0
// A process that has much of one thing: subject KIND COUNT [FILE]. Says "ready", and waits for the end of its input.
//   mappings  touching pieces of anonymous memory, all executable      named  the same of a file
//   threads   that sleep                                               modules  FILE0, FILE1, ..., each mapped once
//   entries   of a just-in-time compiler's list, one of which is asked for
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct entry {
    struct entry *next, *previous;
    const char *symfile;
    uint64_t symfile_bytes;
};
struct descriptor {
    uint32_t version, action;
    struct entry *relevant, *first;
};
__attribute__((visibility("default"))) struct descriptor __jit_debug_descriptor = {1, 0, NULL, NULL};

static void must(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void map_pieces(size_t count, int fd)
{
    uint8_t *pages =
        mmap(NULL, count * PAGE, PROT_READ | PROT_EXEC, fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    must(pages != MAP_FAILED, "mmap");
    for (size_t i = 0; i < count; i += 2)
        must(mprotect(pages + i * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == 0, "mprotect");
}

static void map_named(size_t count)
{
    int fd = memfd_create("pieces", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, (off_t)(count * PAGE)) == 0, "memfd");
    map_pieces(count, fd);
}

static void map_files(size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++) {
        char name[512];
        snprintf(name, sizeof name, "%s%zu", path, i);
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        must(fd >= 0 && mmap(NULL, 4 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED, name);
        close(fd);
    }
}

static void *sleep_on(void *unused)
{
    pause();
    return unused;
}

static void start_threads(size_t count)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    for (size_t i = 0; i < count; i++) {
        pthread_t thread;
        must(pthread_create(&thread, &attributes, sleep_on, NULL) == 0, "pthread_create");
    }
}

static void list_entries(size_t count)
{
    static const char file[] = "no ELF file";
    struct entry *entries = calloc(count, sizeof *entries);
    must(entries != NULL, "calloc");
    for (size_t i = 0; i < count; i++) {
        entries[i] =
            (struct entry){i + 1 < count ? &entries[i + 1] : NULL, i ? &entries[i - 1] : NULL, file, sizeof file};
    }
    __jit_debug_descriptor.first = entries;
}

static void wait_for_the_end(void)
{
    char byte;
    puts("ready");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
}

// From code that is in no file: sub rsp, 8; call rdi; add rsp, 8; ret
static void wait_in_made_code(void)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(page != MAP_FAILED, "mmap");
    memcpy(page, code, sizeof code);
    void (*made)(void (*)(void));
    memcpy(&made, &page, sizeof made);
    made(wait_for_the_end);
}

int main(int argc, char **argv)
{
    must(argc >= 3, "usage");
    const char *kind = argv[1];
    size_t count = strtoul(argv[2], NULL, 10);
    if (strcmp(kind, "mappings") == 0)
        map_pieces(count, -1);
    else if (strcmp(kind, "named") == 0)
        map_named(count);
    else if (strcmp(kind, "modules") == 0)
        map_files(count, argv[3]);
    else if (strcmp(kind, "threads") == 0)
        start_threads(count);
    else if (strcmp(kind, "entries") == 0)
        list_entries(count);
    wait_in_made_code();
    return 0;
}
