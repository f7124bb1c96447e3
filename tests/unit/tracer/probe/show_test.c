// SPDX-License-Identifier: Apache-2.0
// What programs have gathered, as people and other programs get it.
#include "tracer/probe/show.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"

static struct probe_script script;
static struct bytecode_maps maps;

static void make(void)
{
    static const char text[] =
        "entry:f { @calls[str(arg0, 16), tid] = count(); @mean[tid] = avg(arg1); @sizes = hist(arg2);"
        " @steps[pid] = lhist(arg3, 0, 30, 10); @low = min(arg4);"
        " printf(\"%-4d|%5x|%s%%|%c\\n\", arg0, arg1, str(arg2, 8), arg3); printf(\"plain\") }";
    struct probe_diagnostic why;
    ck_assert_msg(probe_compile(text, strlen(text), &script, &why) == 0, "%s", why.text);
    const struct qut_probe_image image = qut_probe_parts(script.image);
    bytecode_maps_lay_out(&maps, &image);
    maps.memory = calloc(maps.words, sizeof *maps.memory);
    ck_assert_ptr_nonnull(maps.memory);
}

static void end(void)
{
    free(maps.memory);
    probe_script_free(&script);
}

static void add_call(const char *name, uint64_t tid, unsigned times)
{
    uint64_t key[3] = {tid};
    strncpy((char *)&key[1], name, 15);
    for (unsigned i = 0; i < times; i++)
        bytecode_maps_aggregate(&maps, 0, key, 1);
}

static void check_shown(uint32_t map, const char *expected)
{
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    ck_assert_int_eq(probe_show_map(out, &script, &maps, map, NULL), 0);
    fclose(out);
    ck_assert_str_eq(shown, expected);
    free(shown);
}

START_TEST(maps_are_sorted)
{
    check_shown(0, "");
    add_call("open\033[2J", 7, 1);
    add_call("read", 9, 3);
    add_call("read", 8, 3);
    add_call("write", 7, 2);
    check_shown(0, "@calls[open?[2J, 7]: 1\n@calls[write, 7]: 2\n@calls[read, 8]: 3\n@calls[read, 9]: 3\n");
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){5}, 1);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){5}, (uint64_t)-4);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){(uint64_t)-6}, 10);
    check_shown(1, "@mean[5]: -1.50\n@mean[-6]: 10.00\n");
    bytecode_maps_aggregate(&maps, 4, NULL, (uint64_t)-70);
    check_shown(4, "@low: -70\n");
}
END_TEST

START_TEST(histograms_have_bars)
{
    static const int64_t values[] = {-5, 0, 1, 5, 6, 6, 7};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        bytecode_maps_aggregate(&maps, 2, NULL, (uint64_t)values[i]);
    check_shown(2, "@sizes:\n"
                   "(..., 0)                                    1 |@@@@@@@@@@                              |\n"
                   "[0]                                         1 |@@@@@@@@@@                              |\n"
                   "[1]                                         1 |@@@@@@@@@@                              |\n"
                   "[2, 4)                                      0 |                                        |\n"
                   "[4, 8)                                      4 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n");
    bytecode_maps_aggregate(&maps, 3, (const uint64_t[]){1}, 29);
    bytecode_maps_aggregate(&maps, 3, (const uint64_t[]){1}, 30);
    check_shown(3, "@steps[1]:\n"
                   "[20, 30)                                    1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n"
                   "[30, ...)                                   1 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@|\n");
}
END_TEST

START_TEST(what_had_no_room_is_said)
{
    for (uint64_t i = 0; i < 2 * BYTECODE_MAP_SLOTS; i++)
        bytecode_maps_aggregate(&maps, 1, &i, 1);
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    ck_assert_int_eq(probe_show_map(out, &script, &maps, 1, NULL), 0);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(shown, "more had no room: too many keys\n"));
    free(shown);
}
END_TEST

// Two slots with the same key, as two threads that come at once may make: written by hand, behind each other.
START_TEST(keys_are_shown_once)
{
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){5}, 4);
    const struct bytecode_map *map = &maps.maps[1];
    uint64_t *slots = maps.memory + map->at + 1;
    uint32_t found = 0;
    while (slots[(size_t)found * map->slot_words] == 0)
        found++;
    const uint32_t other = (found + 1) % map->slot_count;
    memcpy(slots + (size_t)other * map->slot_words, slots + (size_t)found * map->slot_words,
           map->slot_words * sizeof *slots);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){5}, 10);
    check_shown(1, "@mean[5]: 6.00\n");
}
END_TEST

