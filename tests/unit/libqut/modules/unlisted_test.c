// SPDX-License-Identifier: Apache-2.0
// ELF images that a program maps by itself: walks come out of them, by what is in memory, and not by what was there
// before.
#include <check.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <qut/local.h>
#include <qut/qut.h>
#include <qutc/provide.h>

#include "tests/support/run_suite.h"

enum { FRAMES = 64, PAGE = 4096, IMAGE_BYTES_MAX = 1 << 20, WAIT_MS = 20000 };

typedef void called(void);
typedef void caller(called *call);

struct image {
    uint8_t *base;
    size_t size;
    caller *call;
};

// ---- a loader

enum way {
    BY_FILE,  // segments are mapped
    BY_MEMFD, // the same of a memfd, which no path names
    BY_COPY,  // into memory of no file
};

static const char *directory; // of the test
static uint8_t *place;        // where images go, so that one can be put where another was

static uint8_t *read_file(const char *path, size_t *size)
{
    static uint8_t bytes[IMAGE_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s", path);
    *size = fread(bytes, 1, sizeof bytes, file);
    ck_assert_uint_lt(*size, sizeof bytes);
    fclose(file);
    return bytes;
}

static int open_image(const char *path, enum way way)
{
    if (way == BY_FILE)
        return open(path, O_RDONLY | O_CLOEXEC);
    size_t size;
    const uint8_t *bytes = read_file(path, &size);
    int fd = memfd_create("image", MFD_CLOEXEC);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    return fd;
}

static int protection_of(const ElfW(Phdr) * header)
{
    return (header->p_flags & PF_R ? PROT_READ : 0) | (header->p_flags & PF_W ? PROT_WRITE : 0) |
           (header->p_flags & PF_X ? PROT_EXEC : 0);
}

static void load_segment(const struct image *image, const ElfW(Phdr) * header, const uint8_t *bytes, int fd,
                         enum way way)
{
    uintptr_t into = header->p_vaddr & (PAGE - 1);
    uint8_t *at = image->base + (header->p_vaddr - into);
    size_t size = (header->p_filesz + into + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (way != BY_COPY) {
        ck_assert_ptr_eq(
            mmap(at, size, protection_of(header), MAP_PRIVATE | MAP_FIXED, fd, (off_t)(header->p_offset - into)), at);
        return;
    }
    ck_assert_ptr_eq(mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
    memcpy(at, bytes + header->p_offset - into, header->p_filesz + into);
    __builtin___clear_cache((char *)at, (char *)at + size);
    ck_assert_int_eq(mprotect(at, size, protection_of(header)), 0);
}

static struct image load(const char *path, enum way way)
{
    size_t size;
    const uint8_t *bytes = read_file(path, &size);
    ElfW(Ehdr) elf;
    memcpy(&elf, bytes, sizeof elf);
    int fd = open_image(path, way);
    ck_assert_int_ge(fd, 0);
    struct image image = {place, IMAGE_BYTES_MAX, NULL};
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        ElfW(Phdr) header;
        memcpy(&header, bytes + elf.e_phoff + i * sizeof header, sizeof header);
        if (header.p_type == PT_LOAD && header.p_filesz)
            load_segment(&image, &header, bytes, fd, way);
    }
    close(fd);
    image.call = (caller *)(uintptr_t)(image.base + elf.e_entry);
    return image;
}

static void unload(const struct image *image)
{
    ck_assert_ptr_eq(mmap(image->base, image->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     image->base);
}

// ---- walks

static uintptr_t pcs[FRAMES], outer_pc;
static size_t count;
static struct qut_end end;

__attribute__((noinline)) static void note_walk(void)
{
    count = qut_backtrace(pcs, FRAMES, &end);
    __asm__ volatile("");
}

__attribute__((noinline)) static void walk_through(const struct image *image)
{
    outer_pc = (uintptr_t)__builtin_return_address(0);
    image->call(note_walk);
    __asm__ volatile("");
}

static bool is_inside(const struct image *image, uintptr_t pc)
{
    return pc - (uintptr_t)image->base < image->size;
}

static bool is_whole(const struct image *image)
{
    return end.reason == QUT_END_OUTERMOST && count > 4 && is_inside(image, pcs[1]) && !is_inside(image, pcs[2]) &&
           pcs[3] == outer_pc - 1;
}

static void expect_whole(const struct image *image)
{
    for (unsigned i = 0; i < 20; i++) { // and as it is remembered
        walk_through(image);
        ck_assert_msg(is_whole(image), "walk %u: %zu frames, %s at %#lx", i, count, qut_end_reason_name(end.reason),
                      (unsigned long)end.pc);
        ck_assert_uint_eq(end.guessed_frame, QUT_NO_GUESS);
    }
}

static void start(uint32_t flags)
{
    struct qut_options options = {.size = sizeof options, .compile = qutc_compile_for_qut, .flags = flags};
    ck_assert_int_eq(qut_start(&options), 0);
    qut_refresh();
    place = mmap(NULL, IMAGE_BYTES_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(place, MAP_FAILED);
}

static void stop(void)
{
    qut_stop();
    munmap(place, IMAGE_BYTES_MAX);
}

static const char *const files[] = {NAMED, NAMED_TWO_SEGMENTS, OTHER};
enum { FILES = sizeof files / sizeof *files, WAYS = 3 };

START_TEST(walks_come_out_of_it)
{
    const char *path = files[_i / WAYS];
    enum way way = (enum way)(_i % WAYS);
    start(QUT_START_NO_THREAD);
    struct image image = load(path, way);
    walk_through(&image);
    ck_assert_uint_eq(end.reason, QUT_END_NO_MODULE);
    ck_assert_uint_eq(count, 2);
    qut_refresh(); // what the thread does when a walk has met it
    expect_whole(&image);
    struct qut_loaded_module module;
    ck_assert(qut_module_at(pcs[1], &module, sizeof module));
    ck_assert_msg(module.has_table, "%s", module.reason);
    ck_assert_uint_eq(module.load_bias, (uintptr_t)place);
    if (way == BY_FILE)
        ck_assert_str_eq(module.path, path);
    ck_assert_uint_ne(module.build_id_size, 0);
    unload(&image);
    stop();
}
END_TEST

START_TEST(the_thread_finds_it)
{
    start(0);
    struct image image = load(files[0], (enum way)_i);
    struct timespec pause = {0, 1000000};
    for (unsigned i = 0; i < WAIT_MS; i++) {
        walk_through(&image);
        if (end.reason == QUT_END_OUTERMOST)
            break;
        ck_assert(end.reason == QUT_END_NO_MODULE || end.reason == QUT_END_TABLE_PENDING);
        ck_assert(is_inside(&image, (uintptr_t)end.pc - 1));
        nanosleep(&pause, NULL);
    }
    expect_whole(&image);
    unload(&image);
    stop();
}
END_TEST

START_TEST(it_goes)
{
    start(QUT_START_NO_THREAD);
    struct image image = load(files[_i / WAYS], (enum way)(_i % WAYS));
    qut_refresh();
    expect_whole(&image);
    struct qut_loaded_module module;
    uintptr_t pc = pcs[1];
    ck_assert(qut_module_at(pc, &module, sizeof module));
    unload(&image);
    qut_refresh();
    ck_assert(!qut_module_at(pc, &module, sizeof module));
    stop();
}
END_TEST

// The frames of the two differ in size: by the other one's rule a walk would go wrong.
START_TEST(another_one_in_its_place)
{
    const char *const others[] = {OTHER, NAMELESS};
    const char *other = others[_i / WAYS];
    enum way way = (enum way)(_i % WAYS);
    start(QUT_START_NO_THREAD);
    struct image first = load(NAMED, way);
    qut_refresh();
    expect_whole(&first);
    unload(&first);
    struct image second = load(other, way);
    for (unsigned i = 0; i < 3; i++) {
        walk_through(&second);
        // The larger one may reach further than what is known.
        ck_assert(end.reason == QUT_END_TABLE_PENDING || end.reason == QUT_END_NO_MODULE);
        ck_assert_uint_eq(count, 2);
    }
    qut_refresh();
    if (strcmp(other, OTHER) == 0)
        expect_whole(&second);
    unload(&second);
    stop();
}
END_TEST

// Nothing would tell another one in its place from it.
START_TEST(one_without_a_build_id_is_not_believed)
{
    start(QUT_START_NO_THREAD);
    struct image image = load(NAMELESS, (enum way)_i);
    qut_refresh();
    for (unsigned i = 0; i < 3; i++) {
        walk_through(&image);
        ck_assert_uint_eq(end.reason, QUT_END_NO_MODULE);
        ck_assert_uint_eq(count, 2);
    }
    unload(&image);
    stop();
}
END_TEST

static void copy_file(const char *from, const char *to)
{
    size_t size;
    const uint8_t *bytes = read_file(from, &size);
    FILE *file = fopen(to, "wb");
    ck_assert(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

// The path names another image than the one that is mapped, or none.
START_TEST(not_by_its_path)
{
    char path[256], other[256];
    snprintf(path, sizeof path, "%s/mapped", directory);
    snprintf(other, sizeof other, "%s/other", directory);
    copy_file(_i & 1 ? OTHER : NAMED, path);
    copy_file(_i & 1 ? NAMELESS : OTHER, other);
    start(QUT_START_NO_THREAD);
    struct image image = load(path, BY_FILE);
    if (_i & 2)
        ck_assert_int_eq(rename(other, path), 0);
    else
        ck_assert_int_eq(unlink(path), 0);
    qut_refresh();
    expect_whole(&image);
    unload(&image);
    stop();
    unlink(path);
    unlink(other);
}
END_TEST

// Written over where it is mapped: the file has another build-id than memory, and is not believed.
START_TEST(not_by_bytes_of_the_file)
{
    char path[256];
    snprintf(path, sizeof path, "%s/mapped", directory);
    copy_file(OTHER, path);
    start(QUT_START_NO_THREAD);
    struct image image = load(path, BY_FILE);
    size_t size;
    ElfW(Ehdr) elf;
    const uint8_t *bytes = read_file(NAMED, &size);
    memcpy(&elf, bytes, sizeof elf);
    for (unsigned i = 0; i < elf.e_phnum; i++) {
        ElfW(Phdr) header;
        memcpy(&header, bytes + elf.e_phoff + i * sizeof header, sizeof header);
        if (header.p_type != PT_LOAD || !header.p_filesz)
            continue;
        uint8_t *at = image.base + (header.p_vaddr & ~(uintptr_t)(PAGE - 1));
        size_t span = (header.p_vaddr & (PAGE - 1)) + header.p_filesz;
        ck_assert_int_eq(mprotect(at, span, PROT_READ | PROT_WRITE), 0);
        memcpy(image.base + header.p_vaddr, bytes + header.p_offset, header.p_filesz);
        ck_assert_int_eq(mprotect(at, span, protection_of(&header)), 0);
    }
    image.call = (caller *)(uintptr_t)(image.base + elf.e_entry);
    qut_refresh();
    walk_through(&image);
    ck_assert_uint_eq(end.reason, QUT_END_NO_TABLE);
    ck_assert_uint_eq(count, 2);
    unload(&image);
    stop();
    unlink(path);
}
END_TEST

// ---- heads that lie

struct lie {
    uint16_t header_count, header_bytes;
    uint64_t headers_at, vaddr, offset, memory_bytes;
};

static void put_lie(uint8_t *at, const struct lie *lie)
{
    ElfW(Ehdr) elf;
    size_t size;
    memcpy(&elf, read_file(NAMED, &size), sizeof elf);
    elf.e_phnum = lie->header_count;
    elf.e_phentsize = lie->header_bytes;
    elf.e_phoff = (ElfW(Off))lie->headers_at;
    const ElfW(Phdr) header = {.p_type = PT_LOAD,
                               .p_flags = PF_R | PF_X,
                               .p_vaddr = (ElfW(Addr))lie->vaddr,
                               .p_offset = (ElfW(Off))lie->offset,
                               .p_filesz = (ElfW(Word))lie->memory_bytes,
                               .p_memsz = (ElfW(Word))lie->memory_bytes};
    memcpy(at, &elf, sizeof elf);
    for (size_t i = sizeof elf; i + sizeof header <= PAGE; i += sizeof header)
        memcpy(at + i, &header, sizeof header);
}

START_TEST(heads_that_lie)
{
    const uint16_t whole = sizeof(ElfW(Phdr));
    const struct lie lies[] = {
        {1, whole, sizeof(ElfW(Ehdr)), 0, 0, UINT64_MAX},
        {1, whole, sizeof(ElfW(Ehdr)), 0, 0, (uint64_t)1 << 46},
        {1, whole, sizeof(ElfW(Ehdr)), UINT64_MAX - 8, 0, 64},
        {1, whole, sizeof(ElfW(Ehdr)), 0, UINT64_MAX - 4, PAGE},
        {40, whole, sizeof(ElfW(Ehdr)), 0, 0, PAGE},
        {UINT16_MAX, whole, sizeof(ElfW(Ehdr)), 0, 0, PAGE},
        {8, whole, PAGE - 8, 0, 0, PAGE},
        {8, whole, UINT64_MAX - 64, 0, 0, PAGE},
        {1, 1, sizeof(ElfW(Ehdr)), 0, 0, PAGE},
        {1, UINT16_MAX, sizeof(ElfW(Ehdr)), 0, 0, PAGE},
    };
    enum { LIES = sizeof lies / sizeof *lies };
    start(QUT_START_NO_THREAD);
    uint8_t *pages = mmap(NULL, 2 * LIES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    for (unsigned i = 0; i < LIES; i++) {
        put_lie(pages + (size_t)2 * i * PAGE, &lies[i]);
        mprotect(pages + (size_t)2 * i * PAGE, PAGE, PROT_READ | PROT_EXEC);
    }
    struct image image = load(NAMED, BY_FILE);
    qut_refresh();
    expect_whole(&image);
    for (unsigned i = 0; i < 2 * LIES; i += 2) { // no lie reaches further than what is executable
        struct qut_loaded_module module;
        if (qut_module_at((uintptr_t)pages + (size_t)i * PAGE, &module, sizeof module))
            ck_assert(module.start >= (uintptr_t)pages && module.end <= (uintptr_t)pages + (size_t)(i + 1) * PAGE);
        ck_assert(!qut_module_at((uintptr_t)pages + (size_t)(i + 1) * PAGE, &module, sizeof module));
    }
    unload(&image);
    munmap(pages, 2 * LIES * PAGE);
    stop();
}
END_TEST

// More than are kept, and mappings by the thousand: what is listed stays what it is.
START_TEST(many_of_them)
{
    enum { MANY = 200 };
    start(QUT_START_NO_THREAD);
    size_t size;
    const uint8_t *bytes = read_file(NAMED_TWO_SEGMENTS, &size);
    uint8_t *pages = mmap(NULL, (size_t)2 * MANY * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    for (unsigned i = 0; i < MANY; i++) {
        uint8_t *at = pages + (size_t)2 * i * PAGE;
        mprotect(at, PAGE, PROT_READ | PROT_WRITE);
        memcpy(at, bytes, size < PAGE ? size : PAGE);
        mprotect(at, PAGE, PROT_READ | PROT_EXEC);
    }
    qut_refresh();
    note_walk();
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    munmap(pages, (size_t)2 * MANY * PAGE);
    qut_refresh();
    note_walk();
    ck_assert_uint_eq(end.reason, QUT_END_OUTERMOST);
    stop();
}
END_TEST

int main(void)
{
    char made[] = "/tmp/qut-unlisted-XXXXXX";
    directory = mkdtemp(made);
    TCase *tests = tcase_create("unlisted");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, walks_come_out_of_it, 0, FILES * WAYS);
    tcase_add_loop_test(tests, the_thread_finds_it, 0, WAYS);
    tcase_add_loop_test(tests, it_goes, 0, FILES * WAYS);
    tcase_add_loop_test(tests, another_one_in_its_place, 0, 2 * WAYS);
    tcase_add_loop_test(tests, one_without_a_build_id_is_not_believed, 0, WAYS);
    tcase_add_loop_test(tests, not_by_its_path, 0, 4);
    tcase_add_test(tests, not_by_bytes_of_the_file);
    tcase_add_test(tests, heads_that_lie);
    tcase_add_test(tests, many_of_them);
    Suite *suite = suite_create("unlisted");
    suite_add_tcase(suite, tests);
    int result = run_suite(suite);
    rmdir(directory);
    return result;
}
