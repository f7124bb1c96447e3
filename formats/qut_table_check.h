// SPDX-License-Identifier: Apache-2.0
// The one check that every table passes before it is used. After it, no lookup can read outside the table,
// whatever the file holds.
#ifndef QUT_FORMATS_QUT_TABLE_CHECK_H
#define QUT_FORMATS_QUT_TABLE_CHECK_H

#include <stddef.h>
#include <stdint.h>

// Why a table was refused.
enum qut_table_fault {
    QUT_TABLE_OK = 0,
    QUT_TABLE_TOO_SHORT,
    QUT_TABLE_BAD_MAGIC,
    QUT_TABLE_OLDER,    // of a version that is not read any more
    QUT_TABLE_BAD_SIZE, // the file is not as long as its header says (truncated, or more than a table)
    QUT_TABLE_BAD_CHECKSUM,
    QUT_TABLE_BAD_HEADER,  // a field out of range: architecture, shift, identity, code ranges
    QUT_TABLE_BAD_SECTION, // a section outside the file, misaligned or of an impossible size
    QUT_TABLE_BAD_CELL,
    QUT_TABLE_BAD_GROUP, // groups do not tile the blocks
    QUT_TABLE_BAD_BLOCK, // pcs not ascending, a code cut off
    QUT_TABLE_BAD_CODE,  // a code that names no rule or run
    QUT_TABLE_BAD_RUN,
    QUT_TABLE_BAD_WIDE,
    QUT_TABLE_FOREIGN, // for another file or architecture than asked for
    QUT_TABLE_NEWER,   // of a version that is not known yet
    QUT_TABLE_FAULT_END,
};

const char *qut_table_fault_name(enum qut_table_fault fault);

// Linear in size, allocates nothing, signal-safe. `bytes` is aligned to 8; to 64, so that a
// group stays inside one cache line. *fault_offset (may be NULL)
// says where in the file.
enum qut_table_fault qut_table_check(const void *bytes, size_t size, uint64_t *fault_offset);

// The checksum that belongs into the header.
uint64_t qut_table_checksum(const void *bytes, size_t size);

#endif
