// SPDX-License-Identifier: Apache-2.0
// Real libraries of each architecture without their files: rows must be those of the file, where the file's came from
// what is mapped.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tests/support/run_suite.h"
#include "tests/unit/qutc/provide/mapped.h"

static const char *const libraries[] = {
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/aarch64-linux-gnu/lib/libc.so.6",
    "/usr/arm-linux-gnueabihf/lib/libc.so.6",
    "/usr/arm-linux-gnueabihf/lib/libstdc++.so.6",
    "/usr/i686-linux-gnu/lib/libc.so.6",
    "/usr/riscv64-linux-gnu/lib/libc.so.6",
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

// Nothing, zeros, or nonsense where the section headers were.
static const int rests[] = {MAPPED_CUT, 0, 0x55};
enum { RESTS = sizeof rests / sizeof *rests };

static bool in_plt(const struct input_image *image, uint64_t pc)
{
    for (unsigned i = 0; i < image->plt_count; i++)
        if (pc >= image->plt[i].start && pc < image->plt[i].end)
            return true;
    return false;
}

static uint64_t compare(const struct input_image *image, const struct qut_table *file, const struct qut_table *memory)
{
    struct qut_rule wanted, rule;
    uint64_t compared = 0;
    for (uint64_t pc = file->text_start, end; runtime_table_next_row(file, &pc, &end, &wanted); pc = end) {
        // Where sections are not known, what lies in .plt without unwind information stays a hole.
        if (in_plt(image, pc))
            continue;
        runtime_table_rule(memory, pc, &rule);
        ck_assert_msg(memcmp(&rule, &wanted, sizeof rule) == 0, "%s: another rule at 0x%jx", image->name,
                      (uintmax_t)pc);
        compared++;
    }
    return compared;
}

// Only what is needed of a file is read; nothing that is needed may be missing.
START_TEST(a_file_that_is_read_is_the_file_mapped)
{
    if (access(libraries[_i], R_OK) != 0) {
        printf("SKIP: no %s\n", libraries[_i]);
        return;
    }
    struct input_image *image;
    uint8_t *mapped;
    void *read;
    size_t mapped_size, read_size;
    char reason[256] = "";
    ck_assert_int_eq(input_image_open(libraries[_i], NULL, 0, 0, NULL, &image, NULL), 0);
    const struct qutc_compile_options options = {.fill = CODE_FILL_IF_MUCH};
    ck_assert_int_eq(qutc_compile(image, &options, &mapped, &mapped_size, NULL, NULL), 0);
    struct qut_compile_request request = {
        .path = libraries[_i], .build_id = image->identity, .build_id_size = image->identity_size};
    int result = qutc_compile_for_qut(NULL, &request, &read, &read_size, reason, sizeof reason);
    ck_assert_msg(result == 0, "%s: %s", libraries[_i], reason);
    ck_assert_uint_eq(read_size, mapped_size);
    ck_assert_mem_eq(read, mapped, read_size);
    free(mapped);
    free(read);
    input_image_close(image);
}
END_TEST

START_TEST(rows_are_those_of_the_file)
{
    const char *path = libraries[_i / RESTS];
    if (access(path, R_OK) != 0) {
        printf("SKIP: no %s\n", path);
        return;
    }
    struct input_image *image;
    struct qut_table of_file, of_memory;
    uint8_t *bytes, *file_table;
    size_t size, file_table_size, memory_table_size;
    char reason[256] = "";
    ck_assert_int_eq(input_image_open(path, NULL, 0, 0, NULL, &image, NULL), 0);
    ck_assert_int_eq(qutc_compile(image, NULL, &file_table, &file_table_size, NULL, NULL), 0);
    ck_assert_int_eq(qutc_table_attach(&of_file, file_table, file_table_size, NULL), 0);
    ck_assert_int_eq(qutc_read_file(path, SIZE_MAX, &bytes, &size, NULL), 0);

    struct base_bytes memory = mapped_image((struct base_bytes){bytes, size}, rests[_i % RESTS]);
    ck_assert_uint_gt(memory.size, 0);
    ck_assert(memory.size < size || rests[_i % RESTS] != MAPPED_CUT);
    struct qut_compile_request request = {.path = "",
                                          .memory = memory.data,
                                          .memory_size = memory.size,
                                          .build_id = image->identity,
                                          .build_id_size = image->identity_size};
    void *memory_table;
    int result = qutc_compile_for_qut(NULL, &request, &memory_table, &memory_table_size, reason, sizeof reason);
    ck_assert_msg(result == 0, "%s: %s", path, reason);
    ck_assert_int_eq(qutc_table_attach(&of_memory, memory_table, memory_table_size, NULL), 0);
    ck_assert_uint_gt(compare(image, &of_file, &of_memory), 500);
    ck_assert_uint_eq(of_memory.header->eh_frame_hdr_bytes, of_file.header->eh_frame_hdr_bytes);

    free(memory_table);
    free(file_table);
    free(bytes);
    free((void *)(uintptr_t)memory.data);
    input_image_close(image);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = tcase_create("memory");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rows_are_those_of_the_file, 0, LIBRARIES * RESTS);
    tcase_add_loop_test(tests, a_file_that_is_read_is_the_file_mapped, 0, LIBRARIES);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
