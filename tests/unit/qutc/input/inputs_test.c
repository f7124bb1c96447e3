// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qutc/input/inputs.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

static const uint8_t eh_frame[] = {12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0, 0, 0, 0, 0, 0, 0};

static struct build_buffer small_elf(uint16_t type, uint64_t vaddr)
{
    return build_elf(&(struct build_elf){
        .type = type,
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, vaddr, eh_frame, sizeof eh_frame, 16},
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, vaddr + 0x1000, eh_frame, sizeof eh_frame, 8}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}, {PT_LOAD, PF_R, ".eh_frame", 0}}});
}

static void check_opens(const struct input *input)
{
    struct input_image *image;
    struct base_error error = {0};
    ck_assert_msg(input_open(input, NULL, &image, &error) == 0, "%s: %s", input->name, error.detail);
    ck_assert_uint_ge(image->frame_count, 1);
    ck_assert_str_eq(image->name, input->name);
    input_image_close(image);
}

static const struct input *find(const struct input_inputs *inputs, const char *name)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (strstr(inputs->items[i].name, name))
            return &inputs->items[i];
    return NULL;
}

START_TEST(directories)
{
    char *directory = build_directory();
    struct build_buffer elf = small_elf(0, 0x1000);
    struct build_buffer object = small_elf(ET_REL, 0x1000);
    char *second = build_file(directory, "b.so", elf.data, elf.size);
    free(build_file(directory, "a/z.so", elf.data, elf.size));
    free(build_file(directory, "a/b/c/deep.so", elf.data, elf.size));
    free(build_file(directory, "crt.o", object.data, object.size));
    free(build_file(directory, "text", "hello", 5));
    free(build_file(directory, "empty", "", 0));
    char path[4096];
    snprintf(path, sizeof path, "%s/hard.so", directory);
    ck_assert_int_eq(link(second, path), 0);
    snprintf(path, sizeof path, "%s/loop", directory);
    ck_assert_int_eq(symlink(directory, path), 0);
    snprintf(path, sizeof path, "%s/soft.so", directory);
    ck_assert_int_eq(symlink("/proc/self/exe", path), 0);
    snprintf(path, sizeof path, "%s/pipe", directory);
    ck_assert_int_eq(mkfifo(path, 0600), 0);

    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, directory, &error), 0);
    ck_assert_uint_eq(inputs.count, 3);
    ck_assert_ptr_nonnull(strstr(inputs.items[0].path, "/a/b/c/deep.so"));
    ck_assert_ptr_nonnull(strstr(inputs.items[1].path, "/a/z.so"));
    ck_assert_ptr_nonnull(strstr(inputs.items[2].path, "/b.so"));
    ck_assert_uint_eq(inputs.skipped_not_elf, 2);
    ck_assert_uint_eq(inputs.skipped_unsupported, 1);
    ck_assert_int_eq(input_inputs_add_path(&inputs, directory, &error), 0);
    ck_assert_uint_eq(inputs.count, 3);
    for (size_t i = 0; i < inputs.count; i++)
        check_opens(&inputs.items[i]);
    // A name the user gave may be a link.
    snprintf(path, sizeof path, "%s/soft.so", directory);
    ck_assert_int_eq(input_inputs_add_path(&inputs, path, &error), 0);
    ck_assert_uint_eq(inputs.count, 4);
    input_inputs_free(&inputs);
    free(elf.data);
    free(object.data);
    free(second);
    build_remove(directory);
}
END_TEST

