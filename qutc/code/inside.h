// SPDX-License-Identifier: Apache-2.0
// One file's code while it is followed: its functions, and the one that is being walked.
#ifndef QUTC_CODE_INSIDE_H
#define QUTC_CODE_INSIDE_H

#include "base/hash_index.h"
#include "qutc/code/follow.h"
#include "qutc/code/rule.h"
#include "qutc/input/image.h"
#include "qutc/input/symbol_sections.h"

// Of one function. Each walk of it that begins anew knows of one more call or element that it is none: short walks may
// be more.
enum {
    CODE_INSTRUCTIONS_MAX = 1 << 16,
    CODE_WALKS_MAX = 64,
    CODE_SHORT_WALKS_MAX = 512,
    CODE_SHORT_WALKS_INSTRUCTIONS = 1 << 19, // of all of them together
    CODE_VISITS_MAX = 200
};

// Of each byte of the text. Those of a walk are taken back when it is done.
enum code_mark {
    CODE_MARK_INSTRUCTION = 1, // begins here, on the walk
    CODE_MARK_LEADER = 2,      // several ways lead here
    CODE_MARK_LEAVES = 4,      // a call that does not come back
    CODE_MARK_START = 8,       // a function begins
    CODE_MARK_FRAGMENT = 16,   // ... a part of one, which is jumped to
    CODE_MARK_CALLED = 32,
    CODE_MARK_WHOLE = 64,      // unwind information says that a function is entered here
    CODE_MARK_MODE = 128,      // the instruction is of mode 1: Thumb
    CODE_MARK_DATA = 256,      // a literal that code loads
    CODE_MARK_KEPT = 512,      // an instruction of a function whose walk is kept
    CODE_MARK_POINTED = 1024,  // something holds its address
    CODE_MARK_LEFT_OUT = 2048, // behind a call of which nothing shows that it comes back
    CODE_MARK_ASKED = 4096,    // whether a linker's stub stands here, and whether
    CODE_MARK_STUB = 8192,     // ... it is one of which something is known: imports.c
    CODE_MARK_COUNTED = 16384, // as data: data.c
    CODE_MARK_WALK = 7,
};

// Each instruction of a function is read several times. Those of a walk are kept one behind the other, as they are
// first come by, so that a small function's lie in the nearest cache; of a large one the latest.
enum { CODE_DECODED_COUNT = 2048, CODE_DECODED_PLACES = 8192, CODE_DECODED_OPS_MAX = 3 };

struct code_learned { // of a function that is none of f->functions
    uint32_t pc;
    bool never_returns, comes_back;
    uint64_t loses, keeps;
};

struct code_decoded {
    uint32_t key; // pc + 1; 0: none
    unsigned mode;
    uint8_t head[offsetof(struct code_instruction, ops)];
    struct code_op ops[CODE_DECODED_OPS_MAX];
};

struct code_decoded_cache {
    uint32_t next;                       // of `items`, to be written
    uint16_t place[CODE_DECODED_PLACES]; // by pc: which of `items` has it, if its key says so
    struct code_decoded items[CODE_DECODED_COUNT];
};

struct code_guess {        // where a jump through a table without a bound may go to
    uint32_t jump, target; // jump UINT32_MAX: no such thing
    bool is_weak;          // of those that are none: another one only says otherwise
};

struct code_edge {
    uint32_t from, to;   // leaders
    uint32_t next;       // of those with the same `to`, + 1; 0: none
    uint32_t call;       // pc of the last call on the way; UINT32_MAX: none
    bool is_behind_call; // the call is the last instruction
    struct code_value sp;
};

struct code_leader {
    uint32_t pc;
    bool has_state, is_queued;
    uint16_t visits;
    uint32_t first_edge;     // of those that lead here, + 1
    uint32_t part;           // its first one; UINT32_MAX: none
    struct code_guess guess; // that it was first reached by
    struct code_state state;
};

// A block, or what of it stands behind a call of which nothing says that it comes back: parts.c.
struct code_part {
    uint32_t callee;     // of that call; UINT32_MAX: not known
    uint32_t first_way;  // of those that lead on; they end where the next part's begin
    uint32_t first_to;   // of those that lead here, + 1
    uint8_t ends;        // enum code_part_end
    bool is_behind_call; // the part before it ends with the call
    bool is_lowered;     // sp was lowered in it
    bool is_reached;
};

