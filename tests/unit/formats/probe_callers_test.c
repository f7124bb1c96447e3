// SPDX-License-Identifier: Apache-2.0
// Which programs run in calls that return to an address: of tables that are right, and of any bytes.
#include <stdlib.h>
#include <string.h>

#include "formats/qut_probe_live.h"
#include "tests/support/run_suite.h"

static struct qut_probe_callers *callers;

static void begin(void)
{
    callers = calloc(1, sizeof *callers);
    ck_assert_ptr_nonnull(callers);
}

static void end(void)
{
    free(callers);
}

static void add(uint32_t module, uint32_t first, uint32_t count, uint64_t from, uint64_t to)
{
    callers->modules[module] =
        (struct qut_probe_caller_module){.begin = from, .end = to, .first = first, .count = count};
    callers->module_count = module + 1;
}

START_TEST(who_calls_is_before_the_address)
{
    static const struct {
        uint64_t pc;
        uint32_t programs;
    } wanted[] = {
        {0, 0},      {1, 0},      {0x1000, 0}, // behind the last instruction of what is before
        {0x1001, 1}, {0x1010, 1},              // a call may be the last instruction
        {0x1011, 0}, {0x1020, 0}, {0x1021, 6}, {0x1030, 6},  {0x1031, 8}, {0x1040, 8},
        {0x1041, 0}, {0x2000, 0}, {0x3000, 0}, {0x3005, 16}, {0x3011, 0}, {UINT64_MAX, 0},
    };
    callers->items[2] = (struct qut_probe_caller){0x1000, 0x10, 1};
    callers->items[3] = (struct qut_probe_caller){0x1020, 0x10, 6};
    callers->items[4] = (struct qut_probe_caller){0x1030, 0x10, 8};
    callers->items[0] = (struct qut_probe_caller){0x3000, 0x10, 16};
    add(0, 2, 3, 0x1000, 0x1040);
    add(1, 0, 1, 0x3000, 0x3010);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        ck_assert_msg(qut_probe_callers_programs(callers, wanted[i].pc) == wanted[i].programs, "%#llx",
                      (unsigned long long)wanted[i].pc);
    callers->modules[0].end = 0; // it is gone
    ck_assert_uint_eq(qut_probe_callers_programs(callers, 0x1005), 0);
    ck_assert_uint_eq(qut_probe_callers_programs(callers, 0x3005), 16);
}
END_TEST

static uint32_t next(uint32_t *lot)
{
    *lot = *lot * 1664525 + 1013904223;
    return *lot;
}

// Another side may write anything at any time: what is read is within the table.
START_TEST(any_bytes_are_borne)
{
    uint32_t lot = 1;
    unsigned found = 0;
    for (unsigned round = 0; round < 300; round++) {
        for (uint32_t i = 0; i < QUT_PROBE_LIVE_CALLER_MODULES_MAX; i++) {
            const uint32_t bits = i & 1 ? UINT32_MAX : 0x1ffff; // half of them near the bounds
            const uint64_t module_end = i % 3 ? UINT64_MAX : next(&lot);
            const uint32_t start = next(&lot) & 0xff, count = next(&lot) & bits;
            add(i, next(&lot) & bits, count, start, module_end);
        }
        callers->module_count = round & 1 ? UINT32_MAX : QUT_PROBE_LIVE_CALLER_MODULES_MAX;
        for (size_t i = 0; i < QUT_PROBE_LIVE_CALLERS_MAX; i += 7)
            callers->items[i] = (struct qut_probe_caller){next(&lot), UINT32_MAX, 1};
        for (unsigned i = 0; i < 100; i++)
            found += qut_probe_callers_programs(callers, (uint64_t)next(&lot) << (i & 31)) != 0;
    }
    ck_assert_uint_gt(found, 0);
    for (uint32_t i = 0; i < QUT_PROBE_LIVE_CALLER_MODULES_MAX; i++)
        add(i, QUT_PROBE_LIVE_CALLERS_MAX - 1, 2, 0, UINT64_MAX); // one too many
    ck_assert_uint_eq(qut_probe_callers_programs(callers, 5), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("probe_callers");
    TCase *all = tcase_create("all");
    tcase_add_checked_fixture(all, begin, end);
    tcase_add_test(all, who_calls_is_before_the_address);
    tcase_add_test(all, any_bytes_are_borne);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
