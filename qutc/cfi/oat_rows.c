// SPDX-License-Identifier: Apache-2.0
// Methods lie one behind the other, each behind its header, aligned. Between them are thunks: code without a header, to
// which methods branch and which goes on elsewhere without a frame of its own.
#include "qutc/cfi/oat_rows.h"

#include <string.h>

#include "qutc/input/oat.h"

enum {
    TRAMPOLINES_MAX = 16,
    TRAMPOLINE_INSTRUCTIONS_MAX = 4,
};

struct reader {
    struct cfi_oat_view view;
    struct cfi_rule_set *rules;
    const struct cfi_row_list *earlier;
    size_t earlier_at; // the last row at or before where we are
    uint64_t text_start;
    struct cfi_row_list *rows;
    uint64_t reached; // offset of the code behind the last method
    struct cfi_oat_counts *counts;
    struct base_error *error;
};

bool cfi_oat_view_of(const struct input_image *image, struct cfi_oat_view *view)
{
    *view = (struct cfi_oat_view){.arch = image->arch};
    if (!image->oat.present || !cfi_oat_format_of(image->oat.version, &view->format) ||
        !cfi_oat_arch(image->arch)->read)
        return false;
    view->data = input_oat_data(image);
    view->data_vaddr = image->oat.data.start;
    view->code = input_oat_code(image);
    view->code_vaddr = image->oat.code.start;
    return view->code.size > 0;
}

// Whether another source describes this pc. pcs come in ascending order.
static bool is_described(struct reader *r, uint64_t code_offset)
{
    const struct cfi_row_list *earlier = r->earlier;
    uint64_t pc_rel = r->view.code_vaddr + code_offset - r->text_start;
    while (r->earlier_at + 1 < earlier->count && earlier->rows[r->earlier_at + 1].pc_rel <= pc_rel)
        r->earlier_at++;
    return earlier->count && earlier->rows[r->earlier_at].pc_rel <= pc_rel &&
           earlier->rows[r->earlier_at].rule_id != CFI_RULE_HOLE_ID;
}

static int put_method(struct reader *r, uint64_t code_offset, const struct cfi_oat_method *method)
{
    struct base_bytes code = {r->view.code.data + code_offset, method->code_bytes};
    uint32_t pc_rel = (uint32_t)(r->view.code_vaddr + code_offset - r->text_start);
    return cfi_oat_method_rows(r->view.arch, method, code, pc_rel, r->rules, r->rows, r->error);
}

// A method, if its header holds; else false.
static bool is_method(struct reader *r, uint64_t code_offset, uint32_t size_bytes, struct cfi_oat_method *method,
                      enum cfi_oat_verdict *verdict)
{
    *verdict = cfi_oat_read_header(&r->view, code_offset, method);
    // What a symbol says of the size must be what the header says: before a thunk stands something else.
    if (size_bytes && size_bytes != method->code_bytes)
        *verdict = CFI_OAT_NO_HEADER;
    return *verdict == CFI_OAT_METHOD;
}

static int read_method(struct reader *r, uint64_t code_offset, const struct cfi_oat_method *method)
{
    r->counts->methods++;
    r->reached = code_offset + method->code_bytes;
    int certainty = put_method(r, code_offset, method);
    if (certainty >= 0)
        r->counts->certainty[certainty]++;
    return certainty < 0 ? -1 : 0;
}

// Code without a header, that leaves sp and the return address alone up to where it goes on elsewhere: the caller's
// frame is as it was. Anything else stays a hole. size_bytes 0: up to the first jump.
static int read_thunk(struct reader *r, uint64_t code_offset, uint32_t size_bytes)
{
    cfi_oat_read_fn read = cfi_oat_arch(r->view.arch)->read;
    uint64_t left = r->view.code.size - code_offset;
    uint32_t limit = size_bytes && size_bytes < left ? size_bytes : (uint32_t)(left < UINT32_MAX ? left : UINT32_MAX);
    struct cfi_oat_method thunk = {0};
    bool leaves = false;
    for (unsigned i = 0; thunk.code_bytes < limit && !(leaves && !size_bytes); i++) {
        struct art_instruction in;
        cfi_oat_read(read,
                     (struct base_bytes){r->view.code.data + code_offset + thunk.code_bytes, limit - thunk.code_bytes},
                     &in);
        bool is_harmless =
            in.size_bytes && in.sp_change_bytes == 0 && (in.effect == ART_PLAIN || in.effect == ART_LEAVES);
        if (!is_harmless || (!size_bytes && i == TRAMPOLINE_INSTRUCTIONS_MAX))
            return 0;
        leaves |= in.effect == ART_LEAVES;
        thunk.code_bytes += in.size_bytes;
    }
    if (!leaves || is_described(r, code_offset))
        return 0;
    r->reached = code_offset + thunk.code_bytes;
    r->counts->trampolines++;
    return put_method(r, code_offset, &thunk) < 0 ? -1 : 0;
}

