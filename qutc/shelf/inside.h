// SPDX-License-Identifier: Apache-2.0
// What the folder's files share.
#ifndef QUTC_SHELF_INSIDE_H
#define QUTC_SHELF_INSIDE_H

#include "formats/qut_table_name_inline.h"
#include "qutc/shelf/shelf.h"

enum { SHELF_PATH_MAX = 160 };

// "qut/v1/x86_64/9f": the folder of an index, and of the tables that it names.
void shelf_shard(const struct arch *arch, const uint8_t *identity, char path[SHELF_PATH_MAX]);
// "3c....qut.zst" in it.
void shelf_file_name(const char *rest, char name[SHELF_PATH_MAX]);

// A line of an index.
struct shelf_entry {
    char rest[2 * QUT_IDENTITY_MAX + 1]; // of the identity, in hex, without its first byte
    uint8_t packed_hash[SHELF_HASH_BYTES], source_hash[SHELF_HASH_BYTES];
    uint64_t packed_bytes, table_bytes, source_bytes;
};

enum { SHELF_LINE_MAX = 288, SHELF_INDEX_MAX_BYTES = 64 << 20, SHELF_PACKED_MAX_BYTES = 256 << 20 };

// Without newline.
void shelf_entry_print(const struct shelf_entry *entry, char line[SHELF_LINE_MAX]);
// The next line of an index; -1 where it is not as shelf_entry_print writes it.
int shelf_entry_read(struct base_cursor *lines, struct shelf_entry *entry, struct base_error *error);

// What an index begins with: it is no other folder's.
void shelf_index_head(const char *shard, char head[SHELF_PATH_MAX]);
// Its first line; -1 where it is no index of this folder.
int shelf_index_begin(struct base_bytes index, const char *shard, struct base_cursor *lines, struct base_error *error);
// The entry of this identity. 0, and *found; -1 where it is no index of this folder.
int shelf_index_find(struct base_bytes index, const char *shard, const char *rest, struct shelf_entry *entry,
                     bool *found, struct base_error *error);

// "FOLDER/NAMESUFFIX": free(). NULL where there is no memory.
char *shelf_join(const char *folder, const char *name, const char *suffix, struct base_error *error);
int shelf_publish(const char *folder, const char *name, const char *suffix, const void *bytes, size_t size, bool synced,
                  struct base_error *error);
// Of the whole folder `root`, until the descriptor is closed: flock's LOCK_SH for who puts a table into it, LOCK_EX for
// who writes indexes. -1: error.
int shelf_lock(const char *root, int operation, struct base_error *error);
// Of a table's file name: its line for the index, until that has it.
#define SHELF_LINE_SUFFIX ".line"

int shelf_hash(struct base_bytes bytes, uint8_t hash[SHELF_HASH_BYTES], struct base_error *error);
int shelf_sign(const char *key_path, struct base_bytes bytes, uint8_t signature[SHELF_SIGNATURE_BYTES],
               struct base_error *error);
int shelf_verify(const char *key_path, struct base_bytes bytes, struct base_bytes signature, struct base_error *error);

// GET. 0 with *body (free()) and *is_there, where the answer was 200, 403, 404 or 410; -1 with the reason for
// everything else.
int shelf_get(const char *url, const char *path, size_t max_bytes, unsigned timeout_ms, uint8_t **body,
              size_t *body_bytes, bool *is_there, struct base_error *error);

#endif
