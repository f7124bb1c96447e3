// SPDX-License-Identifier: Apache-2.0
// The methods of an OAT file without symbols, by where their compiled code is: its own tables say which method of which
// class it is, the dex files what that is called.
#ifndef TRACER_DEX_OAT_METHODS_H
#define TRACER_DEX_OAT_METHODS_H

#include "tracer/dex/list.h"
#include "tracer/symbols/symbols.h"

struct dex_oat;

// The dex files are in `dex_files`: a .vdex file, or one dex file or container. One counts for what the OAT file's
// tables say of it if its checksum is the one that they have, and its place. The image's and the dex files' bytes are
// not needed afterwards. NULL, with *error filled: none is there, no memory, or this is no OAT file whose headers we
// know.
struct dex_oat *dex_oat_make(const struct input_image *image, struct base_bytes dex_files, struct base_error *error);

// The same with the .vdex file that lies beside the OAT file ("boot.oat", "base.odex"), and of what is not in there
// with the archives that the OAT file says it was compiled from, if their dex files are stored as they are. root is put
// before their paths (NULL: none). What cannot be had has no names.
struct dex_oat *dex_oat_open(const struct input_image *image, const char *path, const char *root,
                             struct base_error *error);

void dex_oat_free(struct dex_oat *oat);

size_t dex_oat_count(const struct dex_oat *oat); // pieces of code

// The method whose code is at an address. Its name is "java.util.Arrays.sort", with " [DEDUPED]" behind it where other
// methods have the same code; it lives as long as the index. A stub that native methods
// share is "art_jni_trampoline".
bool dex_oat_find(const struct dex_oat *oat, uint64_t vaddr, struct symbol *symbol);

#endif
