// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/protobuf.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/base/cursor.h"
#include "tests/support/run_suite.h"

static struct protobuf out;

static void set_up(void)
{
    out = (struct protobuf){.sink = sink_in_memory()};
}

static void tear_down(void)
{
    struct qutc_error error;
    protobuf_free(&out);
    ck_assert_int_eq(sink_close(out.sink, true, &error), 0);
}

static struct qutc_cursor written(void)
{
    size_t size;
    protobuf_flush(&out, true);
    const uint8_t *bytes = sink_memory(out.sink, &size);
    return qutc_cursor((struct qutc_bytes){bytes, size});
}

START_TEST(numbers)
{
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    enum { COUNT = sizeof values / sizeof *values };
    for (unsigned i = 0; i < COUNT; i++) {
        protobuf_number(&out, i + 1, values[i]);
        protobuf_number(&out, 536870911, values[i]); // the largest field
        protobuf_fixed64(&out, 16, values[i]);
        protobuf_bare_number(&out, values[i]);
    }
    struct qutc_cursor cursor = written();
    for (unsigned i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(qutc_read_uleb(&cursor), (i + 1) << 3);
        ck_assert_uint_eq(qutc_read_uleb(&cursor), values[i]);
        ck_assert_uint_eq(qutc_read_uleb(&cursor), (uint64_t)536870911 << 3);
        ck_assert_uint_eq(qutc_read_uleb(&cursor), values[i]);
        ck_assert_uint_eq(qutc_read_uleb(&cursor), 16 << 3 | 1);
        ck_assert_uint_eq(qutc_read_u64(&cursor), values[i]);
        ck_assert_uint_eq(qutc_read_uleb(&cursor), values[i]);
    }
    ck_assert(!cursor.failed && !qutc_cursor_left(&cursor));
}
END_TEST

// Messages within each other, around each size at which a length takes one byte more.
START_TEST(messages)
{
    static const size_t sizes[] = {0, 1, 120, 123, 124, 125, 126, 127, 128, 16370, 16380, 16383, 16384, 3000000};
    static uint8_t filling[3000000];
    for (size_t i = 0; i < sizeof filling; i++)
        filling[i] = (uint8_t)(i * 7);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t outer = protobuf_begin(&out, 1);
        protobuf_number(&out, 2, 3);
        size_t inner = protobuf_begin(&out, 1000);
        protobuf_bytes(&out, 4, filling, sizes[i]);
        protobuf_end(&out, inner);
        protobuf_number(&out, 5, 6);
        protobuf_end(&out, outer);
        protobuf_flush(&out, false);
    }
    struct qutc_cursor cursor = written();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_uint_eq(qutc_read_uleb(&cursor), 1 << 3 | 2);
        struct qutc_cursor outer = qutc_cursor(qutc_read_bytes(&cursor, qutc_read_uleb(&cursor)));
        ck_assert_uint_eq(qutc_read_uleb(&outer), 2 << 3);
        ck_assert_uint_eq(qutc_read_uleb(&outer), 3);
        ck_assert_uint_eq(qutc_read_uleb(&outer), 1000 << 3 | 2);
        struct qutc_cursor inner = qutc_cursor(qutc_read_bytes(&outer, qutc_read_uleb(&outer)));
        ck_assert_uint_eq(qutc_read_uleb(&inner), 4 << 3 | 2);
        struct qutc_bytes bytes = qutc_read_bytes(&inner, qutc_read_uleb(&inner));
        ck_assert_uint_eq(bytes.size, sizes[i]);
        ck_assert_mem_eq(bytes.data, filling, sizes[i]);
        ck_assert(!inner.failed && !qutc_cursor_left(&inner));
        ck_assert_uint_eq(qutc_read_uleb(&outer), 5 << 3);
        ck_assert_uint_eq(qutc_read_uleb(&outer), 6);
        ck_assert(!outer.failed && !qutc_cursor_left(&outer));
    }
    ck_assert(!cursor.failed && !qutc_cursor_left(&cursor));
}
END_TEST

START_TEST(several_texts)
{
    static const char *const texts[][2] = {
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"}, // cut off
    };
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        protobuf_text(&out, 1, texts[i][0]);
    struct qutc_cursor cursor = written();
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_uint_eq(qutc_read_uleb(&cursor), 1 << 3 | 2);
        struct qutc_bytes bytes = qutc_read_bytes(&cursor, qutc_read_uleb(&cursor));
        ck_assert_uint_eq(bytes.size, strlen(texts[i][1]));
        ck_assert_mem_eq(bytes.data, texts[i][1], bytes.size);
    }
    ck_assert(!qutc_cursor_left(&cursor));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("protobuf");
    TCase *tests = tcase_create("protobuf");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, numbers);
    tcase_add_test(tests, messages);
    tcase_add_test(tests, several_texts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
