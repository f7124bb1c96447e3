// SPDX-License-Identifier: Apache-2.0
// What precedes every compiled method of an OAT file: OatQuickMethodHeader, and the head of the CodeInfo that it names.
// Together they say how large the method's frame is and which registers are saved in it. Where the code of a method
// begins is asked elsewhere; whether a header really stands before an address is judged here.
#ifndef QUTC_CFI_OAT_HEADER_H
#define QUTC_CFI_OAT_HEADER_H

#include "qutc/input/image.h"

struct cfi_oat_method {
    uint32_t code_bytes;
    uint32_t frame_bytes; // 0: none (on x86 the return address alone)
    uint32_t core_mask;   // saved registers by the numbers of the instruction set, not DWARF's; on x86 there is an
    uint32_t fp_mask;     // additional highest bit for the return address
};

enum cfi_oat_verdict {
    CFI_OAT_METHOD,        // *method is filled
    CFI_OAT_NO_FRAME_INFO, // a header without CodeInfo, of a stub: it tells only code_bytes
    CFI_OAT_NO_HEADER,     // no header, or one that contradicts the file or the architecture
};

// How the headers of one OAT version are to be read. Versions were counted up with every change of the format, also
// between releases: what is not known to be read like a release's is not known.
struct cfi_oat_format {
    uint8_t header_bytes;
    uint8_t frame_word; // index of frame_size in the header, core and fp masks behind it; or CFI_OAT_IN_CODE_INFO
    uint8_t flag_bits;  // high bits of the header's last word that are no part of a number
    uint8_t code_info_values, code_info_frame, code_info_code; // how many varints there are; indexes
    bool interleaved;                                          // all heads first, then all wide values
};
enum { CFI_OAT_IN_CODE_INFO = 0xff, CFI_OAT_NO_CODE_SIZE = 0xff };

// False for a version whose headers we do not know.
bool cfi_oat_format_of(uint32_t version, struct cfi_oat_format *format);

// The bytes between oatdata and the end of the code: all that a header can speak of.
struct cfi_oat_view {
    const struct arch *arch;
    struct cfi_oat_format format;
    struct base_bytes data; // the header and what it describes, below the code
    uint64_t data_vaddr;
    struct base_bytes code;
    uint64_t code_vaddr;
};

// The method whose code begins at this offset of the code.
enum cfi_oat_verdict cfi_oat_read_header(const struct cfi_oat_view *view, uint64_t code_offset,
                                         struct cfi_oat_method *method);

// CodeInfo's numbers: a head of 4 bits holds up to 11, or says how many bytes of a wide value (1 to 4) follow.
// Bits count from the lowest of each byte. False where they run past the end.
bool cfi_oat_read_varints(struct base_bytes bytes, bool interleaved, uint32_t *values, unsigned count);

#endif