START_TEST(other_programs_get_json)
{
    add_call("open", 7, 2);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){5}, 3);
    bytecode_maps_aggregate(&maps, 2, NULL, (uint64_t)-1);
    bytecode_maps_aggregate(&maps, 2, NULL, 9);
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    struct base_json json = {.stream = out};
    base_json_open(&json, NULL, '[');
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(probe_show_map_json(&json, &script, &maps, i, NULL), 0);
    base_json_close(&json, ']');
    fclose(out);
    ck_assert_str_eq(
        shown,
        "[{\"map\": \"calls\", \"kind\": \"count\", \"lost\": 0, \"rows\": [{\"key\": [\"open\", 7], \"updates\": 2, "
        "\"value\": 2}]}, "
        "{\"map\": \"mean\", \"kind\": \"avg\", \"lost\": 0, \"rows\": [{\"key\": [5], \"updates\": 1, \"value\": "
        "3}]}, "
        "{\"map\": \"sizes\", \"kind\": \"hist\", \"lost\": 0, \"rows\": [{\"key\": [], \"updates\": 2, \"cells\": "
        "[{\"from\": null, \"count\": 1}, {\"from\": 8, \"count\": 1}], \"sum\": 8}]}]");
    free(shown);
}
END_TEST

START_TEST(records_are_formatted)
{
    uint64_t words[4] = {'\033', 0, 255, 12}; // the last part first
    memcpy(&words[1], "text\n", 5);
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    probe_show_record(out, &script, 0, words, NULL);
    probe_show_record(out, &script, 1, words, NULL);
    fclose(out);
    ck_assert_str_eq(shown, "12  |   ff|text?%|?\nplain");
    free(shown);
}
END_TEST

// One stack is known, of number 7.
static size_t find_one(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    static const char *const known[] = {"inner (libx.so)", "main (x)"};
    (void)stacks;
    *frames = known;
    return number == 7 ? 2 : 0;
}

START_TEST(stacks_have_their_frames)
{
    static const char text[] = "entry:f { @[stack(), tid] = count(); @last[tid] = stack(); printf(\"<%s>\", stack()) }";
    struct probe_stacks known = {find_one};
    struct probe_diagnostic why;
    char *shown;
    size_t size;
    end();
    ck_assert_msg(probe_compile(text, strlen(text), &script, &why) == 0, "%s", why.text);
    const struct qut_probe_image image = qut_probe_parts(script.image);
    bytecode_maps_lay_out(&maps, &image);
    maps.memory = calloc(maps.words, sizeof *maps.memory);
    bytecode_maps_aggregate(&maps, 0, (const uint64_t[]){1, 7}, 3);
    bytecode_maps_aggregate(&maps, 0, (const uint64_t[]){1, 8}, 1);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){5}, 7);
    FILE *out = open_memstream(&shown, &size);
    ck_assert_int_eq(probe_show_map(out, &script, &maps, 0, &known), 0);
    ck_assert_int_eq(probe_show_map(out, &script, &maps, 1, &known), 0);
    probe_show_record(out, &script, 0, (const uint64_t[]){7}, &known);
    probe_show_record(out, &script, 0, (const uint64_t[]){7}, NULL);
    probe_show_record(out, &script, 0, (const uint64_t[]){0}, &known);
    probe_show_stack(out, &known, 7);
    probe_show_stack(out, &known, 8);
    struct base_json json = {.stream = out};
    ck_assert_int_eq(probe_show_map_json(&json, &script, &maps, 1, &known), 0);
    fclose(out);
    ck_assert_str_eq(shown,
                     "@[stack 0000000000000008, 1]: 1\n"
                     "@[\n    inner (libx.so)\n    main (x)\n, 1]: 3\n"
                     "@last[5]: \n    inner (libx.so)\n    main (x)\n"
                     "<\n    inner (libx.so)\n    main (x)\n><stack 0000000000000007>"
                     "<[no stack could be taken]>"
                     "stack 0000000000000007:\n    inner (libx.so)\n    main (x)\n"
                     "stack 0000000000000008: its frames had no room\n"
                     "{\"map\": \"last\", \"kind\": \"value\", \"lost\": 0, \"rows\": [{\"key\": [5], \"updates\": 1, "
                     "\"value\": [\"inner (libx.so)\", \"main (x)\"]}]}");
    free(shown);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("show");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, make, end);
    tcase_add_test(all, maps_are_sorted);
    tcase_add_test(all, histograms_have_bars);
    tcase_add_test(all, what_had_no_room_is_said);
    tcase_add_test(all, keys_are_shown_once);
    tcase_add_test(all, other_programs_get_json);
    tcase_add_test(all, records_are_formatted);
    tcase_add_test(all, stacks_have_their_frames);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
