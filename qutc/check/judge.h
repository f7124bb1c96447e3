// SPDX-License-Identifier: Apache-2.0
// An independent reader of unwind information, behind one small interface. A judge gives values, not rules: what the
// CFA, the return address and the tracked registers of the caller are for given registers and memory. Two readers
// that agree on the values for random registers and memory agree on the rule, and share no code to agree by.
#ifndef QUTC_CHECK_JUDGE_H
#define QUTC_CHECK_JUDGE_H

#include "base/error.h"
#include "libqut/arch/arch.h"
#include "libqut/runtime/rule_eval.h"
#include "qutc/input/image.h"

enum check_verdict {
    CHECK_VERDICT_NO_ROW = 0, // this reader finds no unwind information for the pc
    CHECK_VERDICT_ROW,        // values are filled
    CHECK_VERDICT_END,        // a row whose return address is undefined; cfa is filled
    CHECK_VERDICT_ABSTAIN,    // this reader is known not to read this construct (reason says which), or failed
    CHECK_VERDICT_CANTUNWIND, // exidx only
};

struct check_judgement {
    enum check_verdict verdict;
    const char *reason;  // ABSTAIN
    uint64_t start, end; // the judge's row holds on [start, end); for NO_ROW: as far as the judge knows
    bool signal_frame;
    bool body_only_source; // function-level information (exidx)
    uint64_t cfa;
    uint64_t ra;
    uint64_t sp;                       // of the caller (cfa unless there is an explicit rule)
    uint64_t tracked[QUT_TRACKED_MAX]; // by slot
    uint8_t tracked_undefined;         // bit per slot: the caller's value is lost
    uint8_t tracked_unknown;           // bit per slot: this reader cannot say (a register the walker does not have)
    bool depends_on_pc;                // an expression reads the pc: values differ within the row
    bool ra_signed_known, ra_signed;   // pointer authentication
    bool dex_pc_known;                 // dex_pc_reg counts
    uint8_t dex_pc_reg;                // register with a dex pc, or QUT_NO_REGISTER
};

struct check_judge;
struct check_judge_class {
    const char *name; // "libdw", "libdwarf", "readelf"
    // Opens one frame section's view of the image. NULL with *error filled where this judge cannot read this kind.
    struct check_judge *(*open)(const struct input_image *image, const struct input_frame_section *section,
                                struct base_error *error);
    // What holds at pc, evaluated with these registers (`frame->pc` is pc) and this memory.
    void (*at)(struct check_judge *judge, const struct arch_frame_regs *frame, runtime_read_word read, void *context,
               struct check_judgement *judgement);
    // Ascending list of the pcs where this judge's coverage or rows may begin or end, as far as it can tell cheaply
    // (its functions' starts and ends). *pcs is allocated with malloc, the caller frees it.
    int (*boundaries)(struct check_judge *judge, uint64_t **pcs, size_t *count, struct base_error *error);
    void (*close)(struct check_judge *judge);
};

extern const struct check_judge_class check_judge_libdw, check_judge_libdwarf, check_judge_readelf;

#endif
