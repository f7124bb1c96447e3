// SPDX-License-Identifier: Apache-2.0
// One ELF image, opened and taken apart: everything the compiler needs to know of it, and nothing of how it is stored.
// Sections that were compressed, or that come from .gnu_debugdata or a separate debug file, look like any others here.
#ifndef QUTC_INPUT_IMAGE_H
#define QUTC_INPUT_IMAGE_H

#include "base/cursor_inline.h"
#include "base/error.h"
#include "libqut/arch/arch.h"

enum {
    INPUT_FRAME_SECTIONS_MAX = 8,
    INPUT_EXEC_RANGES_MAX = 64,
    INPUT_PLT_RANGES_MAX = 8,
    INPUT_IDENTITY_MAX = 32,
};

enum input_frame_kind {
    INPUT_FRAME_EH = 0,    // .eh_frame
    INPUT_FRAME_DEBUG = 1, // .debug_frame
    INPUT_FRAME_EXIDX = 2, // .ARM.exidx (entries point into the image: .ARM.extab)
};

enum input_provenance {
    INPUT_FROM_FILE = 0,
    INPUT_FROM_GNU_DEBUGDATA = 1,
    INPUT_FROM_DEBUG_FILE = 2,
};

enum input_identity_kind {
    INPUT_CONTENT_HASH = 0, // over all of the file
    INPUT_BUILD_ID = 1,
    INPUT_OAT_IDENTITY = 2, // of an OAT file without build-id: can be told of what is mapped, too
};

struct input_frame_section {
    enum input_frame_kind kind;
    enum input_provenance from;
    const char *name;         // ".eh_frame", for messages
    struct base_bytes bytes;  // unpacked
    uint64_t vaddr;           // of byte 0; 0 where the section has no address
    uint64_t text_base_vaddr; // base of DW_EH_PE_textrel (0: none)
    uint64_t data_base_vaddr; // base of DW_EH_PE_datarel (0: none)
};

struct input_range { // [start, end), virtual addresses of the file
    uint64_t start;
    uint64_t end;
};

// An OAT file of Android's runtime: see oat.h.
struct input_oat {
    bool present;
    uint32_t version;        // 64 for "064"; 0: not readable
    struct input_range data; // from oatdata on, up to the code at most
    struct input_range code; // oatexec ... oatlastword; empty where there is none
};

struct input_image {
    char *name; // for messages: path, or "base.apk!lib/arm64-v8a/libx.so", or "[vdso]"
    const struct arch *arch;
    bool is_64;
    uint64_t size_bytes; // of the ELF as stored

    uint8_t identity[INPUT_IDENTITY_MAX]; // of a longer build-id the first 32 bytes
    uint8_t identity_size;
    enum input_identity_kind identity_kind;

    struct input_range exec[INPUT_EXEC_RANGES_MAX]; // executable segments (else sections), sorted, not overlapping
    unsigned exec_count;
    // Of them what sections say is code: older linkers put all that is read only into one segment. Without sections all.
    struct input_range code[INPUT_EXEC_RANGES_MAX];
    unsigned code_count;
    struct input_range plt[INPUT_PLT_RANGES_MAX]; // .plt, .iplt, .plt.* sections
    unsigned plt_count;
    struct input_oat oat;

    // In order of precedence: the first that describes a pc wins.
    struct input_frame_section frame[INPUT_FRAME_SECTIONS_MAX];
    unsigned frame_count;

    // Parts that could not be read and were left out (a frame section, a debug file); the first one's reason.
    unsigned damage_count;
    struct base_error damage;

    // What the original tables occupy in the file, for comparison (0: absent); a debug file's do not count.
    uint64_t eh_frame_bytes, eh_frame_hdr_bytes, debug_frame_bytes, exidx_bytes, extab_bytes;
    uint64_t unpacked_bytes; // memory that unpacking took
    uint64_t unpack_time_ns; // time spent in xz, zlib, zstd
    uint64_t xz_time_ns;     // ... in xz alone

    struct input_image_store *store; // owns the memory behind all of this
};

struct input_image_options {
    const char *debug_root;    // "/usr/lib/debug"; NULL: look for no separate debug files
    uint64_t unpack_max_bytes; // bound on unpacked sections together; 0: the default (1 GiB)
    // Files are read where they are needed, instead of mapped: one that is truncated meanwhile raises no SIGBUS,
    // but makes input_image_is_whole say no.
    bool read_files;
    // Only the file's architecture and identity are wanted: no section is unpacked, nothing else is filled.
    bool identity_only;
    // The image is one of memory, as the loader mapped it: section headers are not believed where there are segments.
    bool as_mapped;
    // The image is a just-in-time compiler's symbol file (QUT_COMPILE_JIT): it may be relocatable, its sections have
    // the addresses and bytes that they were loaded with. Only for input_image_open_memory.
    bool jit;
};

// Opens an ELF file, or, with offset_bytes/size_bytes not both 0, an ELF image inside a file (an APK's stored entry).
// *image is allocated; free with input_image_close. May block and allocate. Returns 0, or -1 with *error filled.
int input_image_open(const char *path, const char *name, uint64_t offset_bytes, uint64_t size_bytes,
                     const struct input_image_options *options, struct input_image **image, struct base_error *error);

// The same from memory (a vdso, a JIT blob); the bytes are copied.
int input_image_open_memory(struct base_bytes elf, const char *name, const struct input_image_options *options,
                            struct input_image **image, struct base_error *error);

void input_image_close(struct input_image *image);

// -1, and *error filled, where memory was missing for a part of the image that was asked for since it was opened
// (symbols). What was made without that part must not pass for whole.
int input_image_check_memory(const struct input_image *image, struct base_error *error);

// The bytes of the file that are mapped from vaddr on, up to the end of their segment (or section): at most to the end
// of file data, never zero-fill. Size 0 where nothing is mapped.
struct base_bytes input_image_at(const struct input_image *image, uint64_t vaddr);

// The same, at most size_max bytes: where the file is read by need, no more than these are.
struct base_bytes input_image_some(const struct input_image *image, uint64_t vaddr, uint64_t size_max);

// Whose file it is, and its debug file (0: root's, or the running kernel's vdso). False: that is not known, since it is
// memory of a process, or a file that others may write or lie about.
bool input_image_owner(const struct input_image *image, uint32_t *user_id);

// Whether the image's file holds all that the loader maps, and could be read as it was when it was opened (the separate
// debug file too). Ask after the last use of the image: what was lost reads as zeros. Says no only with read_files.
bool input_image_is_whole(const struct input_image *image);

// The whole ELF image as stored, for readers that want to open it themselves (the judges).
struct base_bytes input_image_elf(const struct input_image *image);

#endif
