// SPDX-License-Identifier: Apache-2.0
// Tables of OAT files without build-id: made from the file, found in the cache by this process and by others.
#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/local.h>
#include <qutc/provide.h>

#include "libqut/arch/native.h"
#include "libqut/os/file.h"
#include "libqut/os/os.h"
#include "libqut/runtime/table_store.h"
#include "libqut/target/opened_target.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

enum { PATIENCE_MS = 10000 };

static char *directory;
static struct qutc_provide_options provide;

static void set_up(void)
{
    directory = build_directory();
    provide = (struct qutc_provide_options){.size = sizeof provide, .cache_directory = directory};
}

static void tear_down(void)
{
    build_remove(directory);
}

static uintptr_t load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    uintptr_t pc = (uintptr_t)dlsym(library, "answer");
    ck_assert_uint_ne(pc, 0);
    return pc;
}

static struct qut_loaded_module module_at(uintptr_t pc, const char *cache, qut_compile_fn compile, void *context)
{
    struct qut_options options = {
        .size = sizeof options, .cache_directory = cache, .compile = compile, .compile_context = context};
    struct qut_loaded_module module;
    ck_assert_int_eq(qut_start(&options), 0);
    ck_assert_int_eq(qut_wait(PATIENCE_MS), 0);
    ck_assert_int_eq(qut_module_at(pc, &module, sizeof module), 1);
    qut_stop();
    return module;
}

START_TEST(this_process_finds_it_in_the_cache)
{
    uintptr_t pc = load(OAT1), other_pc = load(OAT2);
    ck_assert(!module_at(pc, directory, NULL, NULL).has_table);
    ck_assert(module_at(pc, directory, qutc_compile_for_qut, &provide).has_table);
    ck_assert(module_at(pc, directory, NULL, NULL).has_table);
    ck_assert(module_at(other_pc, directory, NULL, NULL).has_table);
    ck_assert(!module_at(pc, NULL, NULL, NULL).has_table);
}
END_TEST

static void identity_of(const char *path, uint8_t identity[INPUT_IDENTITY_MAX])
{
    struct input_image *image;
    const struct input_image_options options = {.identity_only = true};
    ck_assert_int_eq(input_image_open(path, NULL, 0, 0, &options, &image, NULL), 0);
    ck_assert_int_eq(image->identity_kind, INPUT_OAT_IDENTITY);
    memcpy(identity, image->identity, INPUT_IDENTITY_MAX);
    input_image_close(image);
}

static int compile(const char *path, const void *memory, size_t memory_size, const uint8_t *identity, char *reason)
{
    const struct qut_compile_request request = {.path = path,
                                                .memory = memory,
                                                .memory_size = memory_size,
                                                .build_id = identity,
                                                .build_id_size = INPUT_IDENTITY_MAX,
                                                .flags = QUT_COMPILE_OAT_IDENTITY};
    void *table = NULL;
    size_t table_size;
    *reason = '\0';
    int result = qutc_compile_for_qut(&provide, &request, &table, &table_size, reason, 256);
    if (result == 0)
        ck_assert(((const struct qut_table_header *)table)->flags & QUT_TABLE_OAT_IDENTITY);
    free(table);
    return result;
}

static bool is_in_cache(const uint8_t *identity)
{
    struct runtime_stored_table stored;
    const struct arch *arch = &arch_native_arch;
    bool is =
        runtime_table_store_read(directory, arch, QUT_TABLE_OAT_IDENTITY, identity, INPUT_IDENTITY_MAX, &stored) == 0;
    ck_assert_int_eq(
        runtime_table_store_read(directory, arch, QUT_TABLE_BUILD_ID, identity, INPUT_IDENTITY_MAX, &stored), -1);
    return is;
}

START_TEST(only_that_file_is_taken)
{
    uint8_t identity[INPUT_IDENTITY_MAX], other[INPUT_IDENTITY_MAX], *bytes;
    char reason[256];
    size_t size;
    identity_of(OAT1, identity);
    identity_of(OAT2, other);
    ck_assert_mem_ne(identity, other, sizeof other);
    ck_assert_int_eq(compile(OAT2, NULL, 0, identity, reason), -1);
    ck_assert_msg(strstr(reason, "another OAT file") != NULL, "%s", reason);
    ck_assert_int_eq(compile("/nowhere", NULL, 0, identity, reason), -1);
    // Memory is right in any case, but lacks what only the file has: no other process gets that table.
    ck_assert_int_eq(qutc_read_file(OAT1, SIZE_MAX, &bytes, &size, NULL), 0);
    ck_assert_msg(compile(OAT2, bytes, size, identity, reason) == 0, "%s", reason);
    free(bytes);
    ck_assert(!is_in_cache(identity) && !is_in_cache(other));
    ck_assert_msg(compile(OAT1, NULL, 0, identity, reason) == 0, "%s", reason);
    ck_assert(is_in_cache(identity) && !is_in_cache(other));
}
END_TEST

