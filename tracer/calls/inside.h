// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share: one file's code, as far as it has been looked at.
#ifndef TRACER_CALLS_INSIDE_H
#define TRACER_CALLS_INSIDE_H

#include <elf.h>

#include "base/vector.h"
#include "qutc/cfi/frame_program.h"
#include "tracer/calls/plan.h"
#include "tracer/calls/thunk.h"
#include "tracer/symbols/symbols.h"

enum { CALLS_NAME_MAX = 4096 };

// ---- decode_x86.c, decode_aarch64.c: one instruction, as far as it matters where it stands

enum calls_flow {
    CALLS_FLOW_NEXT = 0,
    CALLS_FLOW_JUMP,      // has a target
    CALLS_FLOW_CONDITION, // has a target
    CALLS_FLOW_LOOP,      // jrcxz and the like: has a target
    CALLS_FLOW_CALL,      // has a target
    CALLS_FLOW_CALL_BY,   // register or memory
    CALLS_FLOW_STOP,      // jumps by register or memory, returns, traps: what follows is not executed next
};

enum calls_base { CALLS_BASE_NONE = 0, CALLS_BASE_SP, CALLS_BASE_FP };

struct calls_instruction {
    uint8_t length;
    uint8_t flow;       // enum calls_flow
    uint8_t operand_at; // of the distance to target or address; of CALL_BY, of ModRM
    uint8_t base;       // enum calls_base: memory at base + offset, without an index
    uint8_t words;      // that many there
    uint8_t signs;      // as landing mark: the return address; QUT_PLAN_SIGNED_A or _B
    // Where a call leaves its return address in a register, the link register.
    bool reads_link, writes_link;
    bool is_nop, is_landing_mark /* endbr64 */, is_pop, is_movable;
    bool has_address; // memory relative to the instruction
    bool is_lea;
    uint64_t target;   // or address: virtual address of the file
    int64_t offset;    // of `base`
    uint64_t constant; // an absolute address that may be meant: of files that are not relocated; 0: none
};

struct calls_decoder {
    uint16_t elf_machine;
    // False where these bytes are no instruction. Any thread. NULL: this build has no decoder for the machine.
    bool (*read)(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *instruction);
    uint8_t unit_bytes;           // instructions stand at multiples of these
    uint8_t jump_bytes;           // of the jump to a thunk. Where that is one unit, it fits everywhere
    uint8_t fp_reg;               // of CALLS_BASE_FP, in DWARF's numbers
    uint32_t relative, irelative; // types of relocations
};
extern const struct calls_decoder calls_decoder_x86_64, calls_decoder_aarch64;

// common_x86_64.c: the same as Zydis says of an instruction, at once. False: it is not one of those that are common.
bool calls_read_common_x86_64(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *instruction);
// decode_x86.c: what Zydis says. False: no instruction.
bool calls_read_by_zydis(struct base_bytes bytes, uint64_t vaddr, struct calls_instruction *instruction);

// ---- marks: one bit for each byte of the file's code

struct calls_marks {
    uint64_t start, end;
    uint64_t *bits;
};

static inline void calls_mark(struct calls_marks *marks, uint64_t vaddr)
{
    if (vaddr >= marks->start && vaddr < marks->end)
        marks->bits[(vaddr - marks->start) / 64] |= (uint64_t)1 << ((vaddr - marks->start) % 64);
}

static inline bool calls_is_marked(const struct calls_marks *marks, uint64_t vaddr)
{
    return vaddr >= marks->start && vaddr < marks->end &&
           (marks->bits[(vaddr - marks->start) / 64] >> ((vaddr - marks->start) % 64) & 1);
}

// ---- the file

const char *calls_module_name(const char *path); // its last part

// Code that belongs together: what an FDE covers, or a symbol with a size where none does.
struct calls_region {
    uint64_t start, end;
    uint32_t fde;       // index in work->records; UINT32_MAX: none
    uint8_t mark_bytes; // of the endbr64 that it begins with, where indirect branches land; else 0
    bool is_entry;      // by its first row: the return address is on top
    bool is_signal;     // the FDE says that a signal interrupted its caller
    bool reads_return;  // something in it touches the word of the return address
    bool keeps_return;  // it calls while its own return address has no place on the stack
    bool loops_inside;  // jumps to its own entry with a frame on the stack
    bool loops;         // jumps to its own entry
    bool closed;        // its last instruction does not go on behind it
    bool branched_to;   // conditional jumps of other functions lead to its start
    bool has_sled;      // a compiler left a place for its entries
    bool is_guessed;    // nothing but nops that were left says where it begins
};

// Nops between regions, which nothing leads to.
struct calls_gap {
    uint64_t start, end;
};

