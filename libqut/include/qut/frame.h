// SPDX-License-Identifier: Apache-2.0
// A frame, and why a walk ended.
#ifndef QUT_FRAME_H
#define QUT_FRAME_H

#include <qut/base.h>

QUT_DECLS_BEGIN

enum qut_end_reason {
    QUT_END_NOT = 0,       // the walk has not ended
    QUT_END_OUTERMOST,     // the real end of the stack: the last frame has no caller
    QUT_END_LIMIT,         // there is no room for more frames
    QUT_END_NO_MODULE,     // `pc` lies in no known module
    QUT_END_TABLE_PENDING, // `pc` lies in a module whose table is being made; a later walk gets further
    QUT_END_NO_TABLE,      // `pc` lies in a module without unwind information, or its table could not be made:
                           // qut_module_at, qut_target_module say why
    QUT_END_NO_ROW,        // no unwind information covers `pc`
    QUT_END_REFUSED,       // unwind information for `pc` cannot be expressed or trusted: `refusal`
    QUT_END_NO_REGISTER,   // the rule at `pc` needs a register whose value is not known here
    QUT_END_BAD_MEMORY,    // the rule at `pc` reads `address`, which cannot be read
    QUT_END_NO_PROGRESS,   // the caller's stack pointer would not lie further out
    QUT_END_NOT_STARTED,   // qut_start was not called, or qut_stop was
    QUT_END_NOT_CODE, // what should be the caller's pc, `pc`, lies in memory that is not executable: it is no frame.
                      // Told where it is known what is executable (qut/target.h)
    QUT_END_REASON_COUNT,
};

struct qut_end {
    uint32_t reason;        // enum qut_end_reason
    uint32_t refusal;       // with REFUSED: qut_refusal_name says which
    uint64_t pc;            // of the frame that the walk could not leave
    uint64_t address;       // with BAD_MEMORY
    uint32_t guessed_frame; // index of the first frame that rests on a guess, or QUT_NO_GUESS
    uint32_t zero;
};

#define QUT_NO_GUESS UINT32_MAX

enum qut_frame_flag {
    QUT_FRAME_INTERRUPTED = 1, // pc is where the code was interrupted; else it is a return address
    QUT_FRAME_SIGNAL = 2,      // the kernel's signal frame: its caller is the interrupted code
    QUT_FRAME_GUESSED = 4,     // found without unwind information, from the frame pointer or the link register, or by
                               // a rule that need not hold at an interrupted instruction
    QUT_FRAME_THUMB = 8,       // arm: Thumb code (pc has bit 0 clear all the same)
    // Virtual machines.
    QUT_FRAME_DEX = 16, // no machine code: pc is where the bytecode is that the frame before it interprets. sp is
                        // that of the frame behind it. Of OpenJDK pc is the method's description; lookup_pc is that,
                        // and in its upper 16 bits the lower 16 of where the bytecode is, as far as known
    QUT_FRAME_INTERPRETER = 32, // runs bytecode: where that is known, a DEX frame follows
    QUT_FRAME_MANAGED = 64,     // compiled Java code, of an OAT file or a JIT
    QUT_FRAME_JIT = 128,        // code that was made at run time, of whatever language
    QUT_FRAME_PYTHON = 256,     // no machine code: a function that the evaluator before it runs. sp is that of the
                                // native frame behind it; pc is its instruction's address, or its code object's;
                                // lookup_pc is no address, but a number for its name and line
    QUT_FRAME_SCRIPT = 512,     // a function of JavaScript; lookup_pc is such a number, too. pc is in its code, or, with
                                // the machine's own code in the frame before, that frame's
    QUT_FRAME_FROM_CODE = 1024, // its caller was found by what its code does, which no unwind information describes.
                                // Exact, no guess. Told of other processes and core files (qut/target.h)
    QUT_FRAME_DOUBTFUL = 2048,  // its caller was found as unwind information states, while its code says otherwise
                                // without a proof: what comes after it may be wrong. Told as FROM_CODE is
};

struct qut_frame {
    uint64_t pc;        // as interrupted, or the return address; without signature and Thumb bit
    uint64_t lookup_pc; // inside the instruction that is running: look up symbols, lines and rules with this one
    uint64_t sp;        // the stack pointer in this frame
    uint32_t flags;     // enum qut_frame_flag
    uint32_t code_id;   // of code made at run time, where it is known (qut/target.h): what lay there; else 0
};

// "outermost frame", "table pending", ... Static text. [signal-safe]
QUT_API const char *qut_end_reason_name(uint32_t reason);
// "CANTUNWIND", ... Static text. [signal-safe]
QUT_API const char *qut_refusal_name(uint32_t refusal);

QUT_DECLS_END

#endif
