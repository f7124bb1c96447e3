// SPDX-License-Identifier: Apache-2.0
// What stands behind an image: the memory, the ELF files in it (itself, the one in .gnu_debugdata, a debug file), and
// the map from addresses to bytes.
#ifndef QUTC_INPUT_IMAGE_STORE_H
#define QUTC_INPUT_IMAGE_STORE_H

#include "qutc/input/elf_file.h"
#include "qutc/input/file_map.h"
#include "qutc/input/image.h"
#include "qutc/input/unpack.h"

struct input_mapped_range {
    uint64_t vaddr;
    struct base_bytes bytes;
    bool is_read; // where the file is read by need: all of it was
};

struct input_image_store {
    enum input_file_way way;
    struct input_file_map file;
    uint8_t *copy; // an image opened from memory
    struct input_elf elf;
    struct input_mapped_range *mapped; // sorted by vaddr
    size_t mapped_count;
    struct input_elf debugdata_elf;
    struct input_file_map debug_file;
    struct input_elf debug_elf;
    struct input_unpacker unpacker;
    struct base_error no_memory; // the first part that could not be read for want of it
};

// Keeps a reason that is BASE_ERR_NO_MEMORY for input_image_check_memory.
void input_image_note_no_memory(const struct input_image *image, const struct base_error *why);
// Counts a part that is left out, and keeps the first one's reason. One that memory was missing for ends the opening.
void input_image_note_damage(struct input_image *image, const struct base_error *damage);

// ranges.c: which addresses hold code, PLT entries, bytes of the file.
int input_image_find_exec(struct input_image *image, struct base_error *error);
int input_image_find_code(struct input_image *image, struct base_error *error); // behind it
void input_image_find_plt(struct input_image *image);
int input_image_map(struct input_image *image, struct base_error *error);

// oat.c: whether the image is an OAT file.
void input_image_find_oat(struct input_image *image);

// frames.c: adds the frame sections of one ELF file. What cannot be read is left out and noted as damage.
void input_image_add_frames(struct input_image *image, const struct input_elf *elf, enum input_provenance from);

// eh_frame_hdr.c: .eh_frame as the loader finds it, by PT_GNU_EH_FRAME. Up to its terminator, else the segment's end.
int input_find_eh_frame(const struct input_image *image, const struct input_elf_segment *segment,
                        struct base_bytes *bytes, uint64_t *vaddr, struct base_error *error);

// debug_file.c: the separate debug file, by build-id or .gnu_debuglink. path is NULL where the image is no file of its
// own. True if there is one: store->debug_elf is filled.
bool input_image_find_debug_file(struct input_image *image, const char *path, const char *debug_root);

#endif