// A place that a compiler left for entries.
struct calls_sled {
    uint64_t place; // its first byte
    uint64_t entry; // of XRay's: where the function begins
    bool is_xray;
};

struct calls_work {
    const struct input_image *image;
    const struct calls_decoder *decoder;
    const struct symbols *symbols;
    struct base_error *error;
    const char *module;
    uint64_t text_start, text_end;
    bool is_fixed; // not relocated: constants may be addresses
    BASE_VECTOR(struct calls_region) regions;
    BASE_VECTOR(struct calls_gap) gaps;
    BASE_VECTOR(struct calls_sled) sleds;     // ascending
    BASE_VECTOR(uint64_t) leas;               // what `lea` takes the address of
    BASE_VECTOR(uint64_t) resolvers;          // entries, sorted
    struct calls_marks targets;               // what is not only reached from the instruction before it
    const struct input_frame_section *frames; // that the records are of; NULL: none
    struct cfi_frame_records records;
    struct cfi_program_runner runner;
    struct cfi_rule_set rules;
    struct cfi_row_list rows; // of one region
};

// regions.c: fills work->regions, sorted by start, and marks where functions begin.
int calls_find_regions(struct calls_work *work);
// The FDE's rows into work->rows, up to end_rel. -1: no memory.
int calls_rows(struct calls_work *work, uint32_t fde, uint32_t end_rel);
// The region with that start, or the one that contains it; NULL: none.
struct calls_region *calls_region_at(const struct calls_work *work, uint64_t vaddr);
// The first one that begins behind an address; NULL: none.
struct calls_region *calls_region_behind(const struct calls_work *work, uint64_t vaddr);

// sleds.c: fills work->sleds.
int calls_read_sleds(struct calls_work *work);
// Functions that nothing else tells of; behind work->regions, which are sorted.
int calls_add_sled_regions(struct calls_work *work);
// Whether something leads into the nops of a region, or right behind them.
bool calls_leads_into_nops(const struct calls_work *work, const struct calls_region *region);
// Whether a function that begins there has one; whether the instruction is the jump over one of XRay's.
bool calls_is_sled_entry(const struct calls_work *work, uint64_t entry);
bool calls_is_sled_jump(const struct calls_work *work, uint64_t vaddr, const struct calls_instruction *in);

// scan.c: decodes all code; marks targets, notes what regions do, fills work->gaps.
int calls_scan(struct calls_work *work);
// Once all marks are made: gaps end where something leads to.
void calls_trim_gaps(struct calls_work *work);

// landing.c: marks where exceptions land. Regions that begin so are parts of others.
void calls_mark_landing_pads(struct calls_work *work);

// tables.c: what the loader relocates, one by one, until `each` does not return 0.
typedef int (*calls_relocation_fn)(struct calls_work *work, const Elf64_Rela *relocation, const void *context);
int calls_each_relocation(struct calls_work *work, calls_relocation_fn each, const void *context);
bool calls_is_code(const struct calls_work *work, uint64_t vaddr);
// tables.c: marks what jump tables, relocations and words of data lead to; fills work->resolvers.
int calls_read_tables(struct calls_work *work);

// shape.c: how the region's function is patched. Takes padding out of work->gaps.
void calls_shape(struct calls_work *work, const struct calls_region *region, struct qut_plan_function *function);
// What did not find room before: short jumps to padding, which those with room of their own may have needed; traps.
void calls_shape_late(struct calls_work *work, struct qut_plan_function *function);

// plan.c: reads a file, decodes all of it, and has `use` look at it.
typedef int (*calls_use_fn)(struct calls_work *work, void *context);
int calls_look(const char *path, const char *name, calls_use_fn use, void *context, struct base_error *error);

// list.c: regions that are functions, with their names, in the form of the plan. Allocates *bytes.
int calls_list(struct calls_work *work, uint8_t **bytes, size_t *size_bytes);

// thunk_x86_64.c, thunk_aarch64.c: thunk.h's, of functions that are patched; thunk and patch are empty.
bool calls_thunk_x86_64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                        struct calls_thunk *thunk);
bool calls_thunk_aarch64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                         struct calls_thunk *thunk);
bool calls_patch_x86_64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                        struct calls_patch *patch);
bool calls_patch_aarch64(const struct qut_plan_function *function, const struct calls_thunk_place *place,
                         struct calls_patch *patch);

// refuse.c: why a function is left alone, by its name. QUT_PLAN_OK: it is not.
enum qut_plan_refusal calls_refuse_name(const char *name);
enum qut_plan_refusal calls_refuse_module(const char *module, const struct input_image *image);
enum qut_plan_refusal calls_refuse_module_name(const char *module);

#endif
