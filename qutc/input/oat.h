// SPDX-License-Identifier: Apache-2.0
// OAT files, to which Android's runtime compiles Java code: ELF files whose dynamic symbols say where, in them, an OAT
// header (`oatdata`) and machine code (`oatexec` ... `oatlastword`) are.
#ifndef QUTC_INPUT_OAT_H
#define QUTC_INPUT_OAT_H

#include "qutc/input/image.h"

// Where something that is said to be a method begins: candidates, that a header has to confirm.
struct qutc_oat_start {
    uint64_t vaddr;      // without the Thumb bit
    uint32_t size_bytes; // of a symbol; 0: not known
};

struct qutc_oat_starts {
    struct qutc_oat_start *starts; // ascending, one at an address
    size_t count, capacity;
    size_t named; // as often as they are named
};

// Collects the starts that symbols name (.symtab of the file, of its .gnu_debugdata), or those of the tables by which
// the runtime finds compiled methods: OatDexFile, OatClass. What in them contradicts the file is passed over. Fails for
// want of memory only.
enum qutc_oat_naming { QUTC_OAT_BY_SYMBOLS, QUTC_OAT_BY_TABLES };
int qutc_oat_find_starts(const struct qutc_image *image, enum qutc_oat_naming naming, struct qutc_oat_starts *starts,
                         struct qutc_error *error);
void qutc_oat_starts_free(struct qutc_oat_starts *starts);

// Starts of trampolines that the header names: code that jumps through the current thread. At most `max`.
unsigned qutc_oat_find_trampolines(const struct qutc_image *image, uint64_t *vaddrs, unsigned max);

// The bytes from oatdata on, below the code, and those of the code.
struct qutc_bytes qutc_oat_data(const struct qutc_image *image);
struct qutc_bytes qutc_oat_code(const struct qutc_image *image);

// oat_classes.c: adds the starts that the tables name.
int qutc_oat_add_classes(const struct qutc_image *image, struct qutc_oat_starts *starts, struct qutc_error *error);
int qutc_oat_add_start(const struct qutc_image *image, struct qutc_oat_starts *starts, uint64_t vaddr,
                       uint32_t size_bytes, struct qutc_error *error);

#endif
