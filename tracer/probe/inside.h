// SPDX-License-Identifier: Apache-2.0
// The compiler goes through the text once: what it has read it has made code of. Jumps that lead forwards are lists
// until their target is known; values stay where they are until somebody needs them in a register.
#ifndef TRACER_PROBE_INSIDE_H
#define TRACER_PROBE_INSIDE_H

#include "tracer/probe/script.h"

enum probe_token_kind {
    PROBE_TOKEN_END,
    PROBE_TOKEN_NAME,
    PROBE_TOKEN_MAP,    // @name; the name follows the "@"
    PROBE_TOKEN_NUMBER, // with its unit
    PROBE_TOKEN_TEXT,   // in quotes
    PROBE_TOKEN_SIGN,
};

enum { PROBE_PLACES_MAX = 64 };

struct probe_token {
    enum probe_token_kind kind;
    uint32_t at, length;
    uint64_t number;
    bool has_unit;
};

struct probe_source;
struct probe_variant;

struct probe_compiler {
    const char *text;
    uint32_t length, next; // of the text; where the next token begins to be looked for
    struct probe_token token;
    struct probe_script *script;
    struct probe_diagnostic *diagnostic;
    struct probe_resolver *resolver; // NULL: arguments have no names
    size_t first_place;              // of the clause
    struct {
        BASE_VECTOR(struct qut_probe_program);
    } programs;
    struct {
        BASE_VECTOR(struct qut_probe_map);
    } maps;
    struct {
        BASE_VECTOR(struct qut_probe_instruction);
    } code; // of all programs
    // Of the program that is being made.
    enum qut_probe_kind kind;
    uint32_t first_instruction;
    uint32_t stack_words;                             // in use
    uint32_t depth;                                   // of what lies in each other
    bool is_slash_an_end;                             // in a predicate, outside of parentheses
    const struct probe_source *outer;                 // what the text stands in place of; NULL: it is the script's
    const struct probe_variant *variant;              // of a place with a meaning; NULL: it has none
    uint32_t builtins;                                // those that the script has so far, bits
    uint32_t assigned_at;                             // the first token behind "=": an aggregation may be meant
    uint32_t filled_maps;                             // bits of those that something is put into
    struct probe_token read_maps[QUT_PROBE_MAPS_MAX]; // where each is first read by the script; length 0: nowhere
};

