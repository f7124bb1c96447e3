// SPDX-License-Identifier: Apache-2.0
// Clauses: places, a predicate, a block. A clause has a program for each kind of its places.
#include <stdlib.h>
#include <string.h>

#include "bytecode/verify.h"
#include "tracer/probe/builtin.h"
#include "tracer/probe/inside.h"

// ---- places

static const struct place_word {
    const char *word;
    enum qut_probe_kind kind;
} place_words[] = {{"entry", QUT_PROBE_ENTRY},   {"return", QUT_PROBE_RETURN}, {"call", QUT_PROBE_ENTRY},
                   {"unwind", QUT_PROBE_UNWIND}, {"offset", QUT_PROBE_PLACE},  {"line", QUT_PROBE_PLACE},
                   {"timer", QUT_PROBE_TIMER},   {"begin", QUT_PROBE_BEGIN},   {"BEGIN", QUT_PROBE_BEGIN},
                   {"end", QUT_PROBE_END},       {"END", QUT_PROBE_END}};

enum { PLACE_WORDS = sizeof place_words / sizeof *place_words };

static bool take_kind(struct probe_compiler *c, enum qut_probe_kind *kind)
{
    const char *words[PLACE_WORDS + PROBE_BUILTINS];
    for (size_t i = 0; i < PROBE_BUILTINS; i++)
        words[PLACE_WORDS + i] = probe_builtins[i].name;
    for (size_t i = 0; i < PLACE_WORDS; i++) {
        words[i] = place_words[i].word;
        if (probe_is_name(c, place_words[i].word)) {
            *kind = place_words[i].kind;
            return true;
        }
    }
    if (c->token.kind != PROBE_TOKEN_NAME)
        return probe_fail_here(c, "a probe, as entry:NAME");
    if (probe_builtin_here(c))
        return probe_fail(c, c->token.at, c->token.length, "it has a clause of its own, without other places");
    return probe_fail(c, c->token.at, c->token.length, "no probe begins so%s",
                      probe_hint(c, &c->token, words, PLACE_WORDS + PROBE_BUILTINS).text);
}

// Up to a space, or what follows a place; one that has these is put in quotes.
static bool take_pattern(struct probe_compiler *c, char **pattern)
{
    size_t length;
    if (c->next < c->length && c->text[c->next] == '"') {
        if (!probe_next(c))
            return false;
        *pattern = probe_token_text(c, &c->token, &length);
        if (!*pattern)
            return probe_no_memory(c);
        if (!**pattern)
            return probe_fail(c, c->token.at, c->token.length, "this names no function");
        return probe_next(c);
    }
    const uint32_t begin = c->next;
    while (c->next < c->length && c->text[c->next] && !strchr(" \t\r\n,{/", c->text[c->next]))
        c->next++;
    if (c->next == begin)
        return probe_fail(c, begin, 1, "which functions? [MODULE!]NAME, as in entry:libc.so*!malloc");
    *pattern = probe_copy(c, begin, c->next - begin);
    return *pattern && probe_next(c);
}

// "in" and a pattern: of calls out of such functions alone. "call" has it, "return" may have it.
static bool take_caller(struct probe_compiler *c, const struct probe_token *word, bool is_call,
                        struct probe_place *place)
{
    const struct probe_token in = c->token;
    if (!probe_is_name(c, "in"))
        return !is_call ||
               probe_fail(c, word->at, word->length,
                          "it needs \"in\" and who calls, as in call:malloc in main; entry:malloc is called "
                          "by anybody");
    if (place->kind == QUT_PROBE_PLACE)
        return probe_fail(c, in.at, in.length, "this is a place within a function, whoever calls that");
    if (!is_call && place->kind == QUT_PROBE_ENTRY)
        return probe_fail(c, word->at, word->length, "calls out of one function: did you mean \"call\"?");
    while (c->next < c->length && c->text[c->next] && strchr(" \t\r\n", c->text[c->next]))
        c->next++;
    if (c->next >= c->length || strchr(",{/", c->text[c->next]))
        return probe_fail(c, in.at, in.length, "in which functions? [MODULE!]NAME, as in call:malloc in main");
    return take_pattern(c, &place->caller);
}

// Behind the last "+" of a pattern: how far behind the entry.
static bool take_offset(struct probe_compiler *c, uint32_t at, struct probe_place *place)
{
    char *plus = strrchr(place->pattern, '+'), *end = NULL;
    const uint32_t length = (uint32_t)strlen(place->pattern);
    if (plus && plus[1] >= '0' && plus[1] <= '9')
        place->offset_bytes = strtoull(plus + 1, &end, 0);
    if (!end || *end || plus == place->pattern)
        return probe_fail(c, at, length, "how far behind the entry? as in offset:malloc+0x1c");
    if (place->offset_bytes > UINT32_MAX)
        return probe_fail(c, at, length, "no function is that long");
    *plus = '\0';
    return true;
}

