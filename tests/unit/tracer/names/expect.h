// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_TRACER_NAMES_EXPECT_H
#define TESTS_UNIT_TRACER_NAMES_EXPECT_H

#include "tracer/names/names.h"

// That a node has one function, with that name.
void expect_name(const struct names *names, uint32_t node, const char *function, bool is_known);

// That so many nodes, all of one module, have no names; 0: that all have. `why`: a part of what is said.
void expect_missing(const struct names *names, size_t count, const char *why);

#endif
