// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive, and where stored (uncompressed) entries have their bytes.
#ifndef QUTC_INPUT_ZIP_H
#define QUTC_INPUT_ZIP_H

#include "qutc/base/cursor.h"
#include "qutc/base/error.h"

enum {
    QUTC_ZIP_TAIL_BYTES_MAX = 22 + 0xffff + 20 + 56, // what qutc_zip_open reads, from the end of the file on
    QUTC_ZIP_LOCAL_BYTES_MAX = 30 + 2 * 0xffff,      // what stands in front of an entry's bytes
};

struct qutc_zip {
    struct qutc_bytes file;
    uint64_t directory_offset, directory_size;
    uint64_t entry_count;
    uint64_t next;              // the number of the entry that is read next
    struct qutc_cursor entries; // in the directory
};

struct qutc_zip_entry {
    uint16_t flags;
    uint16_t method;
    uint64_t packed_bytes;
    uint64_t size_bytes;
    uint64_t local_offset;
    struct qutc_bytes name;
};

extern const char qutc_zip_directory_name[]; // for messages

// Finds the directory. Reads nothing but the last QUTC_ZIP_TAIL_BYTES_MAX bytes, unless a zip64 record stands
// elsewhere.
int qutc_zip_open(struct qutc_zip *zip, struct qutc_bytes file, struct qutc_error *error);
// 1: *entry is the next one; 0: there are no more; -1: *error.
int qutc_zip_next(struct qutc_zip *zip, struct qutc_zip_entry *entry, struct qutc_error *error);
// Whether an entry is stored as it is.
bool qutc_zip_is_stored(const struct qutc_zip_entry *entry);
// Where a stored entry's bytes are; false where they are not inside the file.
bool qutc_zip_find_data(struct qutc_bytes file, const struct qutc_zip_entry *entry, uint64_t *offset);

#endif