// [MODULE!]FILE:NUMBER: what is left of it is a pattern of all functions.
static bool take_line(struct probe_compiler *c, uint32_t at, struct probe_place *place)
{
    char *text = place->pattern, *bang = strchr(text, '!'), *file = bang ? bang + 1 : text, *colon = strrchr(file, ':');
    const size_t length = strlen(text), module_length = (size_t)(file - text);
    char *end = NULL;
    const unsigned long long line = colon && colon[1] >= '0' && colon[1] <= '9' ? strtoull(colon + 1, &end, 10) : 0;
    if (!end || *end || colon == file || bang == text)
        return probe_fail(c, at, (uint32_t)length, "which line? as in line:server.c:120");
    if (line == 0 || line > INT32_MAX)
        return probe_fail(c, at, (uint32_t)length, "no file has such a line");
    *colon = '\0';
    place->line = (uint32_t)line;
    place->file = strdup(file);
    place->pattern = malloc(module_length + 2);
    if (place->pattern) {
        memcpy(place->pattern, text, module_length);
        memcpy(place->pattern + module_length, "*", 2);
    }
    free(text);
    return (place->file && place->pattern) || probe_no_memory(c);
}

static bool take_place(struct probe_compiler *c, struct probe_place *place)
{
    const struct probe_token word = c->token;
    const bool is_call = probe_is_name(c, "call"), is_line = probe_is_name(c, "line");
    if (!take_kind(c, &place->kind))
        return false;
    if (!qut_probe_is_inside(place->kind) && place->kind != QUT_PROBE_TIMER)
        return probe_next(c);
    if (c->next >= c->length || c->text[c->next] != ':')
        return probe_fail(c, word.at, word.length, "it needs \":\" and %s",
                          place->kind == QUT_PROBE_TIMER   ? "a time, as in timer:1s"
                          : is_call                        ? "functions, as in call:malloc in main"
                          : is_line                        ? "a line, as in line:server.c:120"
                          : place->kind == QUT_PROBE_PLACE ? "a place, as in offset:malloc+0x1c"
                                                           : "functions, as in entry:malloc");
    c->next++;
    const uint32_t at = c->next;
    if (place->kind != QUT_PROBE_TIMER)
        return take_pattern(c, &place->pattern) &&
               (place->kind != QUT_PROBE_PLACE || (is_line ? take_line : take_offset)(c, at, place)) &&
               take_caller(c, &word, is_call, place);
    if (!probe_next(c))
        return false;
    if (c->token.kind != PROBE_TOKEN_NUMBER || !c->token.has_unit)
        return probe_fail_here(c, "a time with its unit, as 1s or 100ms");
    if (c->token.number < 1000000)
        return probe_fail(c, c->token.at, c->token.length, "a timer has 1ms at least");
    place->period_ns = c->token.number;
    return probe_next(c);
}

bool probe_take_places(struct probe_compiler *c)
{
    do {
        if (c->script->places.count == PROBE_PLACES_MAX)
            return probe_fail(c, c->token.at, c->token.length, "more than %d places", PROBE_PLACES_MAX);
        struct probe_place *place = BASE_ADD(&c->script->places);
        if (!place)
            return probe_no_memory(c);
        *place = (struct probe_place){.program = 0};
        if (!take_place(c, place))
            return false;
    } while (probe_is_sign(c, ",") && probe_next(c));
    return true;
}

// ---- programs

static bool take_predicate(struct probe_compiler *c, int32_t *if_false)
{
    struct probe_operand condition;
    c->is_slash_an_end = true;
    if (!probe_next(c) || !probe_integer(c, &condition) || !probe_to_truth(c, &condition) ||
        !probe_land(c, &condition.if_true))
        return false;
    c->is_slash_an_end = false;
    *if_false = condition.if_false;
    return probe_take_sign(c, "/");
}

// What has to hold at a place with a meaning, before the script's own condition.
static bool take_when(struct probe_compiler *c, int32_t *if_false)
{
    struct probe_operand condition;
    struct probe_source was;
    const bool done = probe_source_enter(c, &was, c->variant->when) && probe_integer(c, &condition) &&
                      probe_to_truth(c, &condition) && probe_land(c, &condition.if_true);
    probe_source_leave(c, &was);
    if (done)
        *if_false = condition.if_false;
    return done;
}