START_TEST(named_files_must_be_elf)
{
    char *directory = build_directory();
    struct build_buffer object = small_elf(ET_REL, 0x1000);
    char *text = build_file(directory, "text", "hello", 5);
    char *object_path = build_file(directory, "crt.o", object.data, object.size);
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, text, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_NOT_ELF);
    error = (struct base_error){0};
    ck_assert_int_eq(input_inputs_add_path(&inputs, "/nonexistent", &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    error = (struct base_error){0};
    ck_assert_int_eq(input_inputs_add_path(&inputs, "/dev/null", &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    error = (struct base_error){0};
    // Kept, so that opening it says what is wrong with it.
    ck_assert_int_eq(input_inputs_add_path(&inputs, object_path, &error), 0);
    struct input_image *image;
    ck_assert_int_eq(input_open(&inputs.items[0], NULL, &image, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    input_inputs_free(&inputs);
    free(object.data);
    free(object_path);
    free(text);
    build_remove(directory);
}
END_TEST

static struct build_buffer example_zip(const char *comment)
{
    struct build_buffer first = small_elf(0, 0x1000);
    struct build_buffer second = small_elf(0, 0x2000);
    const struct build_member members[] = {
        {"classes.dex", "dex\n", 4, 0},
        {"lib/arm64-v8a/libx.so", first.data, first.size, 0},
        {"lib/arm64-v8a/packed.so", "\x4b\x04", 2, 8},
        {"assets/odd\nname", second.data, second.size, 0},
    };
    struct build_buffer zip = build_zip(members, 4, comment);
    free(first.data);
    free(second.data);
    return zip;
}

START_TEST(archives)
{
    static const char *const comments[] = {"", "a comment", "PK\5\6 in a comment, which is not the end record"};
    char *directory = build_directory();
    struct build_buffer zip = example_zip(comments[_i]);
    char *path = build_file(directory, "base.apk", zip.data, zip.size);
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, path, &error), 0);
    ck_assert_uint_eq(inputs.count, 2);
    ck_assert_uint_eq(inputs.skipped_compressed, 1);
    ck_assert_ptr_nonnull(find(&inputs, "base.apk!lib/arm64-v8a/libx.so"));
    ck_assert_ptr_nonnull(find(&inputs, "base.apk!assets/odd?name"));
    check_opens(&inputs.items[0]);
    check_opens(&inputs.items[1]);
    input_inputs_free(&inputs);
    free(zip.data);
    free(path);
    build_remove(directory);
}
END_TEST

START_TEST(archives_without_libraries)
{
    char *directory = build_directory();
    const struct build_member member = {"lib/x.so", "\x4b\x04", 2, 8};
    struct build_buffer zip = build_zip(&member, 1, "");
    char *path = build_file(directory, "base.apk", zip.data, zip.size);
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, path, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_NOT_ELF);
    error = (struct base_error){0};
    ck_assert_int_eq(input_inputs_add_path(&inputs, directory, &error), 0);
    ck_assert_uint_eq(inputs.count, 0);
    ck_assert_uint_eq(inputs.skipped_not_elf, 1);
    input_inputs_free(&inputs);
    free(zip.data);
    free(path);
    build_remove(directory);
}
END_TEST

// Each byte of the directory in turn set to 0xff, and the archive cut at each length.
START_TEST(hostile_archives)
{
    char *directory = build_directory();
    struct build_buffer zip = example_zip("");
    char *path = build_file(directory, "base.apk", zip.data, zip.size);
    size_t tail = 400;
    ck_assert_uint_gt(zip.size, tail);
    for (size_t i = 0; i < 2 * tail; i++) {
        size_t at = zip.size - 1 - i % tail;
        uint8_t kept = zip.data[at];
        zip.data[at] = 0xff;
        free(build_file(directory, "base.apk", zip.data, i < tail ? zip.size : at));
        zip.data[at] = kept;
        struct input_inputs inputs;
        struct base_error error = {0};
        input_inputs_init(&inputs);
        int result = input_inputs_add_path(&inputs, path, &error);
        ck_assert(result == 0 ? inputs.count > 0 : error.reason != BASE_OK);
        for (size_t k = 0; k < inputs.count; k++)
            ck_assert_uint_le(inputs.items[k].offset_bytes + inputs.items[k].size_bytes, zip.size);
        input_inputs_free(&inputs);
    }
    free(zip.data);
    free(path);
    build_remove(directory);
}
END_TEST

START_TEST(own_process)
{
    char *directory = build_directory();
    struct build_buffer elf = small_elf(0, 0x1000);
    struct build_buffer raw = {0};
    build_add(&raw, NULL, 8192);
    build_add(&raw, elf.data, elf.size);
    char *deleted = build_file(directory, "deleted.so", elf.data, elf.size);
    char *embedded = build_file(directory, "embedded.bin", raw.data, raw.size);
    int fd = open(deleted, O_RDONLY | O_CLOEXEC);
    void *first = mmap(NULL, elf.size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    unlink(deleted);
    fd = open(embedded, O_RDONLY | O_CLOEXEC);
    void *second = mmap(NULL, elf.size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 8192);
    close(fd);
    ck_assert(first != MAP_FAILED && second != MAP_FAILED);

    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_process(&inputs, getpid(), &error), 0);
    ck_assert_ptr_nonnull(find(&inputs, "libc.so"));
    ck_assert_ptr_nonnull(find(&inputs, "inputs"));
    ck_assert_ptr_nonnull(find(&inputs, "embedded.bin!0x2000"));
    if (find(&inputs, "[vdso]"))
        check_opens(find(&inputs, "[vdso]"));
    // Only a process that may follow links to what has no name any more finds it.
    ck_assert(find(&inputs, "deleted.so") || inputs.skipped_unreadable == 1);
    for (size_t i = 0; i < inputs.count; i++)
        check_opens(&inputs.items[i]);
    munmap(first, elf.size);
    munmap(second, elf.size);
    input_inputs_free(&inputs);
    free(elf.data);
    free(raw.data);
    free(deleted);
    free(embedded);
    build_remove(directory);
}
END_TEST

START_TEST(a_library_mapped_out_of_an_archive)
{
    char *directory = build_directory();
    struct build_buffer zip = example_zip("");
    char *path = build_file(directory, "base.apk", zip.data, zip.size);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    ck_assert(mapped != MAP_FAILED);
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    // Nothing is stored at offset 0 of an archive, so this mapping is of no library.
    ck_assert_int_eq(input_inputs_add_process(&inputs, getpid(), &error), 0);
    ck_assert_ptr_null(find(&inputs, "base.apk"));
    munmap(mapped, 4096);
    input_inputs_free(&inputs);
    free(zip.data);

    struct build_buffer elf = small_elf(0, 0x1000);
    struct build_buffer big = {0};
    build_add(&big, elf.data, elf.size);
    build_add(&big, NULL, 3 * 4096);
    const struct build_member members[] = {{"lib/one.so", elf.data, elf.size, 0},
                                           {"lib/two.so", big.data, big.size, 0}};
    zip = build_zip(members, 2, "");
    free(build_file(directory, "base.apk", zip.data, zip.size));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 8192);
    close(fd);
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_process(&inputs, getpid(), &error), 0);
    ck_assert_ptr_nonnull(find(&inputs, "base.apk!lib/two.so"));
    ck_assert_ptr_null(find(&inputs, "base.apk!lib/one.so"));
    check_opens(find(&inputs, "base.apk!lib/two.so"));
    munmap(mapped, 4096);
    input_inputs_free(&inputs);
    free(zip.data);
    free(elf.data);
    free(big.data);
    free(path);
    build_remove(directory);
}
END_TEST

