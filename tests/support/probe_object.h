// SPDX-License-Identifier: Apache-2.0
// Objects of probes, as `clang -target bpf -c` writes them, without it.
#ifndef TESTS_SUPPORT_PROBE_OBJECT_H
#define TESTS_SUPPORT_PROBE_OBJECT_H

#include <qut/probe.h>

#include "formats/qut_probe.h"
#include "tests/support/elf_builder.h"

enum { PROBE_OBJECT_CODE_MAX = 24, PROBE_OBJECT_RELOCATIONS_MAX = 4, PROBE_OBJECT_MAPS_MAX = 3 };

enum { // symbols, by their numbers
    PROBE_OBJECT_FUNCTION = 1,
    PROBE_OBJECT_MAP = 2, // "map0", and so on
    PROBE_OBJECT_RECORD = PROBE_OBJECT_MAP + PROBE_OBJECT_MAPS_MAX,
    PROBE_OBJECT_SYMBOLS,
};

struct probe_object_relocation {
    uint32_t instruction, type, symbol;
};

struct probe_object_spec { // one function, "called"
    const char *section;
    struct qut_probe_instruction code[PROBE_OBJECT_CODE_MAX]; // up to the last one that is not all zeros
    struct probe_object_relocation relocations[PROBE_OBJECT_RELOCATIONS_MAX]; // of a type
    struct qut_probe_map_definition maps[PROBE_OBJECT_MAPS_MAX];
    uint32_t map_count;
    struct qut_probe_record_definition record;
    uint16_t machine, type; // 0: EM_BPF, ET_REL
};

struct build_buffer probe_object_write(const struct probe_object_spec *spec);
// Counts calls by thread, and says a text of each.
void probe_object_sample(struct probe_object_spec *spec);

#endif