static bool make_program(struct probe_compiler *c, enum qut_probe_kind kind)
{
    enum { KEPT = 6, COPY = QUT_PROBE_CLASS_ALU64 | QUT_PROBE_MOV | QUT_PROBE_SOURCE_X };
    int32_t if_false = PROBE_NO_JUMP, if_not_so = PROBE_NO_JUMP;
    if (c->programs.count == QUT_PROBE_PROGRAMS_MAX)
        return probe_fail(c, c->token.at, c->token.length, "more than %d probes", QUT_PROBE_PROGRAMS_MAX);
    struct qut_probe_program *program = BASE_ADD(&c->programs);
    if (!program)
        return probe_no_memory(c);
    const uint32_t number = (uint32_t)c->programs.count - 1;
    c->kind = kind;
    c->first_instruction = (uint32_t)c->code.count;
    c->stack_words = c->depth = 0;
    *program = (struct qut_probe_program){.first_instruction = c->first_instruction, .kind = kind};
    if (!probe_emit(c, COPY, KEPT, 1, 0, 0) || (c->variant && !take_when(c, &if_not_so)) ||
        (probe_is_sign(c, "/") && !take_predicate(c, &if_false)) || !probe_block(c) || !probe_land(c, &if_false) ||
        !probe_land(c, &if_not_so) || !probe_load_number(c, 0, 0) || !probe_emit(c, QUT_PROBE_OP_EXIT, 0, 0, 0, 0))
        return false;
    c->programs.items[number].instruction_count = (uint32_t)c->code.count - c->first_instruction;
    return true;
}

static bool take_clause(struct probe_compiler *c);

// Clauses of ours, once in a script.
static bool take_own_clauses(struct probe_compiler *c, const char *text)
{
    struct probe_source was;
    bool done = probe_source_enter(c, &was, text);
    while (done && c->token.kind != PROBE_TOKEN_END)
        done = take_clause(c);
    probe_source_leave(c, &was);
    return done;
}

static bool take_own_before(struct probe_compiler *c, const struct probe_builtin *builtin)
{
    const uint32_t had = c->builtins;
    c->builtins |= UINT32_C(1) << (builtin - probe_builtins);
    for (size_t i = 0; i < PROBE_BUILTINS; i++)
        if (had >> i & 1 && probe_builtins[i].before == builtin->before)
            return true;
    return !builtin->before || take_own_clauses(c, builtin->before);
}

static bool take_own_after(struct probe_compiler *c)
{
    for (size_t i = 0; i < PROBE_BUILTINS; i++)
        if (c->builtins >> i & 1 && probe_builtins[i].after && !take_own_clauses(c, probe_builtins[i].after))
            return false;
    return true;
}

static bool take_variant(struct probe_compiler *c, const struct probe_variant *variant)
{
    struct probe_source was;
    const size_t first = c->first_place = c->script->places.count;
    const bool done = probe_source_enter(c, &was, variant->places) && probe_take_places(c);
    probe_source_leave(c, &was);
    if (!done)
        return false;
    for (size_t i = first; i < c->script->places.count; i++)
        c->script->places.items[i].program = (uint32_t)c->programs.count;
    c->variant = variant;
    const bool made = make_program(c, c->script->places.items[first].kind);
    c->variant = NULL;
    return made;
}

static bool take_builtin_clause(struct probe_compiler *c, const struct probe_builtin *builtin)
{
    const struct probe_token word = c->token;
    if (!take_own_before(c, builtin) || !probe_next(c))
        return false;
    if (probe_is_sign(c, ","))
        return probe_fail(c, word.at, word.length, "it has a clause of its own, without other places");
    const uint32_t body = c->next;
    const struct probe_token token = c->token;
    for (size_t i = 0; i < builtin->variant_count; i++) {
        c->next = body;
        c->token = token;
        if (!take_variant(c, &builtin->variants[i]))
            return false;
    }
    return true;
}

// Whether one program does for both: it runs by its kind, and by who calls.
static bool is_alike(const struct probe_place *a, const struct probe_place *b)
{
    return a->kind == b->kind &&
           (!a->caller || !b->caller ? a->caller == b->caller : strcmp(a->caller, b->caller) == 0);
}

uint32_t probe_number_programs(struct probe_compiler *c, size_t first)
{
    struct probe_place *places = c->script->places.items;
    uint32_t next = (uint32_t)c->programs.count;
    for (size_t i = first; i < c->script->places.count; i++) {
        size_t same = first;
        while (!is_alike(&places[same], &places[i]))
            same++;
        places[i].program = same < i ? places[same].program : next++;
    }
    return next;
}

static bool take_clause(struct probe_compiler *c)
{
    const struct probe_builtin *builtin = probe_builtin_here(c);
    if (builtin)
        return take_builtin_clause(c, builtin);
    const size_t first = c->first_place = c->script->places.count;
    if (!probe_take_places(c))
        return false;
    const uint32_t body = c->next;
    const struct probe_token token = c->token;
    const uint32_t end = probe_number_programs(c, first);
    for (size_t i = first; c->programs.count < end; i++) {
        const struct probe_place *place = &c->script->places.items[i];
        if (place->program != c->programs.count) // made already
            continue;
        c->next = body;
        c->token = token;
        if (!make_program(c, place->kind))
            return false;
    }
    return true;
}

