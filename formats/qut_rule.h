// SPDX-License-Identifier: Apache-2.0
// The rule of one frame: how to get from a frame's registers to its caller's. Pure data, shared by the compiler that
// derives rules, the table that stores them and the runtime that applies them.
//
// Glossary
//   cfa        canonical frame address: the caller's stack pointer at the call
//   ra         return address
//   tracked    the few registers that a later rule (or a virtual machine's frame) can need; which ones: libqut/arch
//   slot       position in `tracked`; slot i belongs to arch.tracked[i]
#ifndef QUT_FORMATS_QUT_RULE_H
#define QUT_FORMATS_QUT_RULE_H

#include <assert.h>
#include <stdint.h>

enum {
    QUT_TRACKED_MAX = 7, // most registers tracked on one architecture, besides sp and ra
    QUT_NO_REGISTER = 0xff,
};

enum qut_arch_id {
    QUT_ARCH_NONE = 0,
    QUT_ARCH_X86_64 = 1,
    QUT_ARCH_AARCH64 = 2,
    QUT_ARCH_ARM = 3,
    QUT_ARCH_X86 = 4,
    QUT_ARCH_RISCV64 = 5,
    QUT_ARCH_END,
};

// What a row says at all.
enum qut_rule_kind {
    QUT_RULE_HOLE = 0,    // no unwind information covers this pc (padding, code without CFI)
    QUT_RULE_REFUSED = 1, // information exists, but cannot be expressed or trusted; `reason` says why
    QUT_RULE_FRAME = 2,   // a frame rule follows
    QUT_RULE_KIND_END,
};

// Why a row was refused. Stored in tables: append only.
enum qut_refusal {
    QUT_REFUSED_NOT = 0,
    QUT_REFUSED_CANTUNWIND,          // .ARM.exidx says EXIDX_CANTUNWIND
    QUT_REFUSED_CFA_EXPRESSION,      // CFA is an expression outside the closed set
    QUT_REFUSED_REGISTER_EXPRESSION, // a tracked register or ra is an expression outside the closed set
    QUT_REFUSED_CFA_UNDEFINED,       // no instruction defined a CFA
    QUT_REFUSED_OFFSET_RANGE,        // an offset does not fit 32 bits
    QUT_REFUSED_REGISTER_RANGE,      // a register number that the architecture does not have
    QUT_REFUSED_BAD_PROGRAM,         // the instruction stream is malformed from this pc on
    QUT_REFUSED_STATE_DEPTH,         // remember_state nested deeper than the bound, or restored more than remembered
    QUT_REFUSED_PERSONALITY,         // an EHABI personality routine we cannot read
    QUT_REFUSED_EXIDX_OPCODE,        // a reserved or unsupported EHABI opcode
    QUT_REFUSED_EXIDX_TRUNCATED,     // EHABI opcodes run past their table
    QUT_REFUSED_RA_LOST,             // the return address is the value of a register that is not known here
    QUT_REFUSED_INSTRUMENTED,        // method tracing of Android's runtime put its own return address here
    QUT_REFUSED_OAT_CODE,            // an OAT method's code does from here on what its header does not explain
    QUT_REFUSED_STACK_SWITCH,        // the function goes on with another stack: what is its caller's stands elsewhere
    QUT_REFUSED_EH_RETURN, // the function exchanges its caller's registers for those of a frame that catches
    QUT_REFUSAL_END,
};

// How the CFA is computed. Stored in tables: append only. `reg`, `reg2` are DWARF register numbers of the architecture.
enum qut_cfa_how {
    QUT_CFA_REG = 0,     // cfa = reg + offset_bytes
    QUT_CFA_DEREF = 1,   // cfa = *(reg + offset_bytes) + add_bytes
    QUT_CFA_INDEXED = 2, // cfa = *(reg + (reg2 << shift) + offset_bytes) + add_bytes
    QUT_CFA_PLT = 3,     // cfa = reg + offset_bytes + (((pc & mask) >= threshold) << shift)
    QUT_CFA_VECTOR = 4,  // cfa = reg + offset_bytes + vector_count * bytes of a vector register
    QUT_CFA_HOW_END,
};

struct qut_cfa {
    uint8_t how; // enum qut_cfa_how
    uint8_t reg;
    uint8_t reg2;  // INDEXED: index register
    uint8_t shift; // INDEXED, PLT
    int32_t offset_bytes;
    union {
        int32_t add_bytes;    // DEREF, INDEXED
        int32_t vector_count; // VECTOR
        struct {
            uint8_t mask; // PLT
            uint8_t threshold;
            uint16_t zero;
        } plt;
    };
};
static_assert(sizeof(struct qut_cfa) == 12, "on disk");

