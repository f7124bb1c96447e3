// SPDX-License-Identifier: Apache-2.0
// Stacks on standard output.
#ifndef TRACER_STACK_PRINT_H
#define TRACER_STACK_PRINT_H

#include "tracer/stack/frame_text.h"
#include "tracer/stack/groups.h"

struct stack_report {
    const struct stack_options *options;
    const struct stack_take *take;
    const struct stack_groups *groups;
    struct stack_modules *modules;
};

void stack_print_text(const struct stack_report *report);
void stack_print_json(const struct stack_report *report);

#endif
