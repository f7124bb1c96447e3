// SPDX-License-Identifier: Apache-2.0
// What stands behind an image: the memory, the ELF files in it (itself, the one in .gnu_debugdata, a debug file), and
// the map from addresses to bytes.
#ifndef QUTC_INPUT_IMAGE_STORE_H
#define QUTC_INPUT_IMAGE_STORE_H

#include "qutc/input/elf_file.h"
#include "qutc/input/file_map.h"
#include "qutc/input/image.h"
#include "qutc/input/unpack.h"

struct qutc_mapped_range {
    uint64_t vaddr;
    struct qutc_bytes bytes;
    bool is_read; // where the file is read by need: all of it was
};

struct qutc_image_store {
    enum qutc_file_way way;
    struct qutc_file_map file;
    uint8_t *copy; // an image opened from memory
    struct qutc_elf elf;
    struct qutc_mapped_range *mapped; // sorted by vaddr
    size_t mapped_count;
    struct qutc_elf debugdata_elf;
    struct qutc_file_map debug_file;
    struct qutc_elf debug_elf;
    struct qutc_unpacker unpacker;
};

// Counts a part that is left out, and keeps the first one's reason.
void qutc_image_note_damage(struct qutc_image *image, const struct qutc_error *damage);

// ranges.c: which addresses hold code, PLT entries, bytes of the file.
int qutc_image_find_exec(struct qutc_image *image, struct qutc_error *error);
void qutc_image_find_plt(struct qutc_image *image);
int qutc_image_map(struct qutc_image *image, struct qutc_error *error);

// oat.c: whether the image is an OAT file.
void qutc_image_find_oat(struct qutc_image *image);

// frames.c: adds the frame sections of one ELF file. What cannot be read is left out and noted as damage.
void qutc_image_add_frames(struct qutc_image *image, const struct qutc_elf *elf, enum qutc_provenance from);

// eh_frame_hdr.c: .eh_frame as the loader finds it, by PT_GNU_EH_FRAME. Up to its terminator, else the segment's end.
int qutc_find_eh_frame(const struct qutc_image *image, const struct qutc_elf_segment *segment, struct qutc_bytes *bytes,
                       uint64_t *vaddr, struct qutc_error *error);

// debug_file.c: the separate debug file, by build-id or .gnu_debuglink. path is NULL where the image is no file of its
// own. True if there is one: store->debug_elf is filled.
bool qutc_image_find_debug_file(struct qutc_image *image, const char *path, const char *debug_root);

#endif
