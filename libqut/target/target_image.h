// SPDX-License-Identifier: Apache-2.0
// One ELF image of an address space, or one mapping that is none. Images stay as long as their target: names and tables
// of them are handed out.
#ifndef QUT_TARGET_TARGET_IMAGE_H
#define QUT_TARGET_TARGET_IMAGE_H

#include "libqut/art/oat_identity.h"
#include "libqut/elf/elf_head.h"
#include "libqut/go/go.h"
#include "libqut/runtime/table_store.h"
#include "libqut/target/mappings.h"

enum { TARGET_REASON_BYTES = 384 };

enum target_table_state { TARGET_TABLE_UNTRIED = 0, TARGET_TABLE_READY, TARGET_TABLE_NONE };

struct target_image {
    // What it is: equal for all mappings of it.
    char *path;
    uint64_t device, inode;
    uint64_t file_offset; // of the image; of something that is no ELF: of its mapping
    uint64_t load_bias;
    bool is_elf, deleted;
    // What is known of it.
    char *file_path; // NULL: no file that is the mapped one was found; the image is in memory
    char *soname;    // NULL: not known
    uint64_t start;  // first address of its first mapping
    uint64_t entry;  // address of the entry point, where execution began there; else 0
    uint8_t build_id[ELF_BUILD_ID_MAX];
    uint32_t build_id_size;
    bool has_oat_identity; // in its place, of an OAT file
    uint8_t oat_identity[ART_OAT_IDENTITY_BYTES];
    bool file_is_another; // the file at its path has another build-id or OAT identity
    struct elf_head *head;
    bool exports_are_known;
    uint64_t exports[6]; // addresses of what it exports as enum target_machine_export has it; 0: nothing
    struct go_layout go; // of its runtime's records
    bool go_is_tried;
    // Its table.
    enum target_table_state table_state;
    struct runtime_stored_table stored;
    bool shares_table;                // `stored` is a copy of another image's, which owns it
    char reason[TARGET_REASON_BYTES]; // with TARGET_TABLE_NONE
};

#endif
