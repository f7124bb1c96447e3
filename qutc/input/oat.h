// SPDX-License-Identifier: Apache-2.0
// OAT files, to which Android's runtime compiles Java code: ELF files whose dynamic symbols say where, in them, an OAT
// header (`oatdata`) and machine code (`oatexec` ... `oatlastword`) are.
#ifndef QUTC_INPUT_OAT_H
#define QUTC_INPUT_OAT_H

#include "base/vector.h"
#include "qutc/input/image.h"

// Where something that is said to be a method begins: candidates, that a header has to confirm.
struct input_oat_start {
    uint64_t vaddr;      // without the Thumb bit
    uint32_t size_bytes; // of a symbol; 0: not known
};

struct input_oat_starts {
    BASE_VECTOR(struct input_oat_start); // ascending, one at an address
    size_t named;                        // as often as they are named
};

// Collects the starts that symbols name (.symtab of the file, of its .gnu_debugdata), or those of the tables by which
// the runtime finds compiled methods: OatDexFile, OatClass. What in them contradicts the file is passed over. Fails for
// want of memory only.
enum input_oat_naming { INPUT_OAT_BY_SYMBOLS, INPUT_OAT_BY_TABLES };
int input_oat_find_starts(const struct input_image *image, enum input_oat_naming naming,
                          struct input_oat_starts *starts, struct base_error *error);
void input_oat_starts_free(struct input_oat_starts *starts);

// Which method's code is where, as those tables say: a method is told by its class's place among its dex file's
// classes, and its own among that class's methods. The same code may be several methods'. A header has to confirm each.
struct input_oat_method {
    uint64_t vaddr; // without the Thumb bit
    uint32_t dex;   // index in dexes
    uint32_t class_index, number;
};
struct input_oat_dex {
    struct base_bytes location; // in the image's own memory: "/system/framework/services.jar!classes2.dex"
    uint32_t checksum;          // as the dex file's header has it
    uint32_t offset;            // in the vdex file; before 8.0 from oatdata on
};
struct input_oat_methods {
    BASE_VECTOR(struct input_oat_method); // as they are met
    BASE_VECTOR(struct input_oat_dex) dexes;
};
// Fails for want of memory only. Without tables there are none.
int input_oat_find_methods(const struct input_image *image, struct input_oat_methods *methods,
                           struct base_error *error);
void input_oat_methods_free(struct input_oat_methods *methods);

// Starts of trampolines that the header names: code that jumps through the current thread. At most `max`.
unsigned input_oat_find_trampolines(const struct input_image *image, uint64_t *vaddrs, unsigned max);

// The bytes from oatdata on, below the code, and those of the code.
struct base_bytes input_oat_data(const struct input_image *image);
struct base_bytes input_oat_code(const struct input_image *image);

// Their parts: the starts that the tables name (oat_classes.c), that symbols of one file name, one start.
struct input_elf;
int input_oat_add_classes(const struct input_image *image, struct input_oat_starts *starts, struct base_error *error);
int input_oat_add_symbols(const struct input_image *image, const struct input_elf *elf, struct input_oat_starts *starts,
                          struct base_error *error);
int input_oat_add_start(const struct input_image *image, struct input_oat_starts *starts, uint64_t vaddr,
                        uint32_t size_bytes, struct base_error *error);

#endif
