// SPDX-License-Identifier: Apache-2.0
// Functions of sections become programs: a copy for each kind of place that their section names, in which maps and
// records have their numbers.
#include <qut/probe.h>

#include <stdio.h>
#include <stdlib.h>

#include "bytecode/verify.h"
#include "tracer/probe/builtin.h"
#include "tracer/probe/object_inside.h"

enum { INSTRUCTION_BYTES = sizeof(struct qut_probe_instruction), CALLS_OWN = 1, FUNCTIONS_MAX = 64 };
enum { MAP_ADDRESS = 1 }; // R_BPF_64_64: an address in the number of 64 bits

struct code { // of one section
    uint32_t section;
    const char *name;
    struct qut_probe_instruction *items; // malloc's
    uint32_t count;
};

// ---- maps and records in instructions

// Which function an instruction is of, and where in it: for people.
static bool refuse_at(struct probe_object *object, const struct code *code, uint64_t at, const char *why)
{
    const char *function = "?";
    uint64_t within = at;
    for (size_t i = 0; i < object->symbols.count; i++) {
        const struct probe_symbol *symbol = &object->symbols.items[i];
        if (symbol->section == code->section && symbol->type == STT_FUNC && symbol->at / INSTRUCTION_BYTES <= at &&
            at - symbol->at / INSTRUCTION_BYTES <= within) {
            function = symbol->name;
            within = at - symbol->at / INSTRUCTION_BYTES;
        }
    }
    return probe_object_fail(object, "section \"%s\", %s, instruction %llu: %s", code->name, function,
                             (unsigned long long)within, why);
}

static bool relocate(struct probe_object *object, struct code *code, struct base_cursor *c)
{
    const uint64_t where = base_read_u64(c), info = base_read_u64(c), at = where / INSTRUCTION_BYTES;
    const uint64_t symbol_number = ELF64_R_SYM(info);
    if (where % INSTRUCTION_BYTES || at >= code->count || symbol_number >= object->symbols.count)
        return probe_object_fail(object, "section \"%s\": a relocation is of no instruction, or of no symbol",
                                 code->name);
    struct qut_probe_instruction *one = &code->items[at];
    const struct probe_symbol *symbol = &object->symbols.items[symbol_number];
    const bool is_map = object->maps_section && symbol->section == object->maps_section,
               is_record = object->records_section && symbol->section == object->records_section;
    if (one->opcode == QUT_PROBE_OP_CALL)
        return refuse_at(object, code, at, "calls a function of its own or of others: those are inlined, or helpers");
    if (ELF64_R_TYPE(info) != MAP_ADDRESS || one->opcode != QUT_PROBE_OP_WIDE || at + 1 >= code->count)
        return refuse_at(object, code, at, "a relocation that is not of a map's or a record's address");
    if (!is_map && !is_record)
        return refuse_at(object, code, at, "the address of data: a program has its stack, maps and records only");
    const uint64_t bytes =
        is_map ? sizeof(struct qut_probe_map_definition) : sizeof(struct qut_probe_record_definition);
    const uint64_t most = is_map ? object->c.maps.count : object->c.script->records.count;
    const uint64_t place = symbol->at + (uint64_t)(int64_t)one->immediate;
    if (place % bytes || place / bytes >= most)
        return refuse_at(object, code, at, "an address within a map or a record, or beyond them");
    one->immediate = (int32_t)(place / bytes);
    one[1].immediate = 0;
    return true;
}

static bool relocate_all(struct probe_object *object, struct code *code)
{
    for (size_t i = 0; i < object->sections.count; i++) {
        const struct probe_section *section = &object->sections.items[i];
        const bool is_other = section->type == SHT_RELA;
        if ((section->type != SHT_REL && !is_other) || section->info != code->section)
            continue;
        if (is_other || section->bytes.size % sizeof(Elf64_Rel))
            return probe_object_fail(object, "section \"%s\": its relocations are of no form that is known",
                                     code->name);
        struct base_cursor c = base_cursor(section->bytes);
        while (base_cursor_left(&c))
            if (!relocate(object, code, &c))
                return false;
    }
    return true;
}

static bool copy_code(struct probe_object *object, struct code *code)
{
    const struct base_bytes bytes = object->sections.items[code->section].bytes;
    code->count = (uint32_t)(bytes.size / INSTRUCTION_BYTES);
    code->items = malloc(bytes.size);
    if (!code->items)
        return probe_object_no_memory(object);
    memcpy(code->items, bytes.data, bytes.size);
    for (uint32_t i = 0; i < code->count; i++) {
        const struct qut_probe_instruction *one = &code->items[i];
        if (one->opcode == QUT_PROBE_OP_CALL && qut_probe_source(one) == CALLS_OWN)
            return refuse_at(object, code, i, "calls a function of its own: those are static, and always inlined");
        i += one->opcode == QUT_PROBE_OP_WIDE;
    }
    return relocate_all(object, code);
}

// ---- programs

