// SPDX-License-Identifier: Apache-2.0
// Names of ART's code that has no debug info, asked for later than it ran: told where no collection of code can have
// put other code in its place. The runtime's records, and what is made of them, are this test's.
#include "tracer/managed/art_at.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"
#include "libqut/target/machine.h"
#include "tests/support/run_suite.h"

enum { CODE = 0x40000000, CODE_BYTES = 0x40 };

static struct art_jit_collections records;
static bool are_known;
static bool begins_meanwhile; // a collection, while the code is looked at
static struct managed_art_looks looks;

bool target_art_collections(struct qut_target *target, uint64_t address, struct art_jit_collections *collections)
{
    (void)target;
    (void)address;
    *collections = records;
    return are_known;
}

bool target_art_code_at(struct qut_target *target, uint64_t address, struct target_art_code *code)
{
    (void)target;
    records.begun += begins_meanwhile;
    *code = (struct target_art_code){.start = CODE, .end = CODE + CODE_BYTES, .dex_pc = 0x1000};
    return address - CODE < CODE_BYTES;
}

bool qut_target_module(struct qut_target *target, uint64_t pc, struct qut_module_info *info)
{
    (void)target;
    (void)pc;
    (void)info;
    return false;
}

bool managed_dex_at(struct managed_dex *dex, const struct qut_module_info *module, uint64_t pc,
                    struct managed_dex_place *place, struct base_error *error)
{
    (void)dex;
    (void)module;
    (void)error;
    *place = (struct managed_dex_place){.method = strdup("W.one")};
    return pc == 0x1000;
}

static void set_up(void)
{
    records = (struct art_jit_collections){0};
    are_known = true;
    begins_meanwhile = false;
    looks = (struct managed_art_looks){0};
}

static bool is_told(uint64_t address, uint64_t since_ns)
{
    struct managed_dex dex = {0};
    struct managed_art_place place;
    if (!managed_art_at_since(&looks, &dex, address, since_ns, &place))
        return false;
    ck_assert_str_eq(place.method, "W.one");
    ck_assert(place.start == CODE && place.end == CODE + CODE_BYTES);
    free(place.method);
    return true;
}

START_TEST(nothing_was_ever_given_back)
{
    ck_assert(is_told(CODE, 0));
    ck_assert(is_told(CODE + CODE_BYTES - 1, base_clock_now_ns()));
    ck_assert(!is_told(CODE + CODE_BYTES, 0));
}
END_TEST

START_TEST(what_was_before_the_first_look)
{
    records.begun = 3;
    ck_assert(!is_told(CODE, 0));
    ck_assert(is_told(CODE, base_clock_now_ns()));
    ck_assert(!is_told(CODE, 0));
}
END_TEST

START_TEST(looked_at_in_time)
{
    records.begun = 3;
    managed_art_look(&looks, NULL);
    const uint64_t looked_ns = base_clock_now_ns();
    ck_assert(is_told(CODE, looked_ns));
}
END_TEST

START_TEST(a_collection_between)
{
    records.begun = 3;
    managed_art_look(&looks, NULL);
    const uint64_t before_ns = base_clock_now_ns();
    records.begun++;
    ck_assert(!is_told(CODE, before_ns));
    ck_assert(is_told(CODE, base_clock_now_ns()));
    ck_assert(!is_told(CODE, before_ns));
}
END_TEST

// Code goes while one is under way, not only when it begins.
START_TEST(a_collection_under_way)
{
    records = (struct art_jit_collections){.begun = 1, .is_under_way = true};
    managed_art_look(&looks, NULL);
    const uint64_t meanwhile_ns = base_clock_now_ns();
    ck_assert(!is_told(CODE, meanwhile_ns));
    records.is_under_way = false;
    ck_assert(!is_told(CODE, meanwhile_ns));
    ck_assert(is_told(CODE, base_clock_now_ns()));
}
END_TEST

START_TEST(a_collection_while_it_is_looked_at)
{
    begins_meanwhile = true;
    ck_assert(!is_told(CODE, base_clock_now_ns()));
    begins_meanwhile = false;
    ck_assert(is_told(CODE, base_clock_now_ns()));
}
END_TEST

START_TEST(records_that_are_not_known)
{
    are_known = false;
    ck_assert(!is_told(CODE, UINT64_MAX));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("art_at");
    TCase *tcase = tcase_create("art_at");
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, nothing_was_ever_given_back);
    tcase_add_test(tcase, what_was_before_the_first_look);
    tcase_add_test(tcase, looked_at_in_time);
    tcase_add_test(tcase, a_collection_between);
    tcase_add_test(tcase, a_collection_under_way);
    tcase_add_test(tcase, a_collection_while_it_is_looked_at);
    tcase_add_test(tcase, records_that_are_not_known);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
