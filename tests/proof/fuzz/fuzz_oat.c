// SPDX-License-Identifier: Apache-2.0
// A method of an OAT file: its header, the CodeInfo that this names, its code, and the rows that follow from them.
// Input: an architecture; an OAT version (two bytes); where the code begins (two bytes); header, CodeInfo and code.
#include "qutc/cfi/oat_track.h"
#include "tests/proof/fuzz/fuzz.h"

enum { HEAD_BYTES = 5, DATA_VADDR = 0x1000, METHODS_MAX = 16, ROW_BYTES = 1 };

// Rows ascend, lie in the method, and end with a hole behind it.
static void check_rows(const struct cfi_row_list *rows, const struct cfi_rule_set *rules, uint32_t pc_rel,
                       uint32_t code_bytes)
{
    fuzz_require(rows->count > 0 && rows->rows[0].pc_rel == pc_rel);
    for (size_t i = 0; i < rows->count; i++) {
        fuzz_require(i == 0 || rows->rows[i].pc_rel > rows->rows[i - 1].pc_rel);
        fuzz_require(rows->rows[i].rule_id < rules->count);
    }
    fuzz_require(rows->rows[rows->count - 1].pc_rel == pc_rel + code_bytes);
}

static void read_method(const struct cfi_oat_view *view, uint64_t code_offset)
{
    struct cfi_oat_method method;
    struct base_error error = {0};
    if (cfi_oat_read_header(view, code_offset, &method) == CFI_OAT_NO_HEADER)
        return;
    fuzz_require(method.code_bytes > 0 && method.code_bytes <= view->code.size - code_offset);
    struct cfi_rule_set rules;
    struct cfi_row_list rows = {0};
    if (cfi_rule_set_init(&rules, &error) != 0)
        return;
    const struct base_bytes code = {view->code.data + code_offset, method.code_bytes};
    int certainty = cfi_oat_method_rows(view->arch, &method, code, 0x40, &rules, &rows, &error);
    fuzz_require(certainty >= 0 && certainty < CFI_OAT_CERTAINTIES);
    check_rows(&rows, &rules, 0x40, method.code_bytes);
    cfi_row_list_free(&rows);
    cfi_rule_set_free(&rules);
}

int fuzz_oat(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    const struct arch *arch = arch_by_id((enum qut_arch_id)(1 + data[0] % (QUT_ARCH_END - 1)));
    uint32_t version = (uint32_t)data[1] | (uint32_t)data[2] << 8;
    size_t code_at = (size_t)data[3] | (size_t)data[4] << 8;
    struct cfi_oat_view view = {.arch = arch, .data_vaddr = DATA_VADDR};
    data += HEAD_BYTES;
    size -= HEAD_BYTES;
    code_at = code_at < size ? code_at : size;
    if (!cfi_oat_format_of(version % 300, &view.format))
        return 0;
    view.data = (struct base_bytes){data, code_at};
    view.code = (struct base_bytes){data + code_at, size - code_at};
    view.code_vaddr = DATA_VADDR + code_at;
    for (uint64_t offset = 0, count = 0; offset < view.code.size && count < METHODS_MAX; offset += 16, count++)
        read_method(&view, offset);
    return 0;
}
