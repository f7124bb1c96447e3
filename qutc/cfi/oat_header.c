// SPDX-License-Identifier: Apache-2.0
#include "qutc/cfi/oat_header.h"

#include "libqut/art/varints.h"
#include "qutc/cfi/oat_code.h"

enum {
    VARINTS_MAX = 8,
    STACK_ALIGNMENT = 16,         // of frames, in all instruction sets; CodeInfo counts in it
    FRAME_BYTES_MAX = 1 << 20,    // ART's stacks are not larger
    CODE_INFO_HEAD_BYTES = 8 * 5, // as many bytes as the longest list of varints has
};

bool cfi_oat_format_of(uint32_t version, struct cfi_oat_format *format)
{
    enum { IN_INFO = CFI_OAT_IN_CODE_INFO, NO_CODE = CFI_OAT_NO_CODE_SIZE };
    static const struct {
        uint32_t first, last;
        struct cfi_oat_format format;
    } known[] = {
        // 6.0: mapping, vmap, gc map, frame, core, fp, code size
        {64, 64, {28, 3, 0, 0, 0, NO_CODE, false}},
        // 7.x: vmap, frame, core, fp, code size
        {79, 88, {20, 1, 0, 0, 0, NO_CODE, false}},
        // 8.0 ... 9: vmap, method info, frame, core, fp, code size (bit 31: to be deoptimized)
        {124, 155, {24, 2, 1, 0, 0, NO_CODE, false}},
        // 10: CodeInfo, code size (the same bit). In CodeInfo: frame, core, fp, dex registers
        {170, 170, {8, IN_INFO, 1, 4, 0, NO_CODE, false}},
        // 11: the varints interleaved, flags before them, the mask of bit tables behind
        {173, 190, {8, IN_INFO, 1, 6, 1, NO_CODE, true}},
        {191, 191, {8, IN_INFO, 1, 7, 2, 1, true}},
        // 12 ... 14: one word. Bit 31: to be deoptimized; bit 30: CodeInfo, else a stub's code size
        {192, 237, {4, IN_INFO, 2, 7, 2, 1, true}},
        // bit 31: CodeInfo
        {238, 238, {4, IN_INFO, 1, 7, 2, 1, true}},
        // 14 QPR2 ... 16: CodeInfo and nothing else
        {239, 265, {4, IN_INFO, 0, 7, 2, 1, true}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (version >= known[i].first && version <= known[i].last) {
            *format = known[i].format;
            return true;
        }
    return false;
}

bool cfi_oat_read_varints(struct base_bytes bytes, bool interleaved, uint32_t *values, unsigned count)
{
    return art_read_varints(bytes.data, bytes.size, interleaved, values, count);
}

static bool is_plausible(const struct cfi_oat_view *view, uint64_t code_offset, const struct cfi_oat_method *method)
{
    const struct arch *arch = view->arch;
    const struct cfi_oat_arch *oat = cfi_oat_arch(arch);
    uint32_t leaf_bytes = arch->ra_in_register ? 0 : arch->word_bytes;
    if (method->code_bytes == 0 || method->code_bytes > view->code.size - code_offset)
        return false;
    if (method->core_mask & ~oat->may_save_core || method->fp_mask & ~oat->may_save_fp ||
        method->frame_bytes > FRAME_BYTES_MAX)
        return false;
    uint32_t ra_bit = 1u << oat->ra_number;
    // The return address counts as saved where there is no frame, too. Since CodeInfo there are stubs of
    // @CriticalNative methods with a mask of 0; before, such a header would be any run of zeros.
    if (method->frame_bytes == 0 || method->frame_bytes == leaf_bytes)
        return method->core_mask & ra_bit || (!method->core_mask && view->format.code_info_values);
    uint32_t saved_bytes = (uint32_t)__builtin_popcount(method->core_mask) * arch->word_bytes +
                           (uint32_t)__builtin_popcount(method->fp_mask) * oat->fp_bytes;
    return method->frame_bytes % STACK_ALIGNMENT == 0 && method->core_mask & ra_bit &&
           method->frame_bytes >= saved_bytes + arch->word_bytes; // and the ArtMethod* at the bottom
}

// CodeInfo lies before the code, among the data.
static enum cfi_oat_verdict read_code_info(const struct cfi_oat_view *view, uint64_t code_offset,
                                           uint32_t info_distance, struct cfi_oat_method *method)
{
    const struct cfi_oat_format *format = &view->format;
    uint64_t code_vaddr = view->code_vaddr + code_offset;
    if (info_distance > code_vaddr || code_vaddr - info_distance < view->data_vaddr)
        return CFI_OAT_NO_HEADER;
    uint64_t info_offset = code_vaddr - info_distance - view->data_vaddr;
    if (info_offset >= view->data.size)
        return CFI_OAT_NO_HEADER;
    size_t left = view->data.size - (size_t)info_offset;
    struct base_bytes head = {view->data.data + info_offset, left < CODE_INFO_HEAD_BYTES ? left : CODE_INFO_HEAD_BYTES};
    uint32_t values[VARINTS_MAX];
    if (!cfi_oat_read_varints(head, format->interleaved, values, format->code_info_values))
        return CFI_OAT_NO_HEADER;
    if (values[format->code_info_frame] > FRAME_BYTES_MAX / STACK_ALIGNMENT)
        return CFI_OAT_NO_HEADER;
    method->frame_bytes = values[format->code_info_frame] * STACK_ALIGNMENT;
    method->core_mask = values[format->code_info_frame + 1];
    method->fp_mask = values[format->code_info_frame + 2];
    if (format->code_info_code != CFI_OAT_NO_CODE_SIZE)
        method->code_bytes = values[format->code_info_code];
    return CFI_OAT_METHOD;
}

// The one word of 12 and later.
static enum cfi_oat_verdict read_short(const struct cfi_oat_view *view, uint64_t code_offset, uint32_t word,
                                       struct cfi_oat_method *method)
{
    const struct cfi_oat_format *format = &view->format;
    uint32_t number = word << format->flag_bits >> format->flag_bits;
    if (format->flag_bits && !(word >> (32 - format->flag_bits) & 1)) { // the lowest flag: is CodeInfo
        method->code_bytes = number;
        bool fits = number && number <= view->code.size - code_offset;
        return fits ? CFI_OAT_NO_FRAME_INFO : CFI_OAT_NO_HEADER;
    }
    return number ? read_code_info(view, code_offset, number, method) : CFI_OAT_NO_HEADER;
}

enum cfi_oat_verdict cfi_oat_read_header(const struct cfi_oat_view *view, uint64_t code_offset,
                                         struct cfi_oat_method *method)
{
    const struct cfi_oat_format *format = &view->format;
    *method = (struct cfi_oat_method){0};
    if (code_offset < format->header_bytes || code_offset >= view->code.size)
        return CFI_OAT_NO_HEADER;
    struct base_cursor c = base_cursor(view->code);
    uint32_t words[7] = {0};
    unsigned count = format->header_bytes / 4u;
    base_cursor_seek(&c, code_offset - format->header_bytes);
    for (unsigned i = 0; i < count; i++)
        words[i] = base_read_u32(&c);

    enum cfi_oat_verdict verdict = CFI_OAT_METHOD;
    if (count == 1) {
        verdict = read_short(view, code_offset, words[0], method);
    } else {
        method->code_bytes = words[count - 1] << format->flag_bits >> format->flag_bits;
        if (format->frame_word != CFI_OAT_IN_CODE_INFO) {
            method->frame_bytes = words[format->frame_word];
            method->core_mask = words[format->frame_word + 1];
            method->fp_mask = words[format->frame_word + 2];
        } else if (words[0] == 0) {
            bool fits = method->code_bytes && method->code_bytes <= view->code.size - code_offset;
            return fits ? CFI_OAT_NO_FRAME_INFO : CFI_OAT_NO_HEADER;
        } else {
            uint32_t header_code_bytes = method->code_bytes;
            verdict = read_code_info(view, code_offset, words[0], method);
            if (method->code_bytes != header_code_bytes)
                return CFI_OAT_NO_HEADER;
        }
    }
    if (verdict == CFI_OAT_METHOD && !is_plausible(view, code_offset, method))
        return CFI_OAT_NO_HEADER;
    return verdict;
}
