// SPDX-License-Identifier: Apache-2.0
// Numbers of functions that were met (libqut/functions): each has one, whoever asks, and its trace is told its name
// once.
#include <string.h>

#include "libqut/functions/functions.h"
#include "libqut/functions/text.h"
#include "tests/support/tap.h"

enum { NUMBER_END = 300, NAMES = 200, LINE_BITS = 20 };
#define BASE ((uint64_t)0x5151 << 48)

struct function {
    struct functions_item item;
    int what;
    char name[16];
};

static void texts_of(const void *item, const char **name, const char **file)
{
    *name = ((const struct function *)item)->name;
    *file = "/some/file";
}

static struct functions_table table = {
    .item_bytes = sizeof(struct function),
    .number_end = NUMBER_END,
    .base = BASE,
    .line_bits = LINE_BITS,
    .texts = texts_of,
};

static bool is_it(const void *item, void *context)
{
    return ((const struct function *)item)->what == *(const int *)context;
}

static void fill(void *item, const void *context)
{
    struct function *function = item;
    function->what = *(const int *)context;
    snprintf(function->name, sizeof function->name, "f%d", function->what);
}

// Few keys: functions have chains.
static struct functions_wanted wanted_of(int *what)
{
    return (struct functions_wanted){.key = (uint64_t)*what / 8, .is_it = is_it, .context = what};
}

static uint32_t find(int what)
{
    struct functions_wanted wanted = wanted_of(&what);
    return functions_find(&table, &wanted);
}

static uint32_t number_of(int what)
{
    struct functions_wanted wanted = wanted_of(&what);
    uint32_t found = functions_find(&table, &wanted);
    return found ? found : functions_add(&table, &wanted, fill);
}

static void begin(void)
{
    functions_table_forget(&table);
    table.last = 0;
    CHECK(functions_table_prepare(&table), "no memory");
}

TEST(one_number_for_each_function)
{
    begin();
    CHECK(find(7) == 0, "found before it was met");
    for (int what = 0; what < NAMES; what++)
        CHECK(number_of(what) == (uint32_t)what + 1, "%d", what);
    for (int what = 0; what < NAMES; what++)
        CHECK(find(what) == (uint32_t)what + 1, "%d: %u", what, find(what));
    CHECK(find(NAMES) == 0, "found what was not met");
}

TEST(a_full_table_knows_what_it_has)
{
    begin();
    int what = 0;
    while (number_of(what))
        what++;
    CHECK(what == NUMBER_END - 1, "%d have numbers", what);
    CHECK(number_of(what + 1) == 0, "another one has a number");
    CHECK(number_of(3) == 4, "%u", number_of(3));
}

TEST(who_was_quicker_is_found)
{
    begin();
    int what = 5, other = 6;
    struct functions_wanted late = wanted_of(&what);
    CHECK(functions_find(&table, &late) == 0, "found");
    uint32_t first = number_of(what); // between the other's look and its addition
    number_of(other);
    CHECK(functions_add(&table, &late, fill) == first, "a second number");
}

struct told {
    int count;
    uint64_t start, bytes;
    char text[FUNCTIONS_TEXT_BYTES];
};

static void take(void *context, uint64_t start, uint64_t bytes, const char *text)
{
    struct told *told = context;
    told->count++;
    told->start = start;
    told->bytes = bytes;
    snprintf(told->text, sizeof told->text, "%s", text);
}

TEST(a_trace_is_told_once)
{
    struct told told = {0};
    begin();
    uint32_t number = number_of(9);
    functions_tell_met(&table, 1, take, &told);
    CHECK(told.count == 0, "told what was not met");
    functions_meet(&table, number, 1);
    functions_meet(&table, number, 1);
    functions_tell_met(&table, 1, take, &told);
    functions_meet(&table, number, 1);
    functions_tell_met(&table, 1, take, &told);
    CHECK(told.count == 1, "told %d times", told.count);
    CHECK(told.start == (BASE | (uint64_t)number << LINE_BITS) && told.bytes == (uint64_t)1 << LINE_BITS, "%llx",
          (unsigned long long)told.start);
    CHECK(strcmp(told.text, "f9\n/some/file") == 0, "%s", told.text);
    functions_meet(&table, number, 2); // another trace
    functions_tell_met(&table, 2, take, &told);
    CHECK(told.count == 2, "the second trace was told %d", told.count - 1);
}

TEST(a_child_is_told_anew)
{
    struct told told = {0};
    begin();
    uint32_t a = number_of(1), b = number_of(2);
    functions_meet(&table, a, 1);
    functions_table_after_fork(&table); // the list is gone, whatever it had
    functions_tell_met(&table, 1, take, &told);
    CHECK(told.count == 0, "%d", told.count);
    functions_meet(&table, a, 1);
    functions_meet(&table, b, 1);
    functions_tell_met(&table, 1, take, &told);
    CHECK(told.count == 2, "%d", told.count);
}

TEST(a_room_is_one_threads)
{
    struct functions_rooms rooms = {.room_bytes = 4096};
    void *taken[FUNCTIONS_ROOMS];
    CHECK(functions_rooms_prepare(&rooms), "no memory");
    for (uint32_t i = 0; i < FUNCTIONS_ROOMS; i++) {
        taken[i] = functions_room_take(&rooms, 1000);
        CHECK(taken[i], "%u", i);
        for (uint32_t j = 0; j < i; j++)
            CHECK(taken[i] != taken[j], "%u and %u are one", i, j);
    }
    CHECK(!functions_room_take(&rooms, 1000), "one more than there are");
    functions_room_give(taken[5]);
    CHECK(functions_room_take(&rooms, 77) == taken[5], "not the one that is free");
    functions_rooms_after_fork(&rooms);
    CHECK(functions_room_take(&rooms, 1000) == taken[0], "not the one that it had before");
    functions_rooms_forget(&rooms);
}

TEST(a_text_is_cut_where_it_says_least)
{
    char text[24];
    functions_text("name", "/a/file.js", text, sizeof text);
    CHECK(strcmp(text, "name\n/a/file.js") == 0, "%s", text);
    functions_text("name", "/a/very/long/path/file.js", text, sizeof text);
    CHECK(strcmp(text, "name\nfile.js") == 0, "%s", text);
    functions_text("two\nlines", "/a/the_very_longest_of_files.js", text, sizeof text);
    CHECK(strcmp(text, "two lines\n") == 0, "%s", text);
    functions_text("a_name_that_is_very_long_indeed", "", text, sizeof text);
    CHECK(strcmp(text, "a_name_that_\n") == 0, "%s", text);
}

int main(void)
{
    RUN(one_number_for_each_function);
    RUN(a_full_table_knows_what_it_has);
    RUN(who_was_quicker_is_found);
    RUN(a_trace_is_told_once);
    RUN(a_child_is_told_anew);
    RUN(a_room_is_one_threads);
    RUN(a_text_is_cut_where_it_says_least);
    return tap_finish();
}
