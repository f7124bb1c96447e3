// SPDX-License-Identifier: Apache-2.0
#ifndef TRACER_PROBE_OBJECT_INSIDE_H
#define TRACER_PROBE_OBJECT_INSIDE_H

#include <elf.h>

#include "base/cursor_inline.h"
#include "tracer/probe/inside.h"
#include "tracer/probe/object.h"

// ---- object_file.c: sections and symbols, bounds looked at

struct probe_section {
    const char *name; // in the file
    uint32_t type, link, info;
    bool is_code;
    struct base_bytes bytes; // none of SHT_NOBITS
};

struct probe_symbol {
    const char *name; // in the file
    uint8_t type;     // STT_...
    uint16_t section;
    uint64_t at, size_bytes; // in its section
};

struct probe_object {
    struct probe_object_fault *fault;
    struct base_bytes file;
    struct {
        BASE_VECTOR(struct probe_section);
    } sections;
    struct {
        BASE_VECTOR(struct probe_symbol);
    } symbols;
    // What is made of it.
    struct probe_compiler c;
    struct probe_diagnostic diagnostic;
    uint32_t maps_section, records_section; // 0: it has none
    struct {
        const char *section, *function;
    } made[QUT_PROBE_PROGRAMS_MAX]; // what each program was
};

// False, and the fault; the first one stays.
bool probe_object_fail(struct probe_object *object, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool probe_object_no_memory(struct probe_object *object);
bool probe_object_file(struct probe_object *object);

// ---- object_data.c: maps and records

bool probe_object_maps(struct probe_object *object);
bool probe_object_records(struct probe_object *object);

// ---- object_code.c: functions become programs

bool probe_object_programs(struct probe_object *object);

#endif
