// SPDX-License-Identifier: Apache-2.0
// The parts of an image, and then each of its programs.
#include "bytecode/inside.h"

static bool map_is_sound(const struct qut_probe_map *map)
{
    if (map->kind >= QUT_PROBE_MAP_KIND_END || map->key_words > QUT_PROBE_KEY_WORDS_MAX)
        return false;
    if (map->kind != QUT_PROBE_LHIST)
        return map->low == 0 && map->step == 0 && map->steps == 0;
    // So that low + step * steps is a number, too.
    const int64_t far = INT64_C(1) << 62;
    return map->steps > 0 && map->steps <= QUT_PROBE_LHIST_STEPS_MAX && map->step > 0 && map->low >= -far &&
           map->low < far && map->step <= far / (int64_t)map->steps;
}

static enum bytecode_refusal header_refusal(const struct qut_probe_header *header, size_t size_bytes)
{
    if (size_bytes < sizeof *header)
        return BYTECODE_SIZES;
    for (unsigned i = 0; i < sizeof header->magic; i++)
        if (header->magic[i] != (uint8_t)QUT_PROBE_MAGIC[i])
            return BYTECODE_HEADER;
    if (header->version != QUT_PROBE_VERSION)
        return BYTECODE_HEADER;
    if (header->program_count == 0 || header->program_count > QUT_PROBE_PROGRAMS_MAX ||
        header->map_count > QUT_PROBE_MAPS_MAX || header->record_count > QUT_PROBE_RECORDS_MAX ||
        header->instruction_count > QUT_PROBE_PROGRAMS_MAX * QUT_PROBE_INSTRUCTIONS_MAX)
        return BYTECODE_SIZES;
    const size_t all = sizeof *header + header->program_count * sizeof(struct qut_probe_program) +
                       header->map_count * sizeof(struct qut_probe_map) +
                       header->record_count * sizeof(struct qut_probe_record) +
                       header->instruction_count * sizeof(struct qut_probe_instruction);
    return header->total_bytes == size_bytes && size_bytes == all ? BYTECODE_OK : BYTECODE_SIZES;
}

static enum bytecode_refusal program_refusal(const struct qut_probe_program *program, uint32_t first, uint32_t all)
{
    if (program->kind >= QUT_PROBE_KIND_END || program->instruction_count == 0 ||
        program->instruction_count > QUT_PROBE_INSTRUCTIONS_MAX)
        return BYTECODE_PROGRAM;
    if (program->first_instruction != first || program->instruction_count > all - first)
        return BYTECODE_SIZES;
    return program->fields & ~qut_probe_fields_of((enum qut_probe_kind)program->kind) ? BYTECODE_FIELDS : BYTECODE_OK;
}

static enum bytecode_refusal parts_refusal(const struct qut_probe_image *image, struct bytecode_fault *fault)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < image->header->map_count; i++)
        if (!map_is_sound(&image->maps[i]))
            return BYTECODE_MAP;
    for (uint32_t i = 0; i < image->header->record_count; i++)
        if (image->records[i].words > QUT_PROBE_RECORD_WORDS_MAX || image->records[i].zero)
            return BYTECODE_RECORD;
    for (uint32_t i = 0; i < image->header->program_count; i++) {
        fault->program = i;
        const enum bytecode_refusal refusal =
            program_refusal(&image->programs[i], first, image->header->instruction_count);
        if (refusal != BYTECODE_OK)
            return refusal;
        first += image->programs[i].instruction_count;
    }
    fault->program = 0;
    return first == image->header->instruction_count ? BYTECODE_OK : BYTECODE_SIZES;
}

bool bytecode_verify(const void *bytes, size_t size_bytes, struct bytecode_workspace *workspace,
                     struct bytecode_fault *fault)
{
    *fault = (struct bytecode_fault){.refusal = header_refusal(bytes, size_bytes)};
    if (fault->refusal != BYTECODE_OK)
        return false;
    const struct qut_probe_image image = qut_probe_parts(bytes);
    fault->refusal = parts_refusal(&image, fault);
    if (fault->refusal != BYTECODE_OK)
        return false;
    for (uint32_t i = 0; i < image.header->program_count; i++)
        if (!bytecode_verify_program(&image, i, workspace, fault))
            return false;
    *fault = (struct bytecode_fault){.refusal = BYTECODE_OK};
    return true;
}
