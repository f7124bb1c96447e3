// SPDX-License-Identifier: Apache-2.0
// A library whose functions have arguments of all kinds. It calls something that writes down registers as if that were
// each of them, so that its compiler says where arguments are, and knows what their values are.
#ifndef TESTS_UNIT_TRACER_PROTOTYPES_SUBJECT_H
#define TESTS_UNIT_TRACER_PROTOTYPES_SUBJECT_H

#include <stdint.h>

struct subject_fields {
    uint64_t arguments[6], result;
};

struct subject_case {
    const char *function;
    void *entry;
    void (*call)(struct subject_fields *fields);
    const char *prototype;
    struct subject_value {
        const char *text; // NULL: the last one
        int64_t value;
    } values[24];
};

struct subject_table {
    const struct subject_case *cases;
    unsigned count;
};

#endif