// Fills the diagnostic, and returns false. The first one stays.
bool probe_fail(struct probe_compiler *c, uint32_t at, uint32_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool probe_fail_here(struct probe_compiler *c, const char *expected); // "expected ..., not ..."
bool probe_no_memory(struct probe_compiler *c);

// ---- lex.c

bool probe_next(struct probe_compiler *c);
bool probe_is_sign(const struct probe_compiler *c, const char *sign);
bool probe_is_name(const struct probe_compiler *c, const char *name);
bool probe_take_sign(struct probe_compiler *c, const char *sign); // an error if it is not there
// The text of a token in quotes, its escapes replaced; malloc's, NULL: no memory.
char *probe_token_text(const struct probe_compiler *c, const struct probe_token *token, size_t *length);
char *probe_copy(struct probe_compiler *c, uint32_t at, uint32_t length); // NULL: no memory, and said

// ---- code.c

enum probe_where {
    PROBE_CONSTANT,
    PROBE_FIELD,
    PROBE_IN_R0,
    PROBE_ON_STACK,  // from `word` on: words count from the stack's end, 1 is the last
    PROBE_CONDITION, // of r0 and `number`, or of r0 and r1: `jump` says which, and jumps where it holds
    PROBE_TRUTH,     // the code goes on here, or at `if_true`, where it is true, and at `if_false` where it is not
    PROBE_LITERAL,   // a text in quotes
};

enum { PROBE_NO_JUMP = -1 };

struct probe_operand {
    enum probe_where where;
    enum probe_type type;
    uint32_t at, length; // in the text
    int64_t number;      // or the field
    uint32_t word, words;
    uint32_t array_bytes; // of the characters at this address; 0: not known
    uint8_t jump;
    int32_t if_true, if_false; // lists of jumps
    struct probe_token literal;
};

bool probe_emit(struct probe_compiler *c, uint8_t opcode, unsigned to, unsigned from, int16_t offset,
                int32_t immediate);
bool probe_load_number(struct probe_compiler *c, unsigned to, int64_t number);
// A number into a register; r0 is not kept. A comparison becomes 0 or 1.
bool probe_load(struct probe_compiler *c, unsigned to, const struct probe_operand *operand);
// Into r0, and from there onto the stack, where it is until it is given back: what follows may use r0.
bool probe_spill(struct probe_compiler *c, struct probe_operand *operand);
// Whatever it is becomes PROBE_TRUTH.
bool probe_to_truth(struct probe_compiler *c, struct probe_operand *operand);
// A jump that is put into a list; 0x05 and no register: always.
bool probe_jump(struct probe_compiler *c, uint8_t opcode, unsigned a, unsigned b, int32_t immediate, int32_t *list);
bool probe_land(struct probe_compiler *c, int32_t *list); // all of the list lead to the next instruction
int32_t probe_join(struct probe_compiler *c, int32_t list, int32_t other);
// So many words more; *word is the lowest one.
bool probe_take_words(struct probe_compiler *c, uint32_t words, uint32_t at, uint32_t length, uint32_t *word);
void probe_give_words(struct probe_compiler *c, uint32_t words);
bool probe_stack_address(struct probe_compiler *c, unsigned to, uint32_t word);
bool probe_call(struct probe_compiler *c, enum qut_probe_helper helper);

// ---- expression.c

bool probe_expression(struct probe_compiler *c, struct probe_operand *result);
bool probe_integer(struct probe_compiler *c, struct probe_operand *result); // an error if it is none
bool probe_needs_integer(struct probe_compiler *c, const struct probe_operand *o);
bool probe_constant(struct probe_compiler *c, int64_t *number, const char *what);
// Expressions up to the sign, which is taken, behind each other on the stack, which stays in use.
bool probe_parts_of(struct probe_compiler *c, const char *end, struct probe_parts *parts, uint32_t *word);
// The map that the token names, of a kind; one that is new becomes that. Its key follows, if it has one, and is left on
// the stack. An error if the kind or the key is another one than before.
struct probe_keyed {
    struct probe_token name;
    struct probe_parts key;
    uint32_t word; // of the key
    enum probe_type value;
};
bool probe_key(struct probe_compiler *c, struct probe_keyed *keyed);
bool probe_map_is(struct probe_compiler *c, const struct probe_keyed *keyed, const struct qut_probe_map *as,
                  uint32_t *number);
const char *probe_map_kind_name(uint32_t kind); // "count()"
bool probe_find_map(const struct probe_compiler *c, const struct probe_token *name, uint32_t *number);
// r1, r2 and a helper; r3 is there already.
bool probe_call_with_key(struct probe_compiler *c, enum qut_probe_helper helper, uint32_t map,
                         const struct probe_keyed *keyed);

// ---- format.c

// Whether a format has a conversion for each part, and fitting ones. `at` is where it stands in the script.
bool probe_format_fits(struct probe_compiler *c, const char *format, const struct probe_parts *parts,
                       const struct probe_token *at);

// ---- statement.c

bool probe_block(struct probe_compiler *c);
enum { PROBE_AGGREGATIONS = 7 };
void probe_aggregation_names(const char *names[PROBE_AGGREGATIONS]);

// ---- unwind.c

// What "unwind" needs, behind all other places and programs.
bool probe_mark_exceptions(struct probe_compiler *c);

// ---- compile.c

bool probe_take_places(struct probe_compiler *c); // behind the script's others
// The numbers of the programs of a clause's places, from the first one on, which are made next. Returns the number
// behind them.
uint32_t probe_number_programs(struct probe_compiler *c, size_t first);
bool probe_make_image(struct probe_compiler *c); // of what was made; false: no memory

// ---- hint.c

// The word of a list that the token may have meant, as a sentence; "" if none is near.
struct probe_hint {
    char text[64];
};
struct probe_hint probe_hint(const struct probe_compiler *c, const struct probe_token *token, const char *const *words,
                             size_t count);
// Likewise of the maps that have been filled so far; the token has its "@".
struct probe_hint probe_map_hint(const struct probe_compiler *c, const struct probe_token *name);

#endif
