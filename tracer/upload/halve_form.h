// SPDX-License-Identifier: Apache-2.0
// What halving needs to know of a form's messages: where the samples are, and what points to what.
#ifndef TRACER_UPLOAD_HALVE_FORM_H
#define TRACER_UPLOAD_HALVE_FORM_H

#include <stdbool.h>
#include <stddef.h>

enum { HALVE_LEVELS = 4, HALVE_TABLES = 8 };

struct halve_link {
    unsigned field;
    unsigned table;                 // 0: it is a message
    const struct halve_link *links; // of that
};

struct halve_table {
    unsigned table; // the field of its entries
    bool is_keyed;  // entries say in their field 1 what they are called; else it is their place, and 0 stands for none
    const struct halve_link *links;
};

struct halve_form {
    const char *refusal;          // of bytes that are none
    unsigned inner[HALVE_LEVELS]; // the field, level by level, in which samples are in the end
    unsigned dictionary;          // the request's field that holds the tables; 0: they are the profile's own
    unsigned profile_id;          // the profile's field with its id; 0: it has none
    unsigned holder_id;           // the same of what holds the profile
    const struct halve_link *profile_links;
    struct halve_table
        tables[HALVE_TABLES]; // in an order in which nothing points to what comes before it; table 0: end
};

extern const struct halve_form halve_otlp, halve_push;

#endif
