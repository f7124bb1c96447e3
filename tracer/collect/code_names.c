// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/code_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"

enum {
    UNNAMED_MAX = 1 << 20,
    PLACES_MAX = 1 << 18,
};

// Behind the last that begins at or before the address.
static size_t behind(const struct code_names *names, uint64_t address)
{
    size_t low = 0, high = names->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->items[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool add(struct code_names *names, const struct collect_code *code, uint64_t met_ns)
{
    struct code_name name = {
        .start = code->start,
        .end = code->end,
        .met_ns = met_ns,
        .has_lines = code->has_lines,
        .may_move = code->may_move,
        .text = strdup(code->name),
    };
    if (!name.text || !BASE_RESERVE(names, 1)) {
        free(name.text);
        return false;
    }
    size_t at = behind(names, code->start);
    BASE_ADD(names);
    memmove(&names->items[at + 1], &names->items[at], (names->count - 1 - at) * sizeof *names->items);
    names->items[at] = name;
    return true;
}

// What lay where the new code lies has gone: it keeps its name up to there.
static void make_room(struct code_names *names, struct collect_code *code, uint64_t address)
{
    size_t at = behind(names, address);
    if (at > 0 && names->items[at - 1].end > code->start)
        code->start = names->items[at - 1].end <= address ? names->items[at - 1].end : address;
    if (at < names->count && names->items[at].start < code->end)
        code->end = names->items[at].start;
}

// NULL: it has none.
static const struct code_name *name_of(const struct code_names *names, uint64_t address)
{
    size_t at = behind(names, address);
    return at > 0 && address < names->items[at - 1].end ? &names->items[at - 1] : NULL;
}

static bool has_name(const struct code_names *names, uint64_t address)
{
    return name_of(names, address) != NULL;
}

static void note_unnamed(struct code_names *names, uint64_t address)
{
    if (names->unnamed.count == UNNAMED_MAX || !BASE_RESERVE(&names->unnamed, 1)) {
        names->dropped++; // it cannot be asked for at the end
        return;
    }
    *BASE_ADD(&names->unnamed) = (struct unnamed_code){address, base_clock_now_ns()};
}

static void take(struct code_names *names, struct collect_code *code, uint64_t address, uint64_t met_ns)
{
    if (address < code->start || address >= code->end)
        return;
    make_room(names, code, address);
    names->dropped += !add(names, code, met_ns);
}

// What has no more than a name is told by that.
static bool is_more(const struct collect_level *levels, size_t count)
{
    return count > 1 || (count == 1 && *levels->file);
}

static void keep_levels(struct code_names *names, uint64_t address, size_t count)
{
    struct code_places *places = &names->places;
    const struct code_place place = {address, base_clock_now_ns(), (uint32_t)places->levels.count, (uint32_t)count};
    if (!BASE_RESERVE(places, 1) || !BASE_RESERVE(&places->levels, count)) {
        names->dropped++;
        return;
    }
    for (size_t i = 0; i < count; i++)
        *BASE_ADD(&places->levels) =
            (struct code_level){.function = base_interner_add(&places->strings, places->room[i].function),
                                .file = base_interner_add(&places->strings, places->room[i].file),
                                .line = places->room[i].line};
    *BASE_ADD(places) = place;
}

// True: the place is told. Each is met once.
static bool meet_place(struct code_names *names, uint64_t address)
{
    const struct collect_options *options = names->options;
    struct code_places *places = &names->places;
    if (!options->levels_of_code || places->count == PLACES_MAX)
        return false;
    if (!places->room)
        places->room = malloc(COLLECT_LEVELS_MAX * sizeof *places->room);
    size_t count = places->room ? options->levels_of_code(options->name_context, address, places->room) : 0;
    if (!is_more(places->room, count))
        return false;
    keep_levels(names, address, count);
    return true;
}

// One address inside of what has another name.
static void set_apart(struct code_names *names, struct collect_code *code, const char *text, uint64_t address,
                      uint64_t met_ns)
{
    if (text)
        strcpy(code->name, text);
    code->start = address;
    code->end = address + 1;
    names->dropped += !add(names, code, met_ns);
}

// Where code was that may have moved, other addresses keep the name.
static void ask_again(struct code_names *names, uint64_t address)
{
    struct collect_code code = {0};
    const struct code_name *old = name_of(names, address);
    bool is_told = names->options->name_code(names->options->name_context, address, names->since_ns, &code);
    if (is_told && strcmp(code.name, old->text) == 0)
        return;
    set_apart(names, &code, is_told ? NULL : "[unknown method]", address, base_clock_now_ns());
}

void collect_code_names_pass(struct code_names *names, uint64_t start_ns)
{
    // From outside a stack is stored a little after its thread went on.
    const uint64_t slack_ns = 100000000;
    names->since_ns = start_ns; // nothing was sampled before
    if (names->pass_ns > start_ns)
        names->since_ns = names->pass_ns - start_ns > slack_ns ? names->pass_ns - slack_ns : start_ns;
    names->pass_ns = base_clock_now_ns();
}

void collect_code_names_meet(struct code_names *names, uint64_t address)
{
    struct collect_code code = {0};
    const struct collect_options *options = names->options;
    bool is_interpreted = address >> COLLECT_ADDRESS_BITS;
    if (!options->name_code || (is_interpreted && meet_place(names, address)))
        return;
    const struct code_name *known = name_of(names, address);
    if (known && known->may_move && !is_interpreted) {
        ask_again(names, address);
    } else if (!known) {
        if (options->name_code(options->name_context, address, names->since_ns, &code))
            take(names, &code, address, base_clock_now_ns());
        else
            note_unnamed(names, address);
    }
    if (!is_interpreted && has_name(names, address))
        meet_place(names, address);
}

void collect_code_names_end(struct code_names *names)
{
    struct collect_code code = {0};
    const struct collect_options *options = names->options;
    for (size_t i = 0; i < names->unnamed.count; i++) {
        const struct unnamed_code *unnamed = &names->unnamed.items[i];
        const struct code_name *later = name_of(names, unnamed->address);
        if (later && later->may_move)
            set_apart(names, &code, "[unknown method]", unnamed->address, unnamed->met_ns);
        else if (!later && options->name_past_code &&
                 options->name_past_code(options->name_context, unnamed->address, unnamed->met_ns, &code))
            take(names, &code, unnamed->address, unnamed->met_ns);
    }
}

void collect_code_names_free(struct code_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].text);
    base_vector_free(&names->unnamed.vector);
    base_vector_free(&names->places.vector);
    base_vector_free(&names->places.levels.vector);
    base_interner_free(&names->places.strings);
    free(names->places.room);
    base_vector_free(&names->vector);
}