struct code_way {
    uint32_t from, to; // parts; `to` is a leader until all are known
    uint32_t next;     // of those with the same `to`, + 1; 0: none
    bool is_lowered;   // sp, since `from` began
    bool is_same_sp;   // as on all ways to the same place
};

struct code_table_jump { // one through a table that was read
    uint32_t pc;
    size_t first, end; // where it goes to: of w->targets
    uint64_t table_vaddr, table_bytes;
    bool is_guessed; // the table has no bound
    bool is_stale;   // ... and is to be read again
};

struct code_left {
    uint32_t pc;
    uint64_t lost;  // registers that calls keep and that do not hold the caller's
    bool is_behind; // it is what stands behind, not jumped to
};

struct code_extent { // of a function, at most
    uint32_t start, end;
};

// What a walk took a function for that it calls.
struct code_assumption {
    uint32_t callee; // pc
    bool never_returns;
    uint64_t loses, keeps;
};

// A walk from before all functions were known. It holds if what it assumed is so.
struct code_kept {
    struct code_walked walked;
    uint32_t low, high;  // of its instructions
    size_t first, count; // of f->assumed
};

enum code_phase { CODE_PHASE_STATES, CODE_PHASE_EDGES, CODE_PHASE_JUDGE, CODE_PHASE_PUBLISH };

struct code_walk {
    struct code_follower *f;
    unsigned phase; // enum code_phase
    struct code_machine machine;
    uint32_t start, extent_end;   // of the function: where the next one begins
    uint32_t end;                 // ... where it ends by a symbol or by what is stated; 0: not known
    uint64_t without;             // registers that do not hold the caller's at its entry
    bool has_return, has_way_out; // a return stands in it before that end; or what may go on behind it or elsewhere
    BASE_VECTOR(uint32_t) touched;
    BASE_VECTOR(uint32_t) to_scan;
    BASE_VECTOR(struct code_leader) leaders;
    struct base_hash_index leader_index; // by pc
    BASE_VECTOR(uint32_t) queue;
    BASE_VECTOR(struct code_edge) edges;
    BASE_VECTOR(struct code_part) parts; // of the phase JUDGE
    BASE_VECTOR(struct code_way) ways;
    bool has_doubt; // a part is behind a call
    BASE_VECTOR(struct code_table_jump) jumps;
    struct base_hash_index jump_index; // by pc
    BASE_VECTOR(uint32_t) targets;
    BASE_VECTOR(struct code_guess) no_elements; // where such jumps do not go to after all
    uint32_t guessed_by;                        // while such a jump is delivered: its pc; else UINT32_MAX
    bool is_anew;                               // an element is none: what was scanned because of it is none, either
    bool has_end;                               // a symbol or what is stated says where the function ends
    size_t first_called;                        // of f->called: by this function
    size_t first_data;                          // of f->data: beside this function's code
    bool is_told;                               // rules are kept, or somebody is told of them
    BASE_VECTOR(struct code_span) spans;
    BASE_VECTOR(struct code_left) left_for; // functions that it goes on in
    uint32_t instruction_count;
    bool is_unwanted;       // only what it calls and goes on in is
    bool goes_on_in_wanted; // jumps to a function that is to be followed
    struct qut_rule outermost;
    bool is_entered;   // by the kernel
    bool is_outermost; // ... and it has no caller
    bool again;        // the walk has to begin anew: there is more code, or a call less
    bool sp_differs;   // ways met with the stack at different places
    bool has_edges;    // those of the phase EDGES
    bool is_lasting;   // nothing that is not known yet makes another walk of it, but what is assumed
    BASE_VECTOR(struct code_assumption) assumed;
    uint32_t span_version, span_rule_id; // of the last span
    bool needs_edges;                    // a way ends in what cannot be: where it came from must be known
    bool no_memory;
    struct code_walked *walked;
};

enum code_padding { // what stood right before, but for padding
    CODE_PADS_NOTHING,
    CODE_PADS_CALL,
    CODE_PADS_DOUBT, // a call of which nothing says that it comes back
};

// Where it goes on, and how the last part of it was: filled while a block runs.
struct code_run {
    struct code_state state;
    uint32_t from;           // leader
    uint32_t part;           // UINT32_MAX: none
    uint32_t call;           // pc of the last one; UINT32_MAX: none
    struct code_guess guess; // that it came by
    bool is_behind_call;
    bool is_doubtful; // nothing says that the last call comes back
    uint8_t padding;  // enum code_padding
};

