// SPDX-License-Identifier: Apache-2.0
// A minimal ELF file around one frame section, for the libraries that only read ELF files. Always used instead of the
// original: sections that were compressed, or that come from .gnu_debugdata or a debug file, exist only unpacked; the
// copy can be patched where a library is known to misread; and no .eh_frame_hdr that contradicts its section comes
// between the section and the judge.
#ifndef QUTC_CHECK_ELF_WRAP_H
#define QUTC_CHECK_ELF_WRAP_H

#include "qutc/check/cfi_walk.h"

struct check_elf_wrap {
    uint8_t *bytes; // free()
    size_t size;
    bool is_eh; // it holds an .eh_frame
};

// The section at its own address, patched as the walk says (check_walk_patch). as_eh: a .debug_frame is rewritten as
// .eh_frame, which differs only in how records name their CIE.
int check_elf_wrap(const struct check_walk_index *index, bool as_eh, struct check_elf_wrap *wrap,
                   struct base_error *error);

#endif
