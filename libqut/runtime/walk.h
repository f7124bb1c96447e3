// SPDX-License-Identifier: Apache-2.0
// A walk: from a frame's registers to its caller's, again and again, until it ends with a reason. One source
// (walk_inline.h), compiled for this machine's own stacks and, with the architecture chosen at run time, for all others
// (runtime_walk_step here). Signal-safe, allocates nothing, never blocks unless its operations do.
#ifndef QUT_RUNTIME_WALK_H
#define QUT_RUNTIME_WALK_H

#include <qut/frame.h>

#include "libqut/arch/arch.h"
#include "libqut/runtime/rule_eval.h"
#include "libqut/runtime/table.h"

// What is known of the code at an address.
enum runtime_code_state {
    RUNTIME_CODE_NO_MODULE = 0,
    RUNTIME_CODE_PENDING,  // its table is not there yet
    RUNTIME_CODE_NO_TABLE, // and will not be
    RUNTIME_CODE_READY,
    RUNTIME_CODE_OF_MACHINE, // has none: the virtual machine that made it says how its frames are left
};

// Whether frame pointers may be followed through the code where it has no rules, if there seem to be some.
enum runtime_frame_pointers {
    RUNTIME_FRAME_POINTERS_NOT =
        0, // no executable memory, as far as is known; or the user of libqut did not ask for it
    RUNTIME_FRAME_POINTERS_OF_IMAGE,
    RUNTIME_FRAME_POINTERS_OF_MADE_CODE, // at run time, in no image
};

struct runtime_code {
    enum runtime_code_state state;
    const struct qut_table *table; // READY
    uint64_t load_bias;            // address = virtual address in the file + load_bias
    uint64_t entry;                // address of the program's entry point, where it lies in this module; else 0
    uint8_t frame_flags;           // QUT_FRAME_JIT, QUT_FRAME_MANAGED: what frames of this code are
    uint8_t frame_pointers;        // enum runtime_frame_pointers
    bool has_entries;              // OF_MACHINE: returns may lead to where no call stands before
    bool is_called_by_all;         // OF_MACHINE: by code of images, too; and no frame of it is guessed at
    const void *machine;           // OF_MACHINE: for machine_rule
};

// What stands before a return address.
enum runtime_call_site { RUNTIME_CALL_SITE_NOT = 0, RUNTIME_CALL_SITE, RUNTIME_CALL_SITE_UNREADABLE };

// How a frame is left whose row is a stack switch.
enum runtime_switch { RUNTIME_SWITCH_UNKNOWN = 0, RUNTIME_SWITCH_TO_CALLER, RUNTIME_SWITCH_OUTERMOST };

struct runtime_walk;

// What a walk asks of the world. `context` is the caller's.
struct runtime_walk_ops {
    runtime_read_word read;                                                    // a word of a stack
    size_t (*read_code)(void *context, uint64_t pc, void *bytes, size_t size); // how many bytes could be read
    void (*find)(void *context, uint64_t pc, struct runtime_code *code);
    uint64_t (*strip)(void *context, uint64_t pc); // a code address without its signature
    uint64_t (*vector_bytes)(void *context);       // of one vector register; 0: not known. NULL: never
    enum runtime_call_site (*call_site)(void *context, uint64_t pc); // NULL: by read_code
    // Whether call_site has found a call there, and no trampoline at pc, not long ago. NULL: nobody keeps that.
    bool (*is_known_call)(uint64_t pc);
    // The same of an interrupted pc in code that was made at run time, where no thunk and no trampoline is, and what
    // the instructions around it told (NULL: nothing), unless `edge` is NULL. NULL both: nobody keeps that.
    bool (*known_edge)(uint64_t pc, const struct arch_frame_edge **edge);
    void (*keep_edge)(uint64_t pc, const struct arch_frame_edge *edge);
    // Of a frame in code OF_MACHINE. *interpreted: where it says what it runs, if it is one of the
    // interpreter's. False: nothing is known of it. NULL: there is no such code.
    bool (*machine_rule)(void *context, const void *machine, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                         struct arch_interpreted *interpreted);
    // At a frame that its table refuses as a stack switch, walk->rule: its caller's pc and sp, and whether pc is exact.
    // Asked once for each such frame, from the innermost on. NULL: nothing is known of any.
    enum runtime_switch (*leave_switch)(void *context, const struct runtime_walk *walk, uint64_t *pc, uint64_t *sp,
                                        enum arch_pc_kind *kind);
    // Where method tracing has put its own return address, behind which sp is known: the true one. NULL: never known.
    bool (*true_return)(void *context, uint64_t sp, uint64_t *pc);
};

// The state between two frames. All of it is plain data: it may be copied. Small, because it lives on the stacks of
// signal handlers.
struct runtime_walk {
    struct arch_caller regs; // of the current frame, at a DEX frame of the next; regs.pc without signature, with the
                             // Thumb bit
    // The other registers, known where the frame was interrupted: in a block that the walk can read, or in *top.
    uint64_t block_address;
    const struct arch_register_layout *block_layout; // NULL: there is none
    const struct arch_frame_regs *top;               // NULL, or all registers of frame 0
    uint8_t pc_kind;                                 // enum arch_pc_kind
    uint8_t classified;                              // the fields below the line are filled for this frame
    uint8_t switches;                                // signal frames passed: each may lead to another stack
    uint8_t flags;  // enum qut_frame_flag, of this frame; complete once it is classified
    uint32_t index; // of the current frame
    struct qut_end end;
    // ---- how to leave this frame; nothing of it counts where end.reason is set
    const struct arch_trampoline *trampoline; // NULL, or the interrupted registers lie at trampoline_block
    union {
        uint64_t trampoline_block;
        // While an interpreter's frame is left, and at the DEX frame behind it, which counts as classified: where the
        // bytecode is, or arch_interpreted_word; 0: not known. `regs` is then the caller's already.
        uint64_t dex_pc;
    };
    struct qut_rule rule;
    struct arch_interpreted interpreted; // as of machine_rule
};

// What the code before a return address (without Thumb bit) says. Architectures whose calls are not known: all are.
enum runtime_call_site runtime_read_call_site(const struct arch *arch,
                                              size_t (*read_code)(void *context, uint64_t pc, void *bytes, size_t size),
                                              void *context, uint64_t pc);

// Whether a trampoline begins at an address that was returned to.
bool runtime_is_trampoline(const struct arch *arch,
                           size_t (*read_code)(void *context, uint64_t pc, void *bytes, size_t size), void *context,
                           uint64_t pc);

// At a frame: registers, and whether its pc is exact (interrupted, or chosen) or a return address. *regs must stay as
// it is while the walk is at this frame.
void runtime_walk_begin(const struct arch *arch, struct runtime_walk *walk, const struct arch_frame_regs *regs,
                        enum arch_pc_kind kind);

// The frame the walk is at. Looks its rule up if that was not done.
void runtime_walk_frame(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                        struct runtime_walk *walk, struct qut_frame *frame);

// A register of the frame the walk is at, by DWARF number. False where it is not known.
bool runtime_walk_register(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                           const struct runtime_walk *walk, unsigned reg, uint64_t *value);

// Moves to the caller: true. False: the walk has ended, walk->end says why.
bool runtime_walk_step(const struct arch *arch, const struct runtime_walk_ops *ops, void *context,
                       struct runtime_walk *walk);

#endif