// How one register of the caller is found. Stored in tables: append only.
enum qut_reg_how {
    QUT_REG_SAME = 0,      // unchanged. For ra: in the return-address register. For sp: sp = cfa
    QUT_REG_UNDEFINED = 1, // lost. For ra: this is the outermost frame
    QUT_REG_AT_CFA = 2,    // *(cfa + offset_bytes)
    QUT_REG_AT_REG = 3,    // *(reg + offset_bytes)
    QUT_REG_IN_REG = 4,    // reg + offset_bytes
    QUT_REG_CFA_VALUE = 5, // cfa + offset_bytes
    // *(((cfa + bias_bytes) & -(1 << reg)) + offset_bytes): frames that align the stack for vectors, in glibc's libmvec
    QUT_REG_AT_ALIGNED = 6,
    // *(cfa + offset_bytes - (1 << reg)), in a shadow of the stack. As ra: of code that functions return to in place of
    // their callers, since their return addresses were exchanged
    QUT_REG_AT_SHADOW = 7,
    QUT_REG_HOW_END,
};
enum { QUT_SHADOW_LOG2_MIN = 36, QUT_SHADOW_LOG2_MAX = 62 }; // `reg` of AT_SHADOW

struct qut_reg_rule {
    uint8_t how;        // enum qut_reg_how
    uint8_t reg;        // AT_REG, IN_REG: the register read. AT_ALIGNED, AT_SHADOW: a log2
    int16_t bias_bytes; // AT_ALIGNED
    int32_t offset_bytes;
};
static_assert(sizeof(struct qut_reg_rule) == 8, "on disk");

enum qut_rule_flag {
    QUT_RULE_SIGNAL = 1,    // the frame was interrupted: its caller's pc is exact, not a return address
    QUT_RULE_RA_SIGNED = 2, // ra carries a pointer-authentication code
    QUT_RULE_RA_KEY_B = 4,  // ... made with key B
    QUT_RULE_BODY_ONLY = 8, // from function-level tables: holds in the body, not inside prologue and epilogue
    QUT_RULE_FLAGS_ALL = 15,
};

// How a function of Go's goes on with another stack: what a walk that knows the runtime's records finds its caller by
// (libqut/go). Stored in tables: append only. On the stack that the function was called on cfa = cfa.reg +
// cfa.offset_bytes, and the return address is the word below it.
enum qut_stack_switch {
    QUT_SWITCH_UNKNOWN = 0,  // which one it is, or where its frame lies, is not known
    QUT_SWITCH_SYSTEM_STACK, // runtime.systemstack: a function runs on the system stack, then this one goes on
    QUT_SWITCH_MCALL,        // runtime.mcall: leaves the goroutine, which goes on from its own record
    QUT_SWITCH_MORE_STACK,   // runtime.morestack: the same, at the beginning of a function whose stack is full
    QUT_SWITCH_GOGO,         // gogo: goes on with a goroutine from its record
    QUT_SWITCH_CALL_C,       // runtime.asmcgocall: C code runs on the system stack
    QUT_SWITCH_CALLED_BY_C,  // runtime.cgocallback: Go code runs on the goroutine's stack, called by C code
    QUT_SWITCH_SAVED,        // a register keeps the stack pointer while the function uses another stack
    QUT_SWITCH_NEW_THREAD,   // runtime.clone: a thread begins in it, on another stack than that of its maker
    QUT_SWITCH_END,
};

// What a rule rests on, where that is not what the file states alone. Stored in tables: append only, below 64.
enum qut_rule_origin {
    QUT_RULE_STATED = 0,
    QUT_RULE_FROM_CODE = 1, // the code itself was followed, over all its ways
    QUT_RULE_DOUBTFUL = 2,  // stated; the code that was followed says otherwise, and does not prove what is so
};

struct qut_rule {
    uint8_t kind;       // enum qut_rule_kind; nothing else counts unless it is FRAME
    uint8_t flags;      // enum qut_rule_flag
    uint8_t reason;     // enum qut_refusal, with REFUSED
    uint8_t dex_pc_reg; // register that holds a dex pc in this frame, or QUT_NO_REGISTER
    struct qut_cfa cfa;
    struct qut_reg_rule ra;
    struct qut_reg_rule sp;
    struct qut_reg_rule tracked[QUT_TRACKED_MAX];
    uint8_t stack_switch; // enum qut_stack_switch, where STACK_SWITCH is the reason; `cfa` then counts, too
    uint8_t origin;       // enum qut_rule_origin
    uint8_t zero[6];
};
static_assert(sizeof(struct qut_rule) == 96, "on disk: six table cells");

#endif