// One that is read, and that nothing fills, is 0 for ever: its name is a mistake.
static bool maps_are_filled(struct probe_compiler *c)
{
    for (uint32_t i = 0; i < c->maps.count; i++) {
        const struct probe_token *name = &c->read_maps[i];
        if (name->length && !(c->filled_maps >> i & 1))
            return probe_fail(c, name->at, name->length, "no probe fills it%s", probe_map_hint(c, name).text);
    }
    return true;
}

// ---- the image

static void *put(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memcpy(to, from, bytes);
    return (char *)to + bytes;
}

bool probe_make_image(struct probe_compiler *c)
{
    const size_t sizes[] = {sizeof(struct qut_probe_header), c->programs.count * sizeof *c->programs.items,
                            c->maps.count * sizeof *c->maps.items,
                            c->script->records.count * sizeof(struct qut_probe_record),
                            c->code.count * sizeof *c->code.items};
    size_t all = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        all += sizes[i];
    const struct qut_probe_header header = {.magic = QUT_PROBE_MAGIC,
                                            .version = QUT_PROBE_VERSION,
                                            .total_bytes = (uint32_t)all,
                                            .program_count = (uint32_t)c->programs.count,
                                            .map_count = (uint32_t)c->maps.count,
                                            .record_count = (uint32_t)c->script->records.count,
                                            .instruction_count = (uint32_t)c->code.count};
    char *image = malloc(all);
    if (!image)
        return probe_no_memory(c);
    void *at = put(put(put(image, &header, sizes[0]), c->programs.items, sizes[1]), c->maps.items, sizes[2]);
    for (size_t i = 0; i < c->script->records.count; i++) {
        const struct qut_probe_record record = {.words = c->script->records.items[i].words.words};
        at = put(at, &record, sizeof record);
    }
    put(at, c->code.items, sizes[4]);
    c->script->image = image;
    c->script->image_bytes = all;
    return true;
}

static bool verify(struct probe_compiler *c)
{
    struct bytecode_workspace *workspace = malloc(sizeof *workspace);
    struct bytecode_fault fault;
    if (!workspace)
        return probe_no_memory(c);
    const bool is_good = bytecode_verify(c->script->image, c->script->image_bytes, workspace, &fault);
    free(workspace);
    return is_good || probe_fail(c, 0, 0, "a mistake of ours: program %u, instruction %u: %s", fault.program,
                                 fault.instruction, bytecode_refusal_text(fault.refusal));
}

int probe_compile(const char *text, size_t length, struct probe_script *script, struct probe_diagnostic *diagnostic)
{
    return probe_compile_with(text, length, NULL, script, diagnostic);
}

int probe_compile_with(const char *text, size_t length, struct probe_resolver *resolver, struct probe_script *script,
                       struct probe_diagnostic *diagnostic)
{
    struct probe_compiler c = {
        .text = text, .length = (uint32_t)length, .script = script, .diagnostic = diagnostic, .resolver = resolver};
    *script = (struct probe_script){.image = NULL};
    *diagnostic = (struct probe_diagnostic){.text = ""};
    bool is_good = (length < 1 << 20 || probe_fail(&c, 0, 0, "a script of more than a megabyte")) && probe_next(&c);
    if (is_good && c.token.kind == PROBE_TOKEN_END)
        is_good = probe_fail_here(&c, "a probe, as entry:NAME { @ = count() }");
    while (is_good && c.token.kind != PROBE_TOKEN_END)
        is_good = take_clause(&c);
    is_good = is_good && maps_are_filled(&c) && take_own_after(&c) && probe_mark_exceptions(&c) &&
              probe_make_image(&c) && verify(&c);
    base_vector_free(&c.programs.vector);
    base_vector_free(&c.maps.vector);
    base_vector_free(&c.code.vector);
    return is_good ? 0 : -1;
}

void probe_script_free(struct probe_script *script)
{
    for (size_t i = 0; i < script->places.count; i++) {
        free(script->places.items[i].pattern);
        free(script->places.items[i].caller);
        free(script->places.items[i].file);
    }
    for (size_t i = 0; i < script->maps.count; i++)
        free(script->maps.items[i].name);
    for (size_t i = 0; i < script->records.count; i++)
        free(script->records.items[i].format);
    base_vector_free(&script->places.vector);
    base_vector_free(&script->maps.vector);
    base_vector_free(&script->records.vector);
    free(script->image);
    *script = (struct probe_script){.image = NULL};
}
