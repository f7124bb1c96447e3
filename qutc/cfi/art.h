// SPDX-License-Identifier: Apache-2.0
// What the unwind information of Android's runtime, libart, leaves out or cannot say, and its symbols tell.
#ifndef QUTC_CFI_ART_H
#define QUTC_CFI_ART_H

#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/input/image.h"

// Changes the finished rows of a libart; of any other image, none:
// - Android 7.0 to 8.1: the interpreter's frames get the register that holds the dex pc. Later versions mark it.
// - up to Android 13: return addresses that method tracing put in place of the true ones are refused, so that a walk
//   ends there with the reason.
// - x86-64: rows that the code proves wrong are mended, or refused (art_code.c).
int cfi_art_rows(const struct input_image *image, uint64_t text_start, uint64_t text_end, struct cfi_rule_set *rules,
                 struct cfi_row_list *rows, struct base_error *error);

// Of x86-64 where there is no symbol for it: the code that traced methods return to, which calls what `callee` is the
// address of (0: not known). Empty: it is not found. (art_tracing.c)
struct input_range cfi_art_tracing_exit(const struct input_image *image, uint64_t text_start,
                                        const struct cfi_rule_set *rules, const struct cfi_row_list *rows,
                                        uint64_t callee);

// Where the rows of that code end that are true: behind its first `ret`, since what comes then is described as if it
// stood there. 0: none are.
uint64_t cfi_art_tracing_body(const struct input_image *image, uint64_t text_start, const struct cfi_rule_set *rules,
                              const struct cfi_row_list *rows, struct input_range exit);

// Whether symbols alone can say that a register holds the dex pc at this address, for comparing with what the unwind
// information says. Reads all symbols of a libart.
bool cfi_art_has_dex_pc(const struct input_image *image, uint64_t vaddr, uint8_t reg);

// Whether a rule of a libart that readers contradict is what its code says.
bool cfi_art_is_mended(const struct input_image *image, uint64_t vaddr, const struct qut_rule *rule);

// ---- art_code.c: rows of a libart's assembly that its code contradicts

// Mends the finished rows of x86-64, where what the instructions do to sp proves another cfa than the unwind
// information states, or none. `text_start` is that of the rows. 0, or -1 with *error filled (no memory).
//
// - What `ret` takes from the stack is the return address: there the cfa is sp and a word. Backwards from there it is
// known
//   as long as each instruction adds a number to sp. Seen in Android 11: art_quick_invoke_stub's epilogue, whose rows
//   count with a frame pointer that it has given back; the ways out of the read barriers' entry points, whose rows are
//   those of an epilogue that they are not behind.
// - Where sp takes the value of something that the rule does not count with, a rule that counts with sp as it was is
//   refused, up to the next `ret`: art_quick_do_long_jump, whose registers come from a record.
int cfi_art_mend_rows(const struct input_image *image, uint64_t text_start, struct cfi_rule_set *rules,
                      struct cfi_row_list *rows, struct base_error *error);

// Whether such a rule is what the code says: from vaddr to the next `ret` sp is raised by as much as the rule has its
// cfa above it.
bool cfi_art_is_proven(const struct input_image *image, uint64_t vaddr, const struct qut_rule *rule);

#endif
