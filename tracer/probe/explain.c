// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytecode/maps.h"
#include "bytecode/verify.h"
#include "tracer/probe/values.h"

// ---- programs

static const struct qut_probe_instruction *code_of(const struct probe_script *script, uint32_t program, uint32_t *count)
{
    const struct qut_probe_image image = qut_probe_parts(script->image);
    *count = image.programs[program].instruction_count;
    return image.instructions + image.programs[program].first_instruction;
}

static bool reads_memory(const struct qut_probe_instruction *instruction)
{
    return instruction->opcode == QUT_PROBE_OP_CALL &&
           (instruction->immediate == QUT_PROBE_READ || instruction->immediate == QUT_PROBE_STRING);
}

static bool is_jump(uint8_t opcode)
{
    const uint8_t class = opcode & QUT_PROBE_CLASS_MASK;
    return (class == QUT_PROBE_CLASS_JMP || class == QUT_PROBE_CLASS_JMP32) && opcode != QUT_PROBE_OP_CALL &&
           opcode != QUT_PROBE_OP_EXIT;
}

// Instructions, or reads only, on the way that has most of them: jumps lead forwards, so it is known from the end on.
static uint32_t most_of(const struct qut_probe_instruction *code, uint32_t count, bool of_reads)
{
    uint16_t most[QUT_PROBE_INSTRUCTIONS_MAX + 2] = {0};
    for (uint32_t i = count; i-- > 0;) {
        const struct qut_probe_instruction *one = &code[i];
        const uint16_t own = !of_reads || reads_memory(one);
        const bool is_wide = one->opcode == QUT_PROBE_OP_WIDE;
        uint16_t behind = one->opcode == QUT_PROBE_OP_EXIT ? 0 : most[i + (is_wide ? 2 : 1)];
        if (is_jump(one->opcode)) {
            const uint16_t there = most[(int64_t)i + 1 + one->offset];
            const bool is_always = one->opcode == QUT_PROBE_OP_JA;
            behind = is_always || there > behind ? there : behind;
        }
        most[i] = (uint16_t)(own + behind);
    }
    return most[0];
}

static void explain_fields(FILE *out, uint32_t fields, uint32_t reads)
{
    bool is_first = true;
    for (uint32_t field = 0; field < QUT_PROBE_FIELD_END; field++)
        if (fields >> field & 1) {
            fprintf(out, "%s%s", is_first ? "    looks at " : ", ", probe_field_name(field));
            is_first = false;
        }
    if (reads)
        fprintf(out, "%sthe program's memory, %" PRIu32 " time%s at most", is_first ? "    looks at " : ", ", reads,
                reads == 1 ? "" : "s");
    if (!is_first || reads)
        fputc('\n', out);
}

// Characters that would begin another line, or that a terminal would obey, are shown as C has them.
static void print_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fputc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
    fputc('"', out);
}

struct done { // of a program, as bits
    uint64_t added, looked_up, printed, cleared, records;
    bool stacks, paths;
};

// Which map, or record, a call is about is the constant that r1 has, as the verifier knows it.
static struct done done_by(const struct qut_probe_instruction *code, uint32_t count,
                           const struct bytecode_workspace *known)
{
    struct done done = {.added = 0};
    for (uint32_t i = 0; i < count; i++) {
        const struct qut_probe_instruction *one = &code[i];
        int32_t constant;
        bytecode_constant(known, i, 1, &constant);
        const uint64_t bit = UINT64_C(1) << ((uint32_t)constant & 63);
        if (one->opcode == QUT_PROBE_OP_CALL)
            switch (one->immediate) {
            case QUT_PROBE_AGGREGATE: done.added |= bit; break;
            case QUT_PROBE_LOOKUP: done.looked_up |= bit; break;
            case QUT_PROBE_EMIT: done.records |= bit; break;
            case QUT_PROBE_PRINT: done.printed |= bit; break;
            case QUT_PROBE_CLEAR: done.cleared |= bit; break;
            case QUT_PROBE_STACK: done.stacks = true; break;
            case QUT_PROBE_PATH: done.paths = true; break;
            default: break;
            }
        i += one->opcode == QUT_PROBE_OP_WIDE;
    }
    return done;
}

static void explain_maps_of(FILE *out, const struct probe_script *script, const char *does, uint64_t maps)
{
    bool is_first = true;
    for (uint32_t i = 0; i < script->maps.count; i++)
        if (maps >> i & 1) {
            fprintf(out, "%s%s@%s", is_first ? does : "", is_first ? " " : ", ", script->maps.items[i].name);
            is_first = false;
        }
    if (!is_first)
        fputc('\n', out);
}

