// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/names/expect.h"

#include <check.h>
#include <string.h>

void expect_name(const struct names *names, uint32_t node, const char *function, bool is_known)
{
    ck_assert_uint_eq(names_count(names, node), 1);
    const struct name *name = names_at(names, node, 0);
    ck_assert_str_eq(name->function, function);
    ck_assert_msg(name->is_known == is_known, "%s", function);
    ck_assert(!name->is_inlined);
    const struct name *first = names_by_id(names, name->id);
    ck_assert_str_eq(first->function, function);
    ck_assert_str_eq(first->module, name->module);
}

void expect_missing(const struct names *names, size_t count, const char *why)
{
    const struct names_missing *missing;
    size_t found = names_missing(names, &missing);
    ck_assert_uint_eq(found, count ? 1 : 0);
    if (!count)
        return;
    ck_assert_uint_eq(missing->node_count, count);
    ck_assert_msg(strstr(missing->why, why) != NULL, "%s", missing->why);
}