// No method contains another one's header: one of the sizes is wrong, and the code behind that header is the other's.
static void clip(struct reader *r, const struct input_oat_starts *starts, size_t at, struct cfi_oat_method *method)
{
    uint64_t begin = starts->items[at].vaddr - r->view.code_vaddr;
    for (size_t i = at + 1; i < starts->count; i++) {
        uint64_t next = starts->items[i].vaddr - r->view.code_vaddr;
        struct cfi_oat_method other;
        enum cfi_oat_verdict verdict;
        if (next >= begin + method->code_bytes)
            return;
        if (next - begin > r->view.format.header_bytes &&
            is_method(r, next, starts->items[i].size_bytes, &other, &verdict)) {
            method->code_bytes = (uint32_t)(next - begin) - r->view.format.header_bytes;
            return;
        }
    }
}

static int read_starts(struct reader *r, const struct input_oat_starts *starts)
{
    for (size_t i = 0; i < starts->count; i++) {
        const struct input_oat_start *start = &starts->items[i];
        uint64_t code_offset = start->vaddr - r->view.code_vaddr;
        struct cfi_oat_method method;
        enum cfi_oat_verdict verdict;
        if (code_offset < r->reached || code_offset >= r->view.code.size)
            continue; // inside of a method
        if (is_described(r, code_offset)) {
            r->counts->methods++;
            r->counts->described++;
            continue;
        }
        int result = 0;
        if (is_method(r, code_offset, start->size_bytes, &method, &verdict)) {
            clip(r, starts, i, &method);
            result = read_method(r, code_offset, &method);
        } else if (verdict == CFI_OAT_NO_FRAME_INFO)
            r->counts->no_frame_info++;
        else if (start->size_bytes)
            result = read_thunk(r, code_offset, start->size_bytes);
        else
            r->counts->no_header++;
        if (result != 0)
            return -1;
    }
    return 0;
}

// Where nothing names the methods: every aligned address that a header precedes.
static int scan(struct reader *r)
{
    uint64_t step = cfi_oat_arch(r->view.arch)->method_alignment_bytes;
    struct cfi_oat_method method;
    r->counts->scanned = true;
    r->earlier_at = 0;
    for (uint64_t at = (r->reached + step) & ~(step - 1); at < r->view.code.size;) {
        if (!is_described(r, at) && cfi_oat_read_header(&r->view, at, &method) == CFI_OAT_METHOD) {
            if (read_method(r, at, &method) != 0)
                return -1;
            at = (r->reached + step - 1) & ~(step - 1);
        } else {
            at += step;
        }
    }
    return 0;
}

// The boot image's trampolines stand before all methods.
static int read_trampolines(struct reader *r, const struct input_image *image)
{
    uint64_t vaddrs[TRAMPOLINES_MAX];
    unsigned count = input_oat_find_trampolines(image, vaddrs, TRAMPOLINES_MAX);
    for (unsigned i = 0; i < count; i++) {
        uint64_t code_offset = vaddrs[i] - r->view.code_vaddr;
        if (code_offset >= r->reached && code_offset < r->view.code.size && read_thunk(r, code_offset, 0) != 0)
            return -1;
    }
    return 0;
}

static int read_named(struct reader *r, const struct input_image *image, enum input_oat_naming naming, uint64_t *named)
{
    struct input_oat_starts starts;
    if (input_oat_find_starts(image, naming, &starts, r->error) != 0)
        return -1;
    *named = starts.named;
    r->earlier_at = 0;
    int result = read_starts(r, &starts);
    input_oat_starts_free(&starts);
    return result;
}

int cfi_oat_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end,
                 const struct cfi_row_list *earlier, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                 struct cfi_oat_counts *counts, struct base_error *error)
{
    struct reader r = {
        .rules = rules, .earlier = earlier, .text_start = text_start, .rows = rows, .counts = counts, .error = error};
    struct cfi_oat_format format;
    *counts = (struct cfi_oat_counts){0};
    counts->unknown_version = image->oat.present && !cfi_oat_format_of(image->oat.version, &format);
    if (!cfi_oat_view_of(image, &r.view) || r.view.code_vaddr < text_start ||
        r.view.code_vaddr + r.view.code.size > text_end)
        return 0;
    if (cfi_row_list_reserve(rows, 1, error) != 0)
        return -1;
    cfi_row_list_put(rows, 0, CFI_RULE_HOLE_ID);
    // Symbols name every method where they name one, and say its size too.
    int result = read_trampolines(&r, image);
    if (result == 0)
        result = read_named(&r, image, INPUT_OAT_BY_SYMBOLS, &counts->symbols);
    if (result == 0 && counts->methods == 0)
        result = read_named(&r, image, INPUT_OAT_BY_TABLES, &counts->class_entries);
    if (result == 0 && counts->methods == 0)
        result = scan(&r);
    return result;
}
