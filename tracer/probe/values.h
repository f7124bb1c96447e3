// SPDX-License-Identifier: Apache-2.0
// What expressions are made of.
#ifndef TRACER_PROBE_VALUES_H
#define TRACER_PROBE_VALUES_H

#include "tracer/probe/inside.h"

// arguments.c: `args`, or what follows `retval`, which the token is behind.
bool probe_argument(struct probe_compiler *c, struct probe_operand *o, bool is_result);
bool probe_is_result_path(const struct probe_compiler *c);

const char *probe_field_name(uint32_t field); // of enum qut_probe_field

bool probe_unary(struct probe_compiler *c, struct probe_operand *o);
// The comparison of texts, one of which at most was in quotes, becomes PROBE_TRUTH. Their words are given back.
bool probe_compare_texts(struct probe_compiler *c, struct probe_operand *a, struct probe_operand *b, const char *sign);
bool probe_not(struct probe_compiler *c, struct probe_operand *o);
bool probe_negate(struct probe_compiler *c, struct probe_operand *o, bool is_complement);

#endif