START_TEST(a_process_that_is_not_there)
{
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_process(&inputs, 0x7fffffff, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    input_inputs_free(&inputs);
}
END_TEST

START_TEST(the_system)
{
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_system(&inputs, &error), 0);
    const struct input *libc = find(&inputs, "libc.so.6");
    ck_assert_ptr_nonnull(libc);
    check_opens(libc);
    for (size_t i = 0; i < inputs.count; i += 50) {
        struct input_image *image;
        ck_assert_int_eq(input_open(&inputs.items[i], NULL, &image, &error), 0);
        ck_assert_uint_eq(image->damage_count, 0);
        input_image_close(image);
    }
    input_inputs_free(&inputs);
}
END_TEST

START_TEST(the_vdso)
{
    struct input_inputs inputs;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    if (input_inputs_add_vdso(&inputs, &error)) {
        ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
        printf("SKIP: %s\n", error.detail);
        fflush(stdout);
    } else {
        ck_assert_uint_eq(inputs.count, 1);
        check_opens(&inputs.items[0]);
    }
    input_inputs_free(&inputs);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("inputs");
    TCase *tests = tcase_create("inputs");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, directories);
    tcase_add_test(tests, named_files_must_be_elf);
    tcase_add_loop_test(tests, archives, 0, 3);
    tcase_add_test(tests, archives_without_libraries);
    tcase_add_test(tests, hostile_archives);
    tcase_add_test(tests, own_process);
    tcase_add_test(tests, a_library_mapped_out_of_an_archive);
    tcase_add_test(tests, a_process_that_is_not_there);
    tcase_add_test(tests, the_system);
    tcase_add_test(tests, the_vdso);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
