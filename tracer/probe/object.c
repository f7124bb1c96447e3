// SPDX-License-Identifier: Apache-2.0
// From an object to a script: the same image, and the same verifier. A program claims the fields that it reads.
#include <stdlib.h>

#include "bytecode/verify.h"
#include "tracer/probe/object_inside.h"

static bool say_fault(struct probe_object *object, const struct bytecode_fault *fault)
{
    const char *why = bytecode_refusal_text(fault->refusal);
    if (fault->refusal == BYTECODE_MAP || fault->refusal == BYTECODE_RECORD || fault->refusal == BYTECODE_SIZES)
        return probe_object_fail(object, "%s", why); // of no program
    return probe_object_fail(object, "section \"%s\", %s, instruction %u: %s", object->made[fault->program].section,
                             object->made[fault->program].function, fault->instruction, why);
}

static bool verify(struct probe_object *object, struct bytecode_workspace *workspace)
{
    struct probe_script *script = object->c.script;
    struct bytecode_fault fault;
    if (!bytecode_verify(script->image, script->image_bytes, workspace, &fault))
        return say_fault(object, &fault);
    const struct qut_probe_image image = qut_probe_parts(script->image);
    struct qut_probe_program *programs = (struct qut_probe_program *)(uintptr_t)image.programs;
    for (uint32_t i = 0; i < image.header->program_count; i++) {
        bytecode_look(&image, i, workspace);
        programs[i].fields = bytecode_fields_read(&image, i, workspace);
    }
    return bytecode_verify(script->image, script->image_bytes, workspace, &fault) || say_fault(object, &fault);
}

static bool make(struct probe_object *object)
{
    if (!probe_object_file(object) || !probe_object_maps(object) || !probe_object_records(object) ||
        !probe_object_programs(object))
        return false;
    if (!probe_mark_exceptions(&object->c))
        return probe_object_fail(object, "%s", object->diagnostic.text);
    struct bytecode_workspace *workspace = malloc(sizeof *workspace);
    const bool is_made = workspace && probe_make_image(&object->c);
    const bool is_good = is_made ? verify(object, workspace) : probe_object_no_memory(object);
    free(workspace);
    return is_good;
}

int probe_object_read(const void *bytes, size_t size_bytes, struct probe_script *script,
                      struct probe_object_fault *fault)
{
    struct probe_object *object = calloc(1, sizeof *object);
    *script = (struct probe_script){.image = NULL};
    *fault = (struct probe_object_fault){.text = ""};
    if (!object) {
        fault->is_no_memory = true;
        return -1;
    }
    object->fault = fault;
    object->file = (struct base_bytes){bytes, size_bytes};
    object->c = (struct probe_compiler){.script = script, .diagnostic = &object->diagnostic};
    const bool is_good = make(object);
    base_vector_free(&object->sections.vector);
    base_vector_free(&object->symbols.vector);
    base_vector_free(&object->c.programs.vector);
    base_vector_free(&object->c.maps.vector);
    base_vector_free(&object->c.code.vector);
    free(object);
    return is_good ? 0 : -1;
}
