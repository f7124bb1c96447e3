// SPDX-License-Identifier: Apache-2.0
#include "tracer/collect/code_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock_inline.h"

enum { UNNAMED_MAX = 1 << 20 };

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
    struct code_name name = {.start = code->start, .end = code->end, .met_ns = met_ns, .text = strdup(code->name)};
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

static bool has_name(const struct code_names *names, uint64_t address)
{
    size_t at = behind(names, address);
    return at > 0 && address < names->items[at - 1].end;
}

static void note_unnamed(struct code_names *names, uint64_t address)
{
    if (names->unnamed.count == UNNAMED_MAX || !BASE_RESERVE(&names->unnamed, 1))
        return;
    *BASE_ADD(&names->unnamed) = (struct unnamed_code){address, base_clock_now_ns()};
}

static void take(struct code_names *names, struct collect_code *code, uint64_t address, uint64_t met_ns)
{
    if (address < code->start || address >= code->end)
        return;
    make_room(names, code, address);
    names->dropped += !add(names, code, met_ns);
}

void collect_code_names_meet(struct code_names *names, uint64_t address)
{
    struct collect_code code;
    const struct collect_options *options = names->options;
    if (!options->name_code || has_name(names, address))
        return;
    if (options->name_code(options->name_context, address, &code))
        take(names, &code, address, base_clock_now_ns());
    else
        note_unnamed(names, address);
}

void collect_code_names_end(struct code_names *names)
{
    struct collect_code code;
    const struct collect_options *options = names->options;
    for (size_t i = 0; options->name_past_code && i < names->unnamed.count; i++) {
        const struct unnamed_code *unnamed = &names->unnamed.items[i];
        if (!has_name(names, unnamed->address) &&
            options->name_past_code(options->name_context, unnamed->address, unnamed->met_ns, &code))
            take(names, &code, unnamed->address, unnamed->met_ns);
    }
}

void collect_code_names_free(struct code_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i].text);
    base_vector_free(&names->unnamed.vector);
    base_vector_free(&names->vector);
}
