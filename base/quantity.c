// SPDX-License-Identifier: Apache-2.0
#include "base/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct base_quantity base_quantity_count(uint64_t count)
{
    struct base_quantity quantity;
    char digits[24];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count), used = 0;
    for (size_t i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            quantity.text[used++] = ',';
        quantity.text[used++] = digits[i];
    }
    quantity.text[used] = 0;
    return quantity;
}

// Three digits that count, of an amount in units that are 1000 of the one before.
static struct base_quantity in_units(uint64_t amount, const char *const *units, unsigned last)
{
    struct base_quantity quantity;
    if (amount < 1000) {
        snprintf(quantity.text, sizeof quantity.text, "%" PRIu64 " %s", amount, units[0]);
        return quantity;
    }
    double value = (double)amount / 1000;
    unsigned unit = 1;
    for (; value >= 999.5 && unit < last; unit++)
        value /= 1000;
    if (value >= 999.5)
        snprintf(quantity.text, sizeof quantity.text, "%.26s %s", base_quantity_count((uint64_t)(value + 0.5)).text,
                 units[unit]);
    else
        snprintf(quantity.text, sizeof quantity.text, "%.*f %s",
                 value < 9.995   ? 2
                 : value < 99.95 ? 1
                                 : 0,
                 value, units[unit]);
    return quantity;
}

struct base_quantity base_quantity_bytes(uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    return in_units(bytes, units, 4);
}

struct base_quantity base_quantity_time(uint64_t ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return in_units(ns, units, 3);
}
