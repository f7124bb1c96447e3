// SPDX-License-Identifier: Apache-2.0
// The bundle file (.qutz), version 1: many tables, each one zstd frame. Pure data; specification:
// formats/qut_bundle.md.
//
//   header | entries | names | frames
#ifndef QUT_FORMATS_QUT_BUNDLE_H
#define QUT_FORMATS_QUT_BUNDLE_H

#include <assert.h>
#include <stdint.h>

#define QUT_BUNDLE_MAGIC "QUTBndl\x01"

enum {
    QUT_BUNDLE_VERSION = 1,
    QUT_BUNDLE_ENTRIES_MAX = 1 << 20,
    QUT_BUNDLE_NAME_MAX_BYTES = 255,
    QUT_BUNDLE_TABLE_MAX_BYTES = 1 << 30,
};

struct qut_bundle_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t entry_count;
    uint64_t checksum; // of everything after this field up to the frames; qut_table_checksum
    uint64_t file_size;
    uint32_t names_bytes;
    uint8_t zero[28];
};
static_assert(sizeof(struct qut_bundle_header) == 64, "on disk");

// Entries are in ascending order of their names' bytes; names and frames follow each other in the same order, without
// gaps.
struct qut_bundle_entry {
    uint8_t identity[32]; // this and the following, up to text_bytes: as in the table's header
    uint8_t identity_size;
    uint8_t arch;
    uint16_t zero;
    uint32_t row_count;
    uint64_t text_bytes;
    uint64_t checksum;
    uint32_t name_offset;  // in the names
    uint32_t name_bytes;   // without NUL; there is none
    uint64_t frame_offset; // in the file
    uint64_t packed_bytes;
    uint64_t unpacked_bytes;
    uint8_t zero2[8];
};
static_assert(sizeof(struct qut_bundle_entry) == 96, "on disk");

#endif
