// SPDX-License-Identifier: Apache-2.0
// Tables that come from elsewhere (a cache directory, a compiler) and are kept in pages of their own.
#ifndef QUT_RUNTIME_TABLE_STORE_H
#define QUT_RUNTIME_TABLE_STORE_H

#include "libqut/arch/arch.h"
#include "libqut/runtime/table.h"

struct runtime_stored_table {
    void *bytes; // whole pages: NULL where there is none
    size_t size;
    struct qut_table table; // points into bytes
};

// The table of that identity in a directory of tables; kind: QUT_TABLE_BUILD_ID or QUT_TABLE_OAT_IDENTITY. 0; or -1,
// *out all zero: there is none, it is unsound, or it was made for another file or architecture than its name says.
// Blocks, not signal-safe, any thread.
int runtime_table_store_read(const char *directory, const struct arch *arch, enum qut_table_flag kind,
                             const uint8_t *identity, uint32_t identity_size, struct runtime_stored_table *out);

// Takes over a table from malloc, which is freed, also on failure. 0; or -1, *out all zero: it is unsound, for another
// architecture, or there is no memory. Not signal-safe, any thread.
int runtime_stored_table_adopt(void *bytes, size_t size, const struct arch *arch, struct runtime_stored_table *out);

void runtime_stored_table_free(struct runtime_stored_table *stored);

#endif
