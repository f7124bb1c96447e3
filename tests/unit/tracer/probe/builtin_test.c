// SPDX-License-Identifier: Apache-2.0
// Places with a meaning: what their values are in each of the functions that they stand for.
#include <string.h>

#include "bytecode/run.h"
#include "tests/support/run_suite.h"
#include "tracer/probe/script.h"

enum { CALLS_MAX = 16 };

// Writes down what is added to maps; every value that is looked up is 42, and memory is 0.
struct host {
    struct bytecode_host host;
    const struct probe_script *script;
    uint32_t count;
    struct call {
        uint64_t map, value, key; // the first word of the key
    } calls[CALLS_MAX];
};

static uint64_t answer(struct bytecode_host *base, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    struct host *host = (struct host *)(void *)base;
    if (helper == QUT_PROBE_LOOKUP)
        return 42;
    if (helper == QUT_PROBE_READ)
        memset((void *)(uintptr_t)a, 0, (size_t)(b + 7) / 8 * 8);
    if (helper != QUT_PROBE_AGGREGATE)
        return 0;
    ck_assert_uint_lt(host->count, CALLS_MAX);
    host->calls[host->count++] = (struct call){a, c, b ? *(const uint64_t *)(uintptr_t)b : 0};
    return 0;
}

// Of a call with (3, 1007, 1000), which returns 1002, at the time 77.
static void run(struct host *host, const struct probe_script *script, uint32_t program)
{
    const struct qut_probe_image image = qut_probe_parts(script->image);
    const uint64_t fields[QUT_PROBE_FIELD_END] = {3, 1007, 1000, 4, 5, 6, 1002, 2000000, 77, 11, 12};
    *host = (struct host){.host = {answer}, .script = script};
    bytecode_run(image.instructions + image.programs[program].first_instruction, fields, &host->host);
}

// The last one.
static const struct call *added_to(const struct host *host, const char *map)
{
    const struct call *found = NULL;
    for (uint32_t i = 0; i < host->count; i++)
        if (strcmp(host->script->maps.items[host->calls[i].map].name, map) == 0)
            found = &host->calls[i];
    return found;
}

START_TEST(places_with_a_meaning_have_values)
{
    struct probe_script script;
    struct host host;
    struct probe_diagnostic why;
    static const char text[] =
        "unlock /held > 1/ { @h = sum(held + address * 0) } alloc { @s[address] = sum(size) } lock { }";
    ck_assert_msg(probe_compile(text, strlen(text), &script, &why) == 0, "%s", why.text);
    unsigned unlocks = 0, allocs = 0;
    for (size_t i = 0; i < script.places.count; i++) {
        const struct probe_place *place = &script.places.items[i];
        run(&host, &script, place->program);
        const struct call *held = added_to(&host, "h"), *size = added_to(&host, "s");
        const bool is_return = place->kind == QUT_PROBE_RETURN;
        // In the host's memory every lock was taken at 42, and every size is kept as 42; it is 77 now.
        if (held)
            ck_assert_uint_eq(held->value, 77 - 42);
        if (size)
            ck_assert_uint_eq(size->value, 42 - 1);
        if (size)
            ck_assert_uint_eq(size->key, 1002);
        unlocks += held && !is_return && strcmp(place->pattern, "libc.so*!pthread_mutex_unlock") == 0;
        allocs += size && is_return && strcmp(place->pattern, "libc.so*!malloc") == 0;
        if (!is_return && strcmp(place->pattern, "libc.so*!calloc") == 0)
            ck_assert_uint_eq(added_to(&host, "__alloc_size")->value, 3 * 1007 + 1);
    }
    ck_assert_uint_eq(unlocks, 1);
    ck_assert_uint_eq(allocs, 1);
    // What a lock is taken at is forgotten behind all that the script asks.
    run(&host, &script, script.places.items[script.places.count - 1].program);
    ck_assert_ptr_nonnull(added_to(&host, "__lock_since"));
    ck_assert_uint_eq(added_to(&host, "__lock_since")->value, 0);
    for (size_t i = 0; i < script.maps.count; i++)
        ck_assert_int_eq(probe_map_is_hidden(&script.maps.items[i]), script.maps.items[i].name[1] == '_');
    probe_script_free(&script);
}
END_TEST

START_TEST(calls_have_callers)
{
    static const struct {
        const char *pattern, *caller;
        enum qut_probe_kind kind;
        uint32_t program;
    } wanted[] = {{"libc.so*!m*", "x!main", QUT_PROBE_ENTRY, 0},
                  {"f", "A::g(int, int)", QUT_PROBE_ENTRY, 1},
                  {"h", "x!main", QUT_PROBE_ENTRY, 0},
                  {"f", "g", QUT_PROBE_RETURN, 2},
                  {"f", NULL, QUT_PROBE_ENTRY, 3}};
    struct probe_script script;
    static const char text[] = "call:libc.so*!m* in x!main, call:f in  \"A::g(int, int)\" , call:h in x!main,"
                               "return:f in g, entry:f /tid/ { @ = count() }";
    struct probe_diagnostic why;
    ck_assert_msg(probe_compile(text, strlen(text), &script, &why) == 0, "%s", why.text);
    ck_assert_uint_eq(script.places.count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < script.places.count; i++) {
        const struct probe_place *place = &script.places.items[i];
        ck_assert_str_eq(place->pattern, wanted[i].pattern);
        ck_assert_pstr_eq(place->caller, wanted[i].caller);
        ck_assert_int_eq(place->kind, wanted[i].kind);
        ck_assert_uint_eq(place->program, wanted[i].program);
    }
    ck_assert_uint_eq(qut_probe_parts(script.image).header->program_count, 4);
    probe_script_free(&script);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("builtin");
    TCase *all = tcase_create("all");
    tcase_add_test(all, places_with_a_meaning_have_values);
    tcase_add_test(all, calls_have_callers);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
