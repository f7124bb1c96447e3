// SPDX-License-Identifier: Apache-2.0
// What a table's file is called in a directory of tables: "x86_64-9f3c....qut", the architecture and the identity of
// the file it was made for.
#ifndef FORMATS_QUT_TABLE_NAME_INLINE_H
#define FORMATS_QUT_TABLE_NAME_INLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/qut_table.h"

enum {
    QUT_IDENTITY_MAX = 32,   // what is longer counts by its first bytes
    QUT_TABLE_NAME_MAX = 96, // with the final NUL
};
static_assert(QUT_IDENTITY_MAX == sizeof(((struct qut_table_header *)0)->identity), "one bound for names and headers");

// "9f3c..." of size bytes: 2 * size digits and NUL. Signal-safe.
static inline void qut_hex(const uint8_t *bytes, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

// identity_size is at most QUT_IDENTITY_MAX, arch_name one of struct arch. Signal-safe.
static inline void qut_table_name(const char *arch_name, const uint8_t *identity, size_t identity_size,
                                  char name[QUT_TABLE_NAME_MAX])
{
    size_t length = strnlen(arch_name, QUT_TABLE_NAME_MAX - 2 * QUT_IDENTITY_MAX - sizeof "-.qut");
    memcpy(name, arch_name, length);
    name[length++] = '-';
    qut_hex(identity, identity_size, name + length);
    memcpy(name + length + 2 * identity_size, ".qut", sizeof ".qut");
}

#endif