// All but its state.
static inline void code_run_begin(struct code_run *run, uint32_t from)
{
    run->from = from;
    run->part = run->call = run->guess.jump = UINT32_MAX;
    run->is_behind_call = run->is_doubtful = false;
    run->padding = 0;
}

// ---- walk.c
// Of an instruction that a block comes to, of the phases JUDGE and PUBLISH: its rule is kept, or visit told of it.
void code_tell(struct code_walk *w, const struct code_run *run, uint32_t pc, const struct code_instruction *in);

// ---- kept.c
// What a function that is called is taken for, as far as callers go by it.
struct code_assumption code_taken_for(const struct code_follower *f, uint32_t callee);
// Notes that. False: no memory.
bool code_assume(struct code_walk *w, const struct code_assumption *taken);
// Whether what `count` of them say, from the first-th on, is so now. NULL: count is 0.
bool code_still_holds(const struct code_follower *f, const struct code_assumption *all, size_t first, size_t count);
// Whether no register that calls were taken to keep is lost now: rules stay true, though there might be better ones.
bool code_is_safe(const struct code_follower *f, const struct code_assumption *all, size_t first, size_t count);
// Keeps the walk that was just made, where that may last. -1: no memory.
int code_keep(struct code_walk *w, struct code_function *function);
// The kept walk of a function; NULL: there is none, or it does not hold.
const struct code_walked *code_kept(const struct code_follower *f, const struct code_function *function);

static inline bool code_is_in_text(const struct code_follower *f, uint64_t vaddr)
{
    return vaddr >= f->text_start && vaddr - f->text_start < f->text_size;
}

// ---- functions.c
// Code that is not looked at, since only other is wanted.
static inline bool code_is_left_out(const struct code_follower *f, uint32_t pc)
{
    return f->wanted_only && !f->is_wanted(f->wanted_context, pc);
}

// Nothing is known of what it does, and that may be since nothing was known to call it.
static inline bool code_is_open_yet(const struct code_function *function)
{
    return !function->is_followed && !(function->found & CODE_FOUND_STATED);
}

uint32_t code_next_start(const struct code_follower *f, uint32_t pc);    // of the function behind it
uint32_t code_start_at_most(const struct code_follower *f, uint32_t pc); // of the last one at it or before; 0: none

// ---- padding.c
// The first instruction that is none of those that fill up, at most `end`.
uint32_t code_behind_padding(const struct code_follower *f, uint32_t pc, uint32_t end);

// ---- spans.c
bool code_sort_spans(struct code_follower *f); // false: no memory
// Of these spans, which one walk left (and which are sorted now), as many bytes as belong to no function that was
// entered on it and is followed itself.
uint64_t code_own_bytes(struct code_follower *f, size_t first, size_t end);
// Whether a function begins in one of these, but for that at pc.
bool code_has_start(const struct code_follower *f, size_t first, size_t end, uint32_t pc);
int code_spans_to_rows(struct code_follower *f, struct cfi_row_list *rows);

// ---- pointed.c
bool code_is_executable(const struct code_follower *f, uint32_t pc);
// Of what is wanted: an address that something holds.
void code_note_pointed(struct code_follower *f, uint64_t vaddr);
void code_find_pointed(struct code_follower *f); // in the file
// Where the kernel enters hands the address of C's main to what it calls: that calls it.
void code_note_main(struct code_walk *w, const struct code_state *state);
bool code_is_pointed(const struct code_follower *f, uint32_t pc);
uint32_t code_next_pointed(const struct code_follower *f, uint32_t pc, uint32_t end);

// ---- relocated.c
// Fills f->slots, and f->relocated where calls alone are not enough. False: no memory.
bool code_find_relocated(struct code_follower *f, bool calls_only);
// Code is at run time as it is in the file: the loader changes none of it, nor may the program.
bool code_stays_as_filed(const struct code_follower *f);

// ---- data.c: what stands among code and is none
void code_note_literals(struct code_walk *w, const struct code_instruction *in); // of a function that is followed
void code_note_tables(struct code_walk *w);
// As much of that as neither what is stated nor one of these rows gives a rule.
uint64_t code_data_bytes(const struct code_follower *f, const struct cfi_row_list *rows);

