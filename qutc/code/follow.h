// SPDX-License-Identifier: Apache-2.0
// Follows machine code: from a function's first instruction over all its ways, what is known of the stack at each of
// its instructions. Nothing is guessed: where two ways disagree, or a way ends in what cannot be, the function is given
// up with its reason.
#ifndef QUTC_CODE_FOLLOW_H
#define QUTC_CODE_FOLLOW_H

#include "base/error.h"
#include "base/hash_index.h"
#include "base/vector.h"
#include "qutc/cfi/row_list.h"
#include "qutc/cfi/rule_set.h"
#include "qutc/code/fill.h"
#include "qutc/code/state.h"
#include "qutc/input/image.h"

enum code_found { // how a function was found
    CODE_FOUND_SYMBOL = 1,
    CODE_FOUND_STATED = 2, // unwind information begins there
    CODE_FOUND_CALL = 4,
    CODE_FOUND_GAP = 8,    // between others
    CODE_FOUND_ENTRY = 16, // where the kernel enters the program
};

struct code_function {
    uint32_t pc;   // relative to the text
    uint32_t end;  // of a symbol, or of stated rows; 0: not known
    uint8_t found; // enum code_found
    bool is_seen, is_done, is_followed, never_returns;
    bool ends_by_name;    // such functions never return
    bool comes_back;      // it returns, or a call of it was shown to come back
    uint16_t name_length; // 0: no symbol names it
    const char *name;     // in the image: not demangled, not ended by 0
    uint64_t loses;       // registers of those that calls keep
    uint64_t without;     // of them what some code lost that goes on in it
    uint64_t keeps;       // of the others
    uint32_t kept;        // 1 + where its walk is among f->kept; 0: there is none
};

// A word that the loader puts the address of a function into.
struct code_slot_of {
    uint64_t vaddr;
    uint32_t pc; // of the function; UINT32_MAX: of another file, and never returns
};

// An instruction, or several with one rule.
struct code_span {
    uint32_t pc, end;
    uint32_t rule_id;
    uint32_t owner; // what it rests on is kept by this number; 0: it is not
};

struct code_walked {
    enum code_outcome outcome;
    uint32_t at; // where it was given up
    bool returns, leaves, is_open;
    bool is_elsewhere;       // it ends on a stack that is not known
    bool is_blaming;         // ... in a call of which only a contradiction behind it says that it does not come back
    bool is_cut_in_doubt;    // ... behind a call of which nothing shows that it comes back
    uint64_t loses, changes; // changes: also of those that calls need not keep
    uint64_t overwrites;     // registers that calls keep, whose values nothing had kept
    uint64_t scanned;        // instructions, as often as they were looked at
    uint32_t instructions;   // those that are followed
    uint32_t doubtful;       // behind calls of which nothing shows that they come back: without rules
};

struct code_decoded_cache;
struct code_learned;
struct code_kept;
struct code_assumption;

struct code_follower {
    const struct input_image *image;
    const struct arch *arch;
    const struct code_arch *code;
    uint64_t text_start;
    uint32_t text_size;
    uint16_t *marks;                             // text_size of them
    struct code_decoded_cache *decoded;          // NULL: nothing is kept
    BASE_VECTOR(struct code_function) functions; // ascending
    struct cfi_rule_set *rules;
    BASE_VECTOR(struct code_span) spans;      // of all functions, in no order
    BASE_VECTOR(uint32_t) called;             // pcs that were seen to be called, not yet among functions
    BASE_VECTOR(uint32_t) relocated;          // pcs that the loader is told to make addresses of, ascending
    BASE_VECTOR(struct code_slot_of) slots;   // that calls go through, as far as something is known, ascending
    BASE_VECTOR(struct input_range) data;     // what followed code loads from beside itself, or jumps by
    BASE_VECTOR(struct code_learned) learned; // of functions in gaps
    struct base_hash_index learned_index;     // by pc
    bool has_learned;                         // since that was asked
    bool has_more_pointed;                    // addresses that something holds, since that was asked
    bool is_open;                             // a function that was given up is one after all: once more
    bool is_final;                            // what functions do to their callers' registers is known
    struct code_walk *walk;
    const struct cfi_row_list *stated; // what init was given; lives as long
    size_t stated_row;                 // the last one that was asked for
    // Whether a function at a pc is to be followed; NULL: all are. Of others only what they call is looked at.
    bool (*is_wanted)(void *context, uint32_t pc);
    bool wanted_only; // ... and not even that: others are no functions here
    void *wanted_context;
    BASE_VECTOR(struct code_kept) kept;
    BASE_VECTOR(struct code_assumption) assumed;
    BASE_VECTOR(uint32_t) disturbed; // where functions begin amid walks that are kept
    // Told of each instruction that gets spans, if the walk turns out to be one. NULL: nobody.
    void (*made)(void *context, uint32_t pc, const struct code_instruction *in, const struct code_machine *machine,
                 const struct code_state *state);
    // Told of each instruction of a walk that a state is known for, instead of spans; with the state NULL of those
    // behind calls of which nothing shows that they come back. NULL: nobody.
    void (*visit)(void *context, uint32_t pc, const struct code_instruction *in, const struct code_machine *machine,
                  const struct code_state *state);
    void (*forget)(void *context); // what was told of this walk; it begins anew. NULL: nobody need
    // With visit: the walk is done, and all that was told of it is to be kept under the number function->kept - 1, the
    // next one each time.
    bool (*keep)(void *context, const struct code_function *function, const struct code_walked *walked);
    void *context;
    struct base_error *error;
};

// code_follower_run does all of it. rows: what is stated, which tells where functions begin; may be empty.
int code_follower_init(struct code_follower *f, const struct input_image *image, uint64_t text_start, uint64_t text_end,
                       const struct cfi_row_list *rows, struct cfi_rule_set *rules, struct base_error *error);

struct code_wanted { // as in struct code_follower
    bool (*is)(void *context, uint32_t pc);
    bool only;
    void *context;
};
int code_follower_init_wanted(struct code_follower *f, const struct input_image *image, uint64_t text_start,
                              uint64_t text_end, const struct cfi_row_list *rows, struct cfi_rule_set *rules,
                              const struct code_wanted *wanted, struct base_error *error);
void code_follower_free(struct code_follower *f);
// Follows all functions, those that are called too. done: told of each, last; may be NULL. With visit: function->kept
// says under which number it was told of, 0: just now.
int code_follower_run(struct code_follower *f, void (*done)(void *context, const struct code_function *function,
                                                            const struct code_walked *walked));
struct code_function *code_function_at(struct code_follower *f, uint32_t pc);

// The functions that one calls are appended to f->called. -1: no memory.
int code_find_calls(struct code_follower *f, struct code_function *function);

// walk.c. The spans of a function that is followed are appended to f->spans. -1: no memory.
int code_follow(struct code_follower *f, struct code_function *function, struct code_walked *walked);

#endif
