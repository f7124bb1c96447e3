// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/table_facts.h"

#include "qutc/code/padding.h"

struct cli_source cli_source(const struct qut_table_header *header)
{
    uint64_t eh_bytes = (uint64_t)header->eh_frame_bytes + header->eh_frame_hdr_bytes;
    // Arm executables have an empty .eh_frame beside the index that says everything.
    bool has_eh = header->flags & QUT_TABLE_FROM_EH_FRAME;
    bool has_exidx = header->exidx_bytes && header->flags & QUT_TABLE_FROM_EXIDX;
    if (has_eh && eh_bytes && !has_exidx)
        return (struct cli_source){".eh_frame + .eh_frame_hdr", eh_bytes};
    if (has_eh && eh_bytes)
        return (struct cli_source){".eh_frame + .eh_frame_hdr + .ARM.exidx + .ARM.extab",
                                   eh_bytes + header->exidx_bytes};
    if (has_exidx)
        return (struct cli_source){".ARM.exidx + .ARM.extab", header->exidx_bytes};
    if (header->debug_frame_bytes)
        return (struct cli_source){".debug_frame", header->debug_frame_bytes};
    return (struct cli_source){"", 0};
}

static uint64_t code_bytes_of(const struct qut_table *table, const struct input_image *image)
{
    uint64_t text_end = table->text_start + table->header->text_size, bytes = 0;
    for (unsigned i = 0; i < image->code_count; i++) {
        uint64_t start = image->code[i].start, end = image->code[i].end;
        start = start > table->text_start ? start : table->text_start;
        end = end < text_end ? end : text_end;
        bytes += start < end ? end - start : 0;
    }
    return bytes;
}

void cli_coverage(const struct qut_table *table, const struct input_image *image, struct cli_coverage *coverage)
{
    *coverage = (struct cli_coverage){.code_bytes = image ? code_bytes_of(table, image) : 0};
    struct qut_rule rule;
    uint64_t end = 0;
    unsigned last_reason = QUT_REFUSED_NOT;
    for (uint64_t pc = table->text_start; runtime_table_next_row(table, &pc, &end, &rule); pc = end) {
        uint64_t bytes = end - pc;
        unsigned reason = QUT_REFUSED_NOT;
        if (rule.kind == QUT_RULE_FRAME) {
            coverage->rule_bytes += bytes;
            coverage->from_code_bytes += rule.origin == QUT_RULE_FROM_CODE ? bytes : 0;
            coverage->doubtful_bytes += rule.origin == QUT_RULE_DOUBTFUL ? bytes : 0;
        } else if (rule.kind == QUT_RULE_HOLE) {
            coverage->hole_bytes += bytes;
            coverage->padding_bytes += image ? code_padding_bytes(image, pc, end) : 0;
        } else {
            coverage->refused_bytes += bytes;
            reason = rule.reason < QUT_REFUSAL_END ? rule.reason : QUT_REFUSED_NOT;
            coverage->refused[reason].bytes += bytes;
            coverage->refused[reason].rows += reason != last_reason; // blocks cut rows
        }
        last_reason = reason;
    }
}

unsigned cli_origins(const struct qut_table_header *header, const char *names[CLI_ORIGINS_MAX])
{
    static const struct {
        uint32_t flag;
        const char *name;
    } origins[CLI_ORIGINS_MAX] = {
        {QUT_TABLE_FROM_EH_FRAME, ".eh_frame"},
        {QUT_TABLE_FROM_DEBUG_FRAME, ".debug_frame"},
        {QUT_TABLE_FROM_EXIDX, ".ARM.exidx"},
        {QUT_TABLE_FROM_GNU_DEBUGDATA, ".gnu_debugdata"},
        {QUT_TABLE_FROM_DEBUG_FILE, "debug file"},
        {QUT_TABLE_FROM_PLT, ".plt"},
        {QUT_TABLE_FROM_GOPCLNTAB, ".gopclntab"},
        {QUT_TABLE_FROM_CODE, "code"},
        {QUT_TABLE_FROM_OAT_HEADERS, "OAT method headers"},
    };
    unsigned count = 0;
    for (unsigned i = 0; i < CLI_ORIGINS_MAX; i++)
        if (header->flags & origins[i].flag)
            names[count++] = origins[i].name;
    return count;
}