// Asks another process that has the same libraries.
static const struct target_image *image_in(struct qut_target *target, uintptr_t pc)
{
    struct target_map *map = target_maps_find(&target->maps, pc);
    ck_assert_ptr_nonnull(map);
    struct target_image *image = target_image_of(target, map);
    target_make_table(target, image);
    return image;
}

START_TEST(others_find_it_for_a_process)
{
    uint8_t identity[INPUT_IDENTITY_MAX], *bytes;
    char reason[256], byte;
    size_t size;
    int ends[2];
    // A third one, whose file is then another.
    ck_assert_int_eq(qutc_read_file(OAT1, SIZE_MAX, &bytes, &size, NULL), 0);
    char *path = build_file(directory, "copy.so", bytes, size);
    free(bytes);
    ck_assert_int_eq(qutc_read_file(OAT2, SIZE_MAX, &bytes, &size, NULL), 0);
    char *new_path = build_file(directory, "new.so", bytes, size);
    free(bytes);
    uintptr_t pc = load(OAT1), other_pc = load(OAT2), copy_pc = load(path);
    ck_assert_int_eq(rename(new_path, path), 0);
    identity_of(OAT1, identity);
    ck_assert_msg(compile(OAT1, NULL, 0, identity, reason) == 0, "%s", reason);
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) != 0);
    }
    close(ends[0]);
    const struct qut_target_options options = {.size = sizeof options, .cache_directory = directory};
    struct qut_target_error error;
    struct qut_target *target = qut_target_process(child, &options, &error);
    ck_assert_msg(target != NULL, "%s", error.text);
    const struct target_image *image = image_in(target, pc), *other = image_in(target, other_pc),
                              *copy = image_in(target, copy_pc);
    ck_assert_msg(image->table_state == TARGET_TABLE_READY, "%s", image->reason);
    ck_assert_mem_eq(image->oat_identity, identity, sizeof identity);
    ck_assert_uint_eq(image->build_id_size, 0);
    ck_assert_int_eq(other->table_state, TARGET_TABLE_NONE);
    ck_assert(other->has_oat_identity);
    // Another file is at its path now.
    ck_assert(copy->has_oat_identity);
    ck_assert_mem_eq(copy->oat_identity, identity, sizeof identity);
    ck_assert_int_eq(copy->table_state, TARGET_TABLE_READY);
    qut_target_close(target);
    close(ends[1]);
    waitpid(child, NULL, 0);
    free(path);
    free(new_path);
}
END_TEST

static size_t read_own(struct qut_target *target, uint64_t address, void *bytes, size_t size)
{
    (void)target;
    return address > UINTPTR_MAX ? 0 : os_read_self((uintptr_t)address, bytes, size);
}

static size_t read_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    return os_read_at(*(int *)context, offset, bytes, size);
}

START_TEST(a_file_that_is_not_the_mapped_one_is_seen)
{
    const struct target_kind kind = {.read = read_own};
    struct qut_target target = {.kind = &kind};
    struct elf_head head;
    uint8_t identity[INPUT_IDENTITY_MAX];
    Dl_info info;
    uintptr_t pc = load(OAT1);
    ck_assert_int_ne(dladdr((void *)pc, &info), 0);
    struct target_image image = {.load_bias = (uintptr_t)info.dli_fbase};
    int fd = os_open_file(OAT1, NULL), other_fd = os_open_file(OAT2, NULL);
    identity_of(OAT1, identity);
    ck_assert(elf_head_read(&head, read_at, &fd));
    for (int i = 0; i < 2; i++) {
        ck_assert(target_identify_oat(&target, &head, i ? fd : -1, &image) && image.has_oat_identity);
        ck_assert_mem_eq(image.oat_identity, identity, sizeof identity);
        ck_assert(!target_identify_oat(&target, &head, other_fd, &image) && !image.has_oat_identity);
    }
    // Where no memory was kept nothing speaks against a file.
    image.load_bias = 0x1000;
    ck_assert(target_identify_oat(&target, &head, other_fd, &image) && image.has_oat_identity);
    ck_assert(target_identify_oat(&target, &head, -1, &image) && !image.has_oat_identity);
    os_close_file(fd);
    os_close_file(other_fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_loaded");
    TCase *tcase = tcase_create("oat_loaded");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, this_process_finds_it_in_the_cache);
    tcase_add_test(tcase, only_that_file_is_taken);
    tcase_add_test(tcase, others_find_it_for_a_process);
    tcase_add_test(tcase, a_file_that_is_not_the_mapped_one_is_seen);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
