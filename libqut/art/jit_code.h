// SPDX-License-Identifier: Apache-2.0
// Code that ART's JIT made and wrote no debug info for, which is its default: how a frame of it is left, by what lies
// before the code and by the code itself. As it is in ART 11 (OAT version 183), on x86-64:
//
//   cache     two mappings side by side: data (CodeInfo and more), then code. In the code dlmalloc's chunks, one a
//             method
//   chunk     8 bytes no matter what, its size and flags in 8, then what was asked for:
//   header    8 bytes no matter what, u32: how far before the code its CodeInfo lies, u32: size of the code; the code
//   CodeInfo  numbers (varints.h): flags, frame / 16, registers saved, floating-point ones, registers of the dex
//             code, tables
//
// Nothing tells where the method begins that a pc lies in: ArtMethod* is at the bottom of its frame, but it leads to
// the newest code, and not to code that was replaced while it ran, or that was entered in a loop (OSR). So it is looked
// for, from the pc backwards. What is no method's beginning has no chunk: its size has to be that of the code and to
// lead to another chunk, and the CodeInfo has to lie in the data and to make sense. Code that stands on a stack is not
// given back.
#ifndef QUT_ART_JIT_CODE_H
#define QUT_ART_JIT_CODE_H

#include "libqut/art/instruction.h"
#include "libqut/elf/image_memory.h"

struct art_jit_cache {
    uint64_t data_start, code_start, code_end; // data ends where code starts
};

static inline bool art_jit_cache_has(const struct art_jit_cache *cache, uint64_t pc)
{
    return pc - cache->code_start < cache->code_end - cache->code_start;
}

// Whether this code is known on an architecture.
bool art_jit_knows(const struct arch *arch);
// Whether a mapping of this name is one of the JIT's: of memory of its own, or a part of an anonymous one.
bool art_jit_is_cache_name(const char *path, size_t path_bytes);
// Where the kernel keeps no names and gives no shared memory: whether code begins with what dlmalloc keeps of a space.
bool art_jit_is_space(const struct elf_art_memory *memory, uint64_t code_start);

enum { ART_JIT_CHUNK_AT = 24, ART_JIT_HEADER_AT = 8 }; // bytes before the code: the chunk's size, the header

struct art_jit_method {
    uint64_t start, info_address;
    uint32_t code_bytes, frame_bytes, core_mask;
};

// A frame at one instruction.
struct art_jit_frame {
    int32_t cfa_bytes;  // caller's sp = sp + this
    uint32_t saved;     // registers in their places: numbers of the instruction set
    uint32_t core_mask; // all that have one
};

// ---- jit_frame.c

// Between two instructions.
struct art_jit_state {
    int32_t cfa_bytes;
    uint32_t saved;
};

// Where a branch goes that is not taken in the body's state.
struct art_jit_branch {
    uint32_t at;
    struct art_jit_state state;
};

enum { ART_JIT_BRANCHES_MAX = 8, ART_JIT_WINDOW_BYTES = 1024 };
struct art_jit_follower {
    const struct arch *arch;
    const struct art_jit_arch *jit;
    const struct art_jit_method *method;
    struct art_jit_state body, now;
    bool has_body;
    bool in_block; // else the last instruction went on elsewhere
    bool is_behind_call;
    unsigned pending_count;
    struct art_jit_branch pending[ART_JIT_BRANCHES_MAX];
};

// What would be too much for a signal handler's stack.
struct art_jit_scratch {
    uint8_t window[ART_JIT_WINDOW_BYTES]; // of memory
    struct art_jit_follower follower;
    struct art_instruction instruction;
};

// What the functions here are for: pc is where a frame stands, behind a call, or where it was interrupted. The rule
// holds at that very instruction. False: nothing is known of it. Signal-safe where memory->read is.
bool art_jit_frame_rule(const struct art_jit_cache *cache, const struct elf_art_memory *memory,
                        struct art_jit_scratch *scratch, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule);

// The method at an address.
bool art_jit_method_at(const struct art_jit_cache *cache, const struct elf_art_memory *memory,
                       struct art_jit_scratch *scratch, uint64_t address, struct art_jit_method *method);

// By the instructions from the method's first on.
bool art_jit_frame_at(const struct elf_art_memory *memory, struct art_jit_scratch *scratch,
                      const struct art_jit_method *method, uint64_t pc, enum arch_pc_kind kind,
                      struct art_jit_frame *frame);
void art_jit_set_rule(const struct arch *arch, const struct art_jit_frame *frame, struct qut_rule *rule);

// What ART makes of an architecture. Masks are by the numbers of the instruction set.
struct art_jit_arch {
    uint32_t may_save_core, may_save_fp, callee_saves;
    uint8_t ra_number;        // in masks
    uint8_t dwarf_numbers[8]; // of the first registers; the others' are the same
};
const struct art_jit_arch *art_jit_arch(const struct arch *arch); // NULL: not known

#endif