static bool take_section_places(struct probe_object *object, const struct code *code)
{
    struct probe_compiler *c = &object->c;
    c->text = code->name;
    c->length = (uint32_t)strlen(code->name);
    c->next = 0;
    c->first_place = c->script->places.count;
    if (probe_next(c) && !probe_builtin_here(c) && probe_take_places(c)) {
        if (c->token.kind == PROBE_TOKEN_END)
            return true;
        probe_fail_here(c, "the end of the section's name");
    }
    if (!object->diagnostic.text[0])
        snprintf(object->diagnostic.text, sizeof object->diagnostic.text,
                 "it is made of maps of a script's own: in an object entry and return have to say it");
    if (object->diagnostic.is_no_memory)
        return probe_object_no_memory(object);
    return probe_object_fail(object, "section \"%s\", character %u: %s", code->name, object->diagnostic.at + 1,
                             object->diagnostic.text);
}

static bool add_program(struct probe_object *object, const struct code *code, const struct probe_symbol *function,
                        enum qut_probe_kind kind)
{
    struct probe_compiler *c = &object->c;
    const uint32_t count = (uint32_t)(function->size_bytes / INSTRUCTION_BYTES);
    if (c->programs.count == QUT_PROBE_PROGRAMS_MAX)
        return probe_object_fail(object, "more than %d programs: a function is one for each kind of place",
                                 QUT_PROBE_PROGRAMS_MAX);
    if (count > QUT_PROBE_INSTRUCTIONS_MAX)
        return probe_object_fail(object, "section \"%s\", %s: it has %u instructions, and at most %d are looked at",
                                 code->name, function->name, count, QUT_PROBE_INSTRUCTIONS_MAX);
    struct qut_probe_program *program = BASE_ADD(&c->programs);
    if (!program || !BASE_RESERVE(&c->code, count))
        return probe_object_no_memory(object);
    object->made[c->programs.count - 1].section = code->name;
    object->made[c->programs.count - 1].function = function->name;
    *program = (struct qut_probe_program){.first_instruction = (uint32_t)c->code.count,
                                          .instruction_count = count,
                                          .kind = kind,
                                          .fields = qut_probe_fields_of(kind)};
    memcpy(c->code.items + c->code.count, code->items + function->at / INSTRUCTION_BYTES, count * sizeof *code->items);
    c->code.count += count;
    return true;
}

static bool take_function(struct probe_object *object, const struct code *code, const struct probe_symbol *function)
{
    struct probe_compiler *c = &object->c;
    if (!take_section_places(object, code))
        return false;
    const uint32_t end = probe_number_programs(c, c->first_place);
    for (size_t i = c->first_place; c->programs.count < end; i++) {
        const struct probe_place *place = &c->script->places.items[i];
        if (place->program == c->programs.count && !add_program(object, code, function, place->kind))
            return false;
    }
    return true;
}

// All of the section is of functions, which do not lie in each other.
static bool take_functions(struct probe_object *object, const struct code *code)
{
    uint64_t covered = 0;
    const uint64_t all = (uint64_t)code->count * INSTRUCTION_BYTES;
    for (unsigned taken = 0; covered < all; taken++) {
        const struct probe_symbol *function = NULL;
        for (size_t i = 0; !function && i < object->symbols.count; i++) {
            const struct probe_symbol *symbol = &object->symbols.items[i];
            if (symbol->section == code->section && symbol->type == STT_FUNC && symbol->at == covered)
                function = symbol;
        }
        if (!function || taken == FUNCTIONS_MAX || function->size_bytes % INSTRUCTION_BYTES ||
            function->size_bytes == 0 || function->size_bytes > all - covered)
            return probe_object_fail(object, "section \"%s\": its bytes from 0x%llx on are of no function", code->name,
                                     (unsigned long long)covered);
        if (!take_function(object, code, function))
            return false;
        covered += function->size_bytes;
    }
    return true;
}

static bool take_section(struct probe_object *object, uint32_t section)
{
    const struct probe_section *own = &object->sections.items[section];
    struct code code = {.section = section, .name = own->name};
    if (own->bytes.size % INSTRUCTION_BYTES)
        return probe_object_fail(object, "section \"%s\": its bytes are no instructions", own->name);
    const bool is_good = copy_code(object, &code) && take_functions(object, &code);
    free(code.items);
    return is_good;
}

// What was not inlined stands in .text; who calls it is refused.
bool probe_object_programs(struct probe_object *object)
{
    for (uint32_t i = 1; i < object->sections.count; i++) {
        const struct probe_section *section = &object->sections.items[i];
        const bool is_code = section->type == SHT_PROGBITS && section->is_code && section->bytes.size;
        if (is_code && strcmp(section->name, ".text") != 0 && !take_section(object, i))
            return false;
    }
    return object->c.programs.count ||
           probe_object_fail(object, "it has no program: a function in a section as SEC(\"entry:libc.so*!malloc\")");
}
