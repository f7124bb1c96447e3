// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/protobuf.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor_inline.h"
#include "tests/support/run_suite.h"

static struct protobuf out;

static void set_up(void)
{
    out = (struct protobuf){.sink = sink_in_memory()};
}

static void tear_down(void)
{
    struct base_error error;
    export_protobuf_free(&out);
    ck_assert_int_eq(sink_close(out.sink, true, &error), 0);
}

static struct base_cursor written(void)
{
    size_t size;
    export_protobuf_flush(&out, true);
    const uint8_t *bytes = sink_memory(out.sink, &size);
    return base_cursor((struct base_bytes){bytes, size});
}

START_TEST(numbers)
{
    static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    enum { COUNT = sizeof values / sizeof *values };
    for (unsigned i = 0; i < COUNT; i++) {
        export_protobuf_number(&out, i + 1, values[i]);
        export_protobuf_number(&out, 536870911, values[i]); // the largest field
        export_protobuf_fixed64(&out, 16, values[i]);
        export_protobuf_bare_number(&out, values[i]);
    }
    struct base_cursor cursor = written();
    for (unsigned i = 0; i < COUNT; i++) {
        ck_assert_uint_eq(base_read_uleb(&cursor), (i + 1) << 3);
        ck_assert_uint_eq(base_read_uleb(&cursor), values[i]);
        ck_assert_uint_eq(base_read_uleb(&cursor), (uint64_t)536870911 << 3);
        ck_assert_uint_eq(base_read_uleb(&cursor), values[i]);
        ck_assert_uint_eq(base_read_uleb(&cursor), 16 << 3 | 1);
        ck_assert_uint_eq(base_read_u64(&cursor), values[i]);
        ck_assert_uint_eq(base_read_uleb(&cursor), values[i]);
    }
    ck_assert(!cursor.failed && !base_cursor_left(&cursor));
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
        size_t outer = export_protobuf_begin(&out, 1);
        export_protobuf_number(&out, 2, 3);
        size_t inner = export_protobuf_begin(&out, 1000);
        export_protobuf_bytes(&out, 4, filling, sizes[i]);
        export_protobuf_end(&out, inner);
        export_protobuf_number(&out, 5, 6);
        export_protobuf_end(&out, outer);
        export_protobuf_flush(&out, false);
    }
    struct base_cursor cursor = written();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        ck_assert_uint_eq(base_read_uleb(&cursor), 1 << 3 | 2);
        struct base_cursor outer = base_cursor(base_read_bytes(&cursor, base_read_uleb(&cursor)));
        ck_assert_uint_eq(base_read_uleb(&outer), 2 << 3);
        ck_assert_uint_eq(base_read_uleb(&outer), 3);
        ck_assert_uint_eq(base_read_uleb(&outer), 1000 << 3 | 2);
        struct base_cursor inner = base_cursor(base_read_bytes(&outer, base_read_uleb(&outer)));
        ck_assert_uint_eq(base_read_uleb(&inner), 4 << 3 | 2);
        struct base_bytes bytes = base_read_bytes(&inner, base_read_uleb(&inner));
        ck_assert_uint_eq(bytes.size, sizes[i]);
        ck_assert_mem_eq(bytes.data, filling, sizes[i]);
        ck_assert(!inner.failed && !base_cursor_left(&inner));
        ck_assert_uint_eq(base_read_uleb(&outer), 5 << 3);
        ck_assert_uint_eq(base_read_uleb(&outer), 6);
        ck_assert(!outer.failed && !base_cursor_left(&outer));
    }
    ck_assert(!cursor.failed && !base_cursor_left(&cursor));
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
        export_protobuf_text(&out, 1, texts[i][0]);
    struct base_cursor cursor = written();
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_uint_eq(base_read_uleb(&cursor), 1 << 3 | 2);
        struct base_bytes bytes = base_read_bytes(&cursor, base_read_uleb(&cursor));
        ck_assert_uint_eq(bytes.size, strlen(texts[i][1]));
        ck_assert_mem_eq(bytes.data, texts[i][1], bytes.size);
    }
    ck_assert(!base_cursor_left(&cursor));
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
