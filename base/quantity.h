// SPDX-License-Identifier: Apache-2.0
// Amounts as people read them: "1.23 ms", "3.4 MB", "12,345". JSON has plain numbers instead, with the unit in the key.
#ifndef BASE_QUANTITY_H
#define BASE_QUANTITY_H

#include <stdint.h>

struct base_quantity {
    char text[32];
};

// By value, so that several fit one printf: base_quantity_time(ns).text lives until the end of the full expression.
struct base_quantity base_quantity_count(uint64_t count); // thousands are grouped
struct base_quantity base_quantity_bytes(uint64_t bytes); // in powers of 1000
struct base_quantity base_quantity_time(uint64_t ns); // from "850 ns" to "12.3 s"; beyond that whole seconds, grouped

#endif