// ---- imports.c: what calls through the linker's stubs lead to
// Notes what is known of the function of that index that the loader puts the address of into a slot. False: no memory.
bool code_note_slot(struct code_follower *f, const struct input_symbol_section *symbols, uint64_t index, uint64_t vaddr,
                    bool is_call);
// Of a global function of the file itself: it never returns.
bool code_name_ends(const char *name, size_t length);
void code_sort_slots(struct code_follower *f); // when all are noted
// Of a stub, and of an instruction that calls: what is called never returns.
bool code_stub_ends(struct code_follower *f, uint32_t pc);
bool code_call_ends(struct code_follower *f, const struct code_instruction *in);

// ---- scan.c
// Marks what is reached from a pc without knowing states. True where something new was found.
bool code_scan(struct code_walk *w, uint32_t pc);
void code_note_called(struct code_walk *w, uint32_t pc, unsigned mode);
bool code_read(const struct code_follower *f, uint32_t pc, struct code_instruction *in);
// The instruction set of what begins at pc, where nothing that knows better has said it.
void code_set_mode(struct code_walk *w, uint32_t pc, unsigned mode);
// An address that is jumped to, without what of it says the mode, which is noted. *pc: the same, if it is in the text;
// else the text's size.
uint64_t code_address(struct code_walk *w, uint64_t vaddr, unsigned mode, uint32_t *pc);
bool code_is_other(const struct code_walk *w, uint32_t pc); // another function's begin
// What is no code calls nothing: those from the first-th on.
void code_forget_calls(struct code_follower *f, size_t first);

// ---- tables.c
// Goes on where a jump through an element of a table can go. False: that is not known.
bool code_go_through_table(struct code_walk *w, const struct code_run *run, const struct code_value *to, uint32_t pc,
                           unsigned mode);
void code_scan_tables(struct code_walk *w); // what those lead to that the function's code has
void code_leave_out_element(struct code_walk *w, const struct code_guess *guess);
// Two ways meet with the stack at two places: what one of them was guessed by is none. False: neither was.
bool code_leave_out_guess(struct code_walk *w, const struct code_value *a, const struct code_value *b,
                          const struct code_guess *new, const struct code_guess *old);

// ---- block.c
// Of the phase that the walk is in.
void code_run_block(struct code_walk *w, uint32_t leader);
void code_deliver(struct code_walk *w, const struct code_run *run, uint32_t to_pc);
void code_give_up(struct code_walk *w, enum code_outcome outcome, uint32_t at);
void code_leave_out_call(struct code_walk *w, uint32_t call); // it does not come back
uint32_t code_leader_at(struct code_walk *w, uint32_t pc);    // index; UINT32_MAX: no memory
bool code_is_entry(const struct code_machine *machine, const struct code_state *state);

// ---- learned.c: functions that nothing names, once they are followed
bool code_learn(struct code_follower *f, const struct code_function *function);         // false: no memory
const struct code_learned *code_learned_at(const struct code_follower *f, uint32_t pc); // NULL: nothing
// What it was learned by is not so.
void code_learned_false(struct code_follower *f, uint32_t pc);

// ---- calls.c
uint32_t code_callee_of(const struct code_follower *f, const struct code_instruction *in); // UINT32_MAX: not known
// False: it does not come back.
bool code_call(struct code_walk *w, struct code_run *run, const struct code_instruction *in, uint32_t pc);
bool code_system_call(struct code_walk *w, struct code_run *run, const struct code_value *number, uint32_t pc);

// ---- parts.c: which calls come back
void code_parts_begin(struct code_walk *w);
void code_part_enter(struct code_walk *w, struct code_run *run);                        // a block begins
void code_part_behind_call(struct code_walk *w, struct code_run *run, uint32_t callee); // UINT32_MAX: not known
void code_part_goes_to(struct code_walk *w, const struct code_run *run, uint32_t leader);
void code_part_returns(struct code_walk *w, const struct code_run *run);
void code_part_stops(struct code_walk *w, const struct code_run *run);
// What an instruction did to sp.
void code_part_moves_sp(struct code_walk *w, const struct code_run *run, const struct code_value *before);
bool code_parts_judge(struct code_walk *w); // all blocks have run. True: all of it is reached
void code_parts_learn(struct code_walk *w); // of a function that is followed: which callees come back
bool code_part_is_reached(const struct code_walk *w, const struct code_run *run);

#endif
