// SPDX-License-Identifier: Apache-2.0
// Files that are changed while they are compiled: an error, or the right table; never a signal, never another table.
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qutc/provide.h>

#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

enum { HEADER = sizeof(struct qut_table_header) };

static char *directory, *path;
static uint8_t *bytes; // of the file as it should be
static size_t size;

static void set_up(void)
{
    ck_assert_int_eq(qutc_read_file("/proc/self/exe", SIZE_MAX, &bytes, &size, NULL), 0);
    directory = build_directory();
    path = build_file(directory, "library.so", bytes, size);
}

static void tear_down(void)
{
    free(path);
    free(bytes);
    build_remove(directory);
}

static struct input_image *open_image(void)
{
    const struct input_image_options options = {.read_files = true};
    struct input_image *image = NULL;
    ck_assert_int_eq(input_image_open(path, NULL, 0, 0, &options, &image, NULL), 0);
    ck_assert(input_image_is_whole(image));
    return image;
}

static void write_at(off_t offset, const void *data, size_t data_size)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, data, data_size, offset), (ssize_t)data_size);
    close(fd);
}

START_TEST(truncated_between_open_and_use)
{
    struct input_image *image = open_image();
    uint8_t *table = NULL;
    size_t table_size;
    ck_assert_int_eq(truncate(path, 100), 0);
    struct base_bytes all = input_image_elf(image);
    ck_assert_uint_eq(all.size, size);
    ck_assert_uint_eq(all.data[size - 1], 0); // lost; a mapped file would have ended the program
    qutc_compile(image, NULL, &table, &table_size, NULL, NULL);
    ck_assert(!input_image_is_whole(image));
    input_image_close(image);
    free(table);
}
END_TEST

START_TEST(rewritten_in_place)
{
    struct input_image *image = open_image();
    usleep(20000); // the kernel's clock of file times is that coarse
    write_at(0, bytes, size);
    ck_assert(!input_image_is_whole(image));
    input_image_close(image);
}
END_TEST

START_TEST(replaced_by_rename)
{
    struct input_image *image = open_image();
    char *other = build_file(directory, "other.so", "", 0);
    ck_assert_int_eq(rename(other, path), 0);
    struct base_bytes all = input_image_elf(image);
    ck_assert_mem_eq(all.data, bytes, size); // the file that was opened is all there
    ck_assert(input_image_is_whole(image));
    input_image_close(image);
    free(other);
}
END_TEST

// Cuts the file off and completes it, for ever.
static pid_t start_vandal(void)
{
    pid_t vandal = fork();
    if (vandal != 0)
        return vandal;
    for (unsigned round = 0;; round++) {
        size_t kept = (size_t)round * 4099 % size;
        if (truncate(path, (off_t)kept) != 0)
            _exit(1);
        usleep(round % 7 * 50);
        write_at((off_t)kept, bytes + kept, size - kept);
        usleep(round % 5 * 300);
    }
}

START_TEST(truncated_all_the_time)
{
    uint8_t *right = NULL;
    size_t right_size = 0;
    struct input_image *image = open_image();
    ck_assert_int_eq(image->identity_kind, INPUT_BUILD_ID);
    const struct qutc_compile_options options = {.fill = CODE_FILL_IF_MUCH};
    ck_assert_int_eq(qutc_compile(image, &options, &right, &right_size, NULL, NULL), 0);
    struct qut_compile_request request = {
        .path = path, .build_id = image->identity, .build_id_size = image->identity_size};
    pid_t vandal = start_vandal();
    unsigned made = 0, failed = 0;
    for (unsigned i = 0; i < 20000 && (i < 1000 || !made || !failed); i++) {
        void *table;
        size_t table_size;
        char reason[256] = "";
        if (qutc_compile_for_qut(NULL, &request, &table, &table_size, reason, sizeof reason) == 0) {
            made++;
            // Where only the section headers were cut off, the header may tell other sizes of sections.
            ck_assert_uint_eq(table_size, right_size);
            ck_assert_mem_eq((uint8_t *)table + HEADER, right + HEADER, right_size - HEADER);
            free(table);
        } else {
            failed++;
            ck_assert_str_ne(reason, "");
        }
    }
    kill(vandal, SIGKILL);
    waitpid(vandal, NULL, 0);
    ck_assert_msg(made && failed, "%u tables, %u failures: the race was not run", made, failed);
    input_image_close(image);
    free(right);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("changed");
    TCase *tests = tcase_create("changed");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 100);
    tcase_add_test(tests, truncated_between_open_and_use);
    tcase_add_test(tests, rewritten_in_place);
    tcase_add_test(tests, replaced_by_rename);
    tcase_add_test(tests, truncated_all_the_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
