// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>

#include "base/file_io_inline.h"
#include "tests/support/run_suite.h"

enum { SIZE = 1 << 20 }; // more than a pipe holds

static void *read_all(void *context)
{
    size_t *sum = context, fd = *sum;
    uint8_t bytes[4096];
    *sum = 0;
    for (ssize_t got; (got = read((int)fd, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < got; i++)
            *sum += bytes[i];
    return NULL;
}

START_TEST(in_several_parts)
{
    static uint8_t bytes[SIZE];
    int ends[2];
    pthread_t reader;
    memset(bytes, 3, sizeof bytes);
    ck_assert_int_eq(pipe(ends), 0);
    size_t sum = (size_t)ends[0];
    ck_assert_int_eq(pthread_create(&reader, NULL, read_all, &sum), 0);
    ck_assert_int_eq(base_file_write_all(ends[1], bytes, sizeof bytes), 0);
    close(ends[1]);
    pthread_join(reader, NULL);
    close(ends[0]);
    ck_assert_uint_eq(sum, 3 * SIZE);
}
END_TEST

START_TEST(says_why_not)
{
    int fd = open("/dev/full", O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(base_file_write_all(fd, "", 0), 0);
    ck_assert_int_eq(base_file_write_all(fd, "x", 1), -1);
    ck_assert_int_eq(errno, ENOSPC);
    close(fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_io");
    TCase *tests = tcase_create("file_io");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, in_several_parts);
    tcase_add_test(tests, says_why_not);
    return run_suite(suite);
}