static void explain_program(FILE *out, const struct probe_script *script, uint32_t program,
                            struct bytecode_workspace *known)
{
    uint32_t count;
    const struct qut_probe_image image = qut_probe_parts(script->image);
    const struct qut_probe_instruction *code = code_of(script, program, &count);
    const uint32_t kind = image.programs[program].kind;
    if (qut_probe_is_mark(kind)) {
        fputs(kind == QUT_PROBE_THROWS ? "    notes that calls further out may be left\n"
                                       : "    finds out which calls were left\n",
              out);
        return;
    }
    bytecode_look(&image, program, known);
    const struct done done = done_by(code, count, known);
    explain_fields(out, image.programs[program].fields, most_of(code, count, true));
    if (done.stacks)
        fputs("    takes the stack of who called it\n", out);
    if (done.paths)
        fputs("    asks the kernel what a descriptor is\n", out);
    explain_maps_of(out, script, "    changes", done.added);
    explain_maps_of(out, script, "    looks up", done.looked_up);
    explain_maps_of(out, script, "    prints", done.printed);
    explain_maps_of(out, script, "    clears", done.cleared);
    for (uint32_t i = 0; i < script->records.count; i++)
        if (done.records >> i & 1) {
            fputs("    says ", out);
            print_text(out, script->records.items[i].format);
            fprintf(out, ", %" PRIu32 " bytes\n", script->records.items[i].words.words * 8);
        }
    fprintf(out, "    takes %" PRIu32 " instructions at most\n", most_of(code, count, false));
}

// ---- places

static void explain_functions(FILE *out, const char *pattern, const uint32_t *count)
{
    if (count && *count == 1)
        fputs("the one function of ", out);
    else if (count)
        fprintf(out, "one of %" PRIu32 " functions of ", *count);
    print_text(out, pattern);
}

static void explain_place(FILE *out, const struct probe_place *place, const struct probe_counts *counts)
{
    switch (place->kind) {
    case QUT_PROBE_BEGIN: fputs("before the others, in the tool", out); return;
    case QUT_PROBE_END: fputs("after the others, in the tool", out); return;
    case QUT_PROBE_TIMER: fprintf(out, "every %" PRIu64 " ms, in the tool", place->period_ns / 1000000); return;
    default: break;
    }
    if (place->kind == QUT_PROBE_PLACE) {
        if (place->file) {
            fprintf(out, "whenever it comes to line %" PRIu32 " of %s, in each function that has code of it",
                    place->line, place->file);
            const char *name = strchr(place->pattern, '!');
            if (name)
                fprintf(out, ", of \"%.*s\"", (int)(name - place->pattern), place->pattern);
            return;
        }
        fprintf(out, "whenever it comes to the place 0x%" PRIx64 " bytes behind the entry of ", place->offset_bytes);
        explain_functions(out, place->pattern, counts ? &counts->functions : NULL);
        return;
    }
    const bool is_entry = place->kind == QUT_PROBE_ENTRY || qut_probe_is_mark(place->kind);
    fputs(is_entry                          ? "whenever "
          : place->kind == QUT_PROBE_UNWIND ? "whenever it was left, and has not returned, from "
                                            : "whenever it has returned from ",
          out);
    explain_functions(out, place->pattern, counts ? &counts->functions : NULL);
    if (!place->caller) {
        fputs(is_entry ? " is entered" : "", out);
        return;
    }
    fputs(is_entry ? " is called in " : " to ", out);
    explain_functions(out, place->caller, counts ? &counts->callers : NULL);
}

// ---- maps

static void explain_map(FILE *out, const struct probe_script *script, const struct bytecode_maps *maps, uint32_t number)
{
    const struct bytecode_map *map = &maps->maps[number];
    fprintf(out, "@%s: %s, ", script->maps.items[number].name, probe_map_kind_name(map->map->kind));
    if (map->map->key_words)
        fprintf(out, "%" PRIu32 " keys of %" PRIu32 " bytes at most, ", map->slot_count, map->map->key_words * 8);
    fprintf(out, "%" PRIu64 " bytes\n", (1 + (uint64_t)map->slot_count * map->slot_words) * 8);
}

char *probe_explain(const struct probe_script *script, const struct probe_counts *counts)
{
    char *shown = NULL;
    size_t size;
    struct bytecode_maps maps;
    const struct qut_probe_image image = qut_probe_parts(script->image);
    struct bytecode_workspace *known = malloc(sizeof *known);
    FILE *out = known ? open_memstream(&shown, &size) : NULL;
    if (!out) {
        free(known);
        return NULL;
    }
    for (uint32_t program = 0; program < image.header->program_count; program++) {
        const char *between = "";
        for (size_t i = 0; i < script->places.count; i++)
            if (script->places.items[i].program == program) {
                fputs(between, out);
                explain_place(out, &script->places.items[i], counts ? &counts[i] : NULL);
                between = ", and\n";
            }
        fputs(":\n", out);
        explain_program(out, script, program, known);
    }
    free(known);
    bytecode_maps_lay_out(&maps, &image);
    for (uint32_t i = 0; i < maps.map_count; i++)
        explain_map(out, script, &maps, i);
    if (maps.map_count)
        fprintf(out, "%" PRIu64 " bytes are shared with the program for them.\n", maps.words * 8);
    if (fclose(out) == 0)
        return shown;
    free(shown);
    return NULL;
}
