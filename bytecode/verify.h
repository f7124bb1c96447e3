// SPDX-License-Identifier: Apache-2.0
// Whether programs of probes (formats/qut_probe.md) may run. The tool asks before it sends them, and the agent, inside
// the program, once more of its own copy: neither believes the other. After a yes, bytecode_run checks nothing, and no
// input of any kind makes a program
//
//   - write anything but its own 512 bytes of stack, or read anything but that and the fields of its kind,
//   - read stack that it has not written,
//   - run more instructions than it has, since all jumps go forwards,
//   - call anything but the helpers of its kind, with addresses and sizes that are known to be within its stack.
//
// Signal-safe, does not allocate or block; any thread. Takes time in proportion to the image.
#ifndef BYTECODE_VERIFY_H
#define BYTECODE_VERIFY_H

#include <stddef.h>

#include "formats/qut_probe.h"

enum bytecode_refusal {
    BYTECODE_OK = 0,
    BYTECODE_HEADER,    // not this format, or not this version
    BYTECODE_SIZES,     // parts do not fill the image, or there are too many of something
    BYTECODE_PROGRAM,   // of no kind, without instructions, or with too many
    BYTECODE_FIELDS,    // claims fields that its kind does not have
    BYTECODE_MAP,       // a map of no kind, or with a key or steps that are too long
    BYTECODE_RECORD,    // a record that is too long
    BYTECODE_OPCODE,    // not one of the subset
    BYTECODE_RESERVED,  // bits of an instruction that must be 0
    BYTECODE_REGISTER,  // there is no such register, or it must not be written
    BYTECODE_UNSET,     // reads a register that is not set on every way there
    BYTECODE_POINTER,   // an address where a number must be
    BYTECODE_NUMBER,    // a number where an address must be
    BYTECODE_BACKWARDS, // a jump that goes back or stands still
    BYTECODE_OUTSIDE,   // a jump out of the program, or into the middle of an instruction
    BYTECODE_FALLS_OUT, // goes on behind the last instruction
    BYTECODE_UNREACHED, // no way leads there
    BYTECODE_STACK,     // outside of the stack
    BYTECODE_ALIGNMENT, // an access that is not aligned to its size
    BYTECODE_UNWRITTEN, // reads stack that is not written on every way there
    BYTECODE_FIELD,     // reads a field that the program does not claim, or a part of one
    BYTECODE_HELPER,    // there is no such helper for this kind of program
    BYTECODE_ARGUMENT,  // a helper's argument that is not a constant, or out of its range
    BYTECODE_REFUSAL_END,
};

const char *bytecode_refusal_text(enum bytecode_refusal refusal); // static

struct bytecode_fault {
    enum bytecode_refusal refusal;
    uint32_t program, instruction; // in it; 0 where it is none's
};

// What is known where an instruction begins.
struct bytecode_value {
    uint8_t kind; // inside.h
    uint8_t zero[3];
    int32_t number;
};
struct bytecode_state {
    struct bytecode_value registers[QUT_PROBE_REGISTERS];
    uint64_t written; // words of the stack, the lowest first
    uint8_t is_reached, is_second, zero[6];
};

struct bytecode_workspace { // the caller's; what is in it does not matter
    struct bytecode_state states[QUT_PROBE_INSTRUCTIONS_MAX];
};

// `bytes` are aligned to 8, and nobody changes them meanwhile, nor afterwards. *fault is filled either way.
bool bytecode_verify(const void *bytes, size_t size_bytes, struct bytecode_workspace *workspace,
                     struct bytecode_fault *fault);

// ---- what is known of an image that was taken (known.c; as above)

// Looks at one of its programs once more: what is known of it is in the workspace then, for the others.
void bytecode_look(const struct qut_probe_image *image, uint32_t program, struct bytecode_workspace *workspace);
// Whether a register is the same number whenever this instruction runs.
bool bytecode_constant(const struct bytecode_workspace *workspace, uint32_t instruction, unsigned index,
                       int32_t *number);
// The fields that its instructions read, as bits: it may claim more.
uint32_t bytecode_fields_read(const struct qut_probe_image *image, uint32_t program,
                              const struct bytecode_workspace *workspace);

#endif
