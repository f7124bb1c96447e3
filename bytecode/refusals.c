// SPDX-License-Identifier: Apache-2.0
#include "bytecode/verify.h"

const char *bytecode_refusal_text(enum bytecode_refusal refusal)
{
    static const char *const texts[BYTECODE_REFUSAL_END] = {
        [BYTECODE_OK] = "ok",
        [BYTECODE_HEADER] = "no programs of probes, or of another version",
        [BYTECODE_SIZES] = "its parts do not fill it",
        [BYTECODE_PROGRAM] = "a program of no kind, or of no fitting length",
        [BYTECODE_FIELDS] = "claims fields that are not there when it runs",
        [BYTECODE_MAP] = "a map of no kind, or too large",
        [BYTECODE_RECORD] = "a record that is too long",
        [BYTECODE_OPCODE] = "an instruction that is not allowed",
        [BYTECODE_RESERVED] = "bits are set that must be 0",
        [BYTECODE_REGISTER] = "a register that is not there, or must not be written",
        [BYTECODE_UNSET] = "reads a register that is not set on every way there",
        [BYTECODE_POINTER] = "an address where a number must be",
        [BYTECODE_NUMBER] = "a number where an address must be",
        [BYTECODE_BACKWARDS] = "jumps back",
        [BYTECODE_OUTSIDE] = "jumps out of the program, or into an instruction",
        [BYTECODE_FALLS_OUT] = "runs on behind its last instruction",
        [BYTECODE_UNREACHED] = "is never reached",
        [BYTECODE_STACK] = "outside of the stack",
        [BYTECODE_ALIGNMENT] = "an access that is not aligned",
        [BYTECODE_UNWRITTEN] = "reads stack that is not written on every way there",
        [BYTECODE_FIELD] = "reads a field that the program does not claim",
        [BYTECODE_HELPER] = "calls what it may not",
        [BYTECODE_ARGUMENT] = "an argument that is no constant, or out of range",
    };
    return (unsigned)refusal < BYTECODE_REFUSAL_END ? texts[refusal] : "unknown";
}
