// SPDX-License-Identifier: Apache-2.0
// Functions that were inlined at a place, and lines, as debug information tells them. Needs libdw: a build without it
// knows none. Files are mapped, so that of a large one only what is asked for is read: truncating one meanwhile
// ends this process. libdw also opens the files that one names: those of split units (.dwo), and what dwz put apart.
#ifndef TRACER_NAMES_INLINES_H
#define TRACER_NAMES_INLINES_H

#include "qutc/input/image.h"

struct names_inlines;

struct names_inline_function {
    const char *name; // as linkers know it, where debug information says that; NULL: not known
    const char *file; // where in it the place is; NULL: not known
    uint32_t line;    // 0: not known
};

enum { NAMES_INLINE_DEPTH_MAX = 128 };

// Whether this build can tell anything.
bool names_inlines_built(void);

// Of an image opened with read_files, or of its debug file, whichever has debug information. NULL: none has.
struct names_inlines *names_inlines_open(const struct input_image *image);
void names_inlines_close(struct names_inlines *inlines);

// The functions at an address, innermost first: the last is the one that has its own code. Where only the line is
// known, one function without a name. Returns how many, at most NAMES_INLINE_DEPTH_MAX: of more the innermost are left
// out. Names and files live until the next call. Ask in ascending order of addresses: neighbours are known already.
size_t names_inlines_at(struct names_inlines *inlines, uint64_t vaddr,
                        struct names_inline_function functions[NAMES_INLINE_DEPTH_MAX]);

#endif
