// SPDX-License-Identifier: Apache-2.0
// Which methods a place in HotSpot's code belongs to, those that were inlined there among them, and their lines. Read
// from the machine's memory as it is now: what lives may be unloaded, and its memory used again, so everything is
// checked to be what it should, and what says whose code it is, once more at the end. Not for handlers.
//
//   compiled      pc -> the description of the place -> scopes, innermost first -> method, bytecode index
//   interpreted   the frame says its method and bytecode
//   both          method -> its constants -> names, the source file's too; the table of lines behind the bytecode
#ifndef QUT_HOTSPOT_SOURCE_H
#define QUT_HOTSPOT_SOURCE_H

#include "libqut/hotspot/machine.h"

enum {
    HOTSPOT_LEVELS_MAX = 64, // C2 inlines 15 deep, and more where it is forced to; of a deeper place nothing is told
    HOTSPOT_FILE_BYTES = 192,
    HOTSPOT_NO_BYTECODE = -2, // -1: where the method is entered
};

struct hotspot_level {
    uint64_t method;
    int32_t bytecode; // its index
};

// Innermost first; the last one is the method that was compiled.
struct hotspot_levels {
    uint64_t blob, start, end; // of its code
    uint64_t method;
    int32_t compile_id;
    bool is_near; // interrupted between two places that differ: the methods that both are in, and the innermost one's
                  // bytecode is that of the second place
    int32_t bytecode_before; // ... of the first place
    unsigned count;
    struct hotspot_level items[HOTSPOT_LEVELS_MAX];
};

// False: no compiled method lies there, or its description is not to be believed. A wrapper of a native method has
// itself, without bytecode; so has a method where none of its places is described.
bool hotspot_levels_at(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                       enum arch_pc_kind kind, struct hotspot_levels *levels);
// Whether the same code still lies there.
bool hotspot_levels_hold(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t pc,
                         const struct hotspot_levels *levels);

// Tells whether what a frame stood in is there still: of a compiled method which compilation it is, of an interpreted
// one's word where its constants are. 0: not known.
uint32_t hotspot_code_id(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                         uint64_t lookup_pc);

// An interpreted frame's, by arch_interpreted_word.
bool hotspot_level_of_word(const struct hotspot_machine *machine, const struct elf_art_memory *memory, uint64_t word,
                           struct hotspot_level *level);

struct hotspot_source {
    char method[HOTSPOT_NAME_BYTES];
    char file[HOTSPOT_FILE_BYTES]; // as its class says, without folders; "": not known, or native
    uint32_t line;                 // 0: not known
};
// False: it is no method, or not any more.
bool hotspot_source_of(const struct hotspot_machine *machine, const struct elf_art_memory *memory,
                       const struct hotspot_level *level, struct hotspot_source *source);

#endif
