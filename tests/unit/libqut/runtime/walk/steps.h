// SPDX-License-Identifier: Apache-2.0
// What the tests of the walk's steps say in each case.
#ifndef TESTS_UNIT_LIBQUT_RUNTIME_WALK_STEPS_H
#define TESTS_UNIT_LIBQUT_RUNTIME_WALK_STEPS_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"
#include "tests/unit/libqut/runtime/walk/world.h"

enum { FRAMES = 64 };

static struct world world;
static struct qut_frame frames[FRAMES];
static struct qut_end end;

__attribute__((unused)) static void begin_on(const struct arch *arch, uint64_t offset, unsigned sp_index)
{
    world_init(&world, arch);
    world.regs.pc = WORLD_TEXT + offset;
    world_set(&world, arch->sp_reg, world_stack_address(&world, sp_index));
}

__attribute__((unused)) static size_t go(enum arch_pc_kind kind)
{
    world_seal(&world);
    return world_walk(&world, kind, frames, FRAMES, &end);
}

__attribute__((unused)) static void row(uint32_t offset, struct qut_rule rule)
{
    world_rule(&world, offset, &rule);
}

__attribute__((unused)) static struct qut_rule hole(void)
{
    return (struct qut_rule){.kind = QUT_RULE_HOLE, .dex_pc_reg = QUT_NO_REGISTER};
}

__attribute__((unused)) static struct qut_rule outermost(void)
{
    struct qut_rule rule = world_frame(&world, 1);
    rule.ra = (struct qut_reg_rule){.how = QUT_REG_UNDEFINED};
    return rule;
}

__attribute__((unused)) static struct qut_rule refused(enum qut_refusal reason)
{
    return (struct qut_rule){.kind = QUT_RULE_REFUSED, .reason = (uint8_t)reason, .dex_pc_reg = QUT_NO_REGISTER};
}

__attribute__((unused)) static void teardown(void)
{
    world_free(&world);
}

static inline int run_steps(const char *name, const TTest **tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *tcase = tcase_create(name);
    tcase_add_checked_fixture(tcase, NULL, teardown);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}

#endif
