// SPDX-License-Identifier: Apache-2.0
// JSON of bytes that are no text; which bytes can stand as they are.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8_inline.h"
#include "tests/support/run_suite.h"

START_TEST(json_of_any_bytes)
{
    static const struct {
        const char *value, *wanted;
    } cases[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c\n\x7f", "\"a\\\"b\\\\c\\u000a\\u007f\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff\xc3", "\"\\ufffd\\ufffd\""},
        {"a\xc2\x9b"
         "1m\xe2\x80\xae\xe2\x81\xa6\xd8\x9c",
         "\"a\\u009b1m\\u202e\\u2066\\u061c\""},                  // obeyed, not shown
        {"\xc0\x80", "\"\\ufffd\\ufffd\""},                       // overlong
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            // half a surrogate pair
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, // past the last code point
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        size_t size;
        struct base_json json = {.stream = open_memstream(&text, &size)};
        base_json_string(&json, NULL, cases[i].value);
        fclose(json.stream);
        ck_assert_str_eq(text, cases[i].wanted);
        free(text);
    }
}
END_TEST

START_TEST(json_nests)
{
    char *text = NULL;
    size_t size;
    struct base_json json = {.stream = open_memstream(&text, &size)};
    base_json_open(&json, NULL, '{');
    base_json_number(&json, "a", 1);
    base_json_open(&json, "b", '[');
    base_json_close(&json, ']');
    base_json_open(&json, "c", '{');
    base_json_bool(&json, "d", true);
    base_json_real(&json, "e", 0.5, 2);
    base_json_close(&json, '}');
    base_json_close(&json, '}');
    fclose(json.stream);
    ck_assert_str_eq(text, "{\"a\": 1, \"b\": [], \"c\": {\"d\": true, \"e\": 0.50}}");
    free(text);
}
END_TEST

START_TEST(plain_up_to_what_is_special)
{
    static const struct {
        const char *text, *taken;
        size_t wanted;
    } cases[] = {
        {"", "", 0},
        {"a b~", "", 4},
        {"ab\"c", "\"\\", 2},
        {"ab\"c", "\\", 4},
        {"a\x7f", "", 1},
        {"a\tb", "", 1},
        {"\xc3\xa4<", "<", 2},
        {"\xf0\x9f\x98\x80\xe2\x82\xac", "", 7},
        {"ab\xe2\x82", "", 2}, // ends in the middle
        {"\x80", "", 0},
        {"a\xc2\x9b", "", 1},             // C1
        {"a\xc2\xa0\xe2\x80\xae", "", 3}, // turned around
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_uint_eq(base_utf8_plain(cases[i].text, cases[i].taken), cases[i].wanted);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json");
    TCase *tests = tcase_create("json");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, json_of_any_bytes);
    tcase_add_test(tests, json_nests);
    tcase_add_test(tests, plain_up_to_what_is_special);
    return run_suite(suite);
}
