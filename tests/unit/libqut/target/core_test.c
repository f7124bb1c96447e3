// SPDX-License-Identifier: Apache-2.0
// Core files: made by hand for every architecture, by gdb from a living process, cut off and spoiled.
#include <check.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

#include "libqut/os/os.h"
#include "libqut/target/opened_target.h"
#include "tests/support/core_file.h"
#include "tests/support/run_suite.h"

enum { FRAMES_MAX = 64, MUTATIONS = 10000, VDSO_BYTES = 8192, COMPILED_OF = 25 };

static const struct qutc_provide_options provide = {.size = sizeof provide};
static struct qut_target_options options;
static char directory[] = "/tmp/qut-core-XXXXXX", path[64];
static int memory_file; // cores by the thousand: not on a disk
static struct core_file core;

static void set_up(void)
{
    options = (struct qut_target_options){
        .size = sizeof options, .compile = qutc_compile_for_qut, .compile_context = (void *)&provide};
    strcpy(directory, "/tmp/qut-core-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    memory_file = memfd_create("core", 0);
    ck_assert_int_ge(memory_file, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory_file);
}

static void tear_down(void)
{
    close(memory_file);
    rmdir(directory);
}

static void save(const void *bytes, size_t size)
{
    ck_assert_int_eq(ftruncate(memory_file, (off_t)size), 0);
    ck_assert_int_eq(pwrite(memory_file, bytes, size, 0), (ssize_t)size);
}

static const enum qut_arch_id archs[] = {QUT_ARCH_X86_64, QUT_ARCH_AARCH64, QUT_ARCH_ARM, QUT_ARCH_X86,
                                         QUT_ARCH_RISCV64};

START_TEST(threads_of_every_architecture)
{
    const struct arch *arch = arch_by_id(archs[_i]);
    const uint64_t words[4] = {1, 2, 3, 4};
    const struct core_memory memory[] = {
        {.address = 0x7000, .size = 0x1000, .bytes = words, .dumped = sizeof words, .flags = PF_R | PF_W},
        {.address = 0x1000, .size = 0x1000, .flags = PF_R | PF_X, .path = "/no/such/file", .file_offset = 0x3000},
    };
    core_file_make(&core, arch, memory, 2);
    save(core.bytes, core.size);
    struct qut_target_error error = {""};
    struct qut_target *target = qut_target_core(path, NULL, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    ck_assert_str_eq(qut_target_arch(target), arch->name);
    ck_assert_uint_eq(qut_target_word_bytes(target), arch->word_bytes);
    ck_assert_uint_eq(qut_target_thread_count(target), CORE_THREADS);
    ck_assert_uint_eq(target->vector_bytes, arch->vector_bytes_reg ? 32 : 0);
    for (size_t i = 0; i < CORE_THREADS; i++) { // ascending by id: the last one is the first in the file
        size_t in_file = CORE_THREADS - 1 - i;
        struct qut_thread_info info;
        qut_target_thread(target, i, &info);
        ck_assert_int_eq(info.tid, 100 - (pid_t)in_file);
        ck_assert(info.crashed == (in_file == 0));
        ck_assert_int_eq(info.signal_number, in_file == 0 ? 11 : 0);
        ck_assert_str_eq(info.name, in_file == 0 ? "crasher" : "");
        struct qut_frame frames[FRAMES_MAX];
        struct qut_end end;
        ck_assert_uint_eq(qut_target_walk(target, i, frames, FRAMES_MAX, &end), 1);
        ck_assert_uint_eq(frames[0].pc, (0x1000 + in_file) & ~(uint64_t)(arch->has_thumb));
        ck_assert_uint_eq(frames[0].sp, 0x7000 + 16 * in_file);
    }
    uint64_t read[8];
    ck_assert_uint_eq(qut_target_read(target, 0x7000, read, sizeof read), sizeof words);
    ck_assert_mem_eq(read, words, sizeof words);
    ck_assert_uint_eq(qut_target_read(target, 0x1000, read, sizeof read), 0);
    struct qut_module_info module;
    ck_assert(qut_target_module(target, 0x1234, &module));
    ck_assert_str_eq(module.path, "/no/such/file");
    ck_assert(!module.is_elf);
    ck_assert_uint_eq(0x1234 - module.load_bias, 0x3234);
    ck_assert(!qut_target_module(target, 0x3000, &module));
    qut_target_close(target);
}
END_TEST

static void expect_refusal(const char *why)
{
    struct qut_target_error error = {""};
    ck_assert_ptr_null(qut_target_core(path, NULL, &options, &error));
    ck_assert_msg(strstr(error.text, why) != NULL, "%s", error.text);
}

START_TEST(what_is_no_core_of_ours)
{
    save("", 0);
    expect_refusal("not an ELF file");
    struct qut_target_error error = {""};
    ck_assert_ptr_null(qut_target_core("/no/such/core", NULL, &options, &error));
    ck_assert_str_eq(error.text, "/no/such/core: No such file or directory");
    core_file_make(&core, arch_by_id(QUT_ARCH_X86_64), NULL, 0);
    Elf64_Ehdr header;
    memcpy(&header, core.bytes, sizeof header);
    header.e_type = ET_EXEC;
    memcpy(core.bytes, &header, sizeof header);
    save(core.bytes, core.size);
    expect_refusal("not a core file (ELF type 2)");
    header.e_type = ET_CORE;
    header.e_machine = EM_MIPS;
    memcpy(core.bytes, &header, sizeof header);
    save(core.bytes, core.size);
    expect_refusal("ELF machine 8");
    header.e_machine = EM_386; // of 64 bits
    memcpy(core.bytes, &header, sizeof header);
    save(core.bytes, core.size);
    expect_refusal("64-bit pointers");
    core_file_make(&core, arch_by_id(QUT_ARCH_X86), NULL, 0);
    core.bytes[18] = EM_X86_64; // x32
    save(core.bytes, core.size);
    expect_refusal("32-bit pointers");
}
END_TEST

// Segments of notes may overlap: together they could be as large as the file, times their number.
START_TEST(notes_are_bounded)
{
    enum { SEGMENTS = 10 };
    const uint64_t size = (uint64_t)256 << 20; // the bound; the first leaves room for one byte, which is not aligned
    Elf64_Ehdr header = {.e_type = ET_CORE,
                         .e_machine = EM_X86_64,
                         .e_phoff = sizeof header,
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = SEGMENTS};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    Elf64_Phdr segments[SEGMENTS];
    for (unsigned i = 0; i < SEGMENTS; i++)
        segments[i] = (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = 4096, .p_filesz = i ? size : size - 1};
    save(&header, sizeof header);
    ck_assert_int_eq(ftruncate(memory_file, (off_t)(4096 + size)), 0);
    ck_assert_int_eq(pwrite(memory_file, segments, sizeof segments, sizeof header), (ssize_t)sizeof segments);
    expect_refusal("no thread in it");
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    ck_assert_int_lt(usage.ru_maxrss, 1 << 20); // KiB; a sanitizer keeps what was freed
}
END_TEST

static void use_all(struct qut_target *target)
{
    for (size_t i = 0; i < qut_target_thread_count(target) && i < 8; i++) {
        struct qut_frame frames[FRAMES_MAX];
        struct qut_end end;
        struct qut_thread_info thread;
        size_t count = qut_target_walk(target, i, frames, FRAMES_MAX, &end);
        ck_assert_uint_le(count, FRAMES_MAX);
        qut_target_thread(target, i, &thread);
        for (size_t f = 0; f < count; f++) {
            struct qut_module_info module;
            if (qut_target_module(target, frames[f].pc, &module))
                ck_assert_ptr_nonnull(module.path);
        }
    }
    uint8_t bytes[64];
    qut_target_read(target, 0x1000, bytes, sizeof bytes);
    qut_target_read(target, UINT64_MAX - 8, bytes, sizeof bytes);
}

// Its code is an ELF image that has to be found in memory.
static void make_with_image(const struct arch *arch)
{
    static uint8_t image[VDSO_BYTES], stack[4096];
    const void *vdso = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (vdso)
        memcpy(image, vdso, 4096);
    uint64_t return_address = 0x1800;
    for (size_t i = 0; i < sizeof stack; i += arch->word_bytes)
        memcpy(stack + i, &return_address, arch->word_bytes);
    const struct core_memory memory[] = {
        {.address = 0x1000, .size = VDSO_BYTES, .bytes = image, .dumped = sizeof image, .flags = PF_R | PF_X},
        {.address = 0x4000, .size = 0x1000, .flags = PF_R, .path = "/bin/sh"},
        {.address = 0x7000, .size = 0x1000, .bytes = stack, .dumped = sizeof stack, .flags = PF_R | PF_W},
    };
    core_file_make(&core, arch, memory, 3);
}

START_TEST(cut_off_anywhere)
{
    make_with_image(arch_by_id(archs[_i]));
    unsigned opened = 0;
    for (size_t size = 0; size < core.size; size += size < 4096 ? 7 : 501) {
        struct qut_target_error error = {""};
        save(core.bytes, size);
        struct qut_target *target = qut_target_core(path, NULL, &options, &error);
        ck_assert(target || error.text[0]);
        if (!target)
            continue;
        opened++;
        use_all(target);
        qut_target_close(target);
    }
    ck_assert_uint_gt(opened, 10); // of a core without its end, the threads are still known
}
END_TEST

static uint64_t random_state = 1;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

START_TEST(spoiled_anywhere)
{
    static const uint64_t nasty[] = {0, 1, UINT64_MAX, INT64_MAX, UINT32_MAX, INT32_MAX, 4095, 0x1000};
    static struct core_file spoiled;
    make_with_image(arch_by_id(archs[_i]));
    size_t front = core.size - VDSO_BYTES - 4096; // headers and notes: what is interpreted
    for (unsigned n = 0; n < MUTATIONS / (sizeof archs / sizeof *archs); n++) {
        memcpy(spoiled.bytes, core.bytes, core.size);
        for (unsigned i = 0, count = 1 + (unsigned)(next_random() % 4); i < count; i++) {
            size_t range = next_random() % 3 ? front : core.size - 8;
            size_t at = next_random() % range;
            uint64_t value = next_random() % 2 ? nasty[next_random() % 8] : next_random();
            memcpy(spoiled.bytes + at, &value, 1u << next_random() % 4);
        }
        save(spoiled.bytes, core.size);
        options.compile = n % COMPILED_OF ? NULL : qutc_compile_for_qut;
        struct qut_target_error error = {""};
        struct qut_target *target = qut_target_core(path, NULL, &options, &error);
        ck_assert(target || error.text[0]);
        if (target)
            use_all(target);
        qut_target_close(target);
    }
}
END_TEST

// As gdb leaves what it could not read.
static void clear_in_core(const char *name, uint64_t from)
{
    static const uint8_t zeros[4096];
    ElfW(Ehdr) head;
    ElfW(Phdr) load;
    FILE *file = fopen(name, "r+");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(&head, sizeof head, 1, file), 1);
    for (unsigned i = 0; i < head.e_phnum; i++) {
        fseek(file, (long)(head.e_phoff + i * sizeof load), SEEK_SET);
        ck_assert_uint_eq(fread(&load, sizeof load, 1, file), 1);
        if (load.p_type != PT_LOAD || from < load.p_vaddr || from - load.p_vaddr >= load.p_filesz)
            continue;
        uint64_t into = (from - load.p_vaddr) & ~(uint64_t)4095;
        fseek(file, (long)(load.p_offset + into), SEEK_SET);
        for (uint64_t at = into; at < load.p_filesz; at += sizeof zeros)
            ck_assert_uint_eq(fwrite(zeros, sizeof zeros, 1, file), 1);
    }
    fclose(file);
}

// With its stack pointer at most this far below a page's end, or anywhere.
static void wait_forever(size_t below_page_end)
{
    uint8_t *here = __builtin_frame_address(0);
    size_t room = below_page_end ? ((uintptr_t)here - 4096 + below_page_end) % 4096 + 1 : 1;
    volatile uint8_t *lower = __builtin_alloca(room);
    *lower = 0;
    for (;;)
        pause();
}

START_TEST(a_core_of_a_living_process)
{
    if (system("command -v gcore >/dev/null 2>&1") != 0) {
        printf("SKIP: gcore (gdb) is absent\n");
        return;
    }
#ifdef OS_SANITIZED
    printf("SKIP: a sanitizer's shadow memory is more than gcore can write\n");
    return;
#endif
    pid_t child = fork();
    if (child == 0)
        wait_forever(_i ? 96 : 0); // that of a wait is less than 256 below the page's end then
    char command[256], name[64];
    snprintf(command, sizeof command, "gcore -o '%s/core' %d >/dev/null 2>&1", directory, (int)child);
    int status = system(command);
    struct qut_target_error error = {""};
    struct qut_target *live = qut_target_process(child, &options, &error);
    ck_assert_msg(live && qut_target_stop(live, &error) == 0, "%s", error.text);
    struct qut_frame live_frames[FRAMES_MAX], core_frames[FRAMES_MAX];
    struct qut_end live_end, core_end;
    size_t live_count = qut_target_walk(live, 0, live_frames, FRAMES_MAX, &live_end);
    if (_i)
        ck_assert_uint_gt(live_frames[0].sp % 4096, 4096 - 256);
    qut_target_close(live);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (status != 0) {
        printf("SKIP: gcore cannot trace here\n");
        return;
    }
    snprintf(name, sizeof name, "%s/core.%d", directory, (int)child);
    struct qut_target *target = qut_target_core(name, NULL, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    size_t core_count = qut_target_walk(target, 0, core_frames, FRAMES_MAX, &core_end);
    ck_assert_uint_gt(live_count, 3);
    ck_assert_uint_eq(core_count, live_count);
    ck_assert_mem_eq(core_frames, live_frames, live_count * sizeof *live_frames);
    ck_assert_int_eq(core_end.reason, live_end.reason);
    qut_target_close(target);
    clear_in_core(name, live_frames[0].sp);
    target = qut_target_core(name, NULL, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    ck_assert_uint_eq(qut_target_walk(target, 0, core_frames, FRAMES_MAX, &core_end), 1);
    ck_assert_int_eq(core_end.reason, QUT_END_BAD_MEMORY);
    ck_assert_uint_eq(core_end.address, live_frames[0].sp);
    qut_target_close(target);
    unlink(name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("core");
    TCase *tests = tcase_create("core");
    const int count = sizeof archs / sizeof *archs;
    tcase_set_timeout(tests, 100);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, threads_of_every_architecture, 0, count);
    tcase_add_test(tests, what_is_no_core_of_ours);
    tcase_add_test(tests, notes_are_bounded);
    tcase_add_loop_test(tests, cut_off_anywhere, 0, count);
    tcase_add_loop_test(tests, spoiled_anywhere, 0, count);
    tcase_add_loop_test(tests, a_core_of_a_living_process, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
