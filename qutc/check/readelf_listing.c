// SPDX-License-Identifier: Apache-2.0
// The text, as binutils prints it:
//
//   Unwind section '.ARM.exidx' at offset 0x524 contains 23 entries:
//
//   0x41c <name>: 0x80003fb0            or  0x41c: @0x480 (the place in .ARM.extab),  or  0x41c: 0x1 [cantunwind]
//     Compact model index: 0            or  Personality routine: 0x47c <name>
//     0x00      vsp = vsp + 4           instruction bytes, then its meaning
#include "qutc/check/readelf_listing.h"

#include <stdlib.h>
#include <string.h>

enum { CORE_REGISTERS = 16 };

static int add_function(struct check_readelf_listing *l, struct check_readelf_function function,
                        struct base_error *error)
{
    struct check_readelf_function *place = BASE_ADD(&l->functions);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "readelf's functions");
    function.first_step = l->steps.count;
    *place = function;
    return 0;
}

static int add_step(struct check_readelf_listing *l, struct check_readelf_step step, struct base_error *error)
{
    struct check_readelf_step *place = BASE_ADD(&l->steps);
    if (!place)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "readelf's steps");
    *place = step;
    l->functions.items[l->functions.count - 1].step_count++;
    return 0;
}

static struct check_readelf_step unknown(const char *reason)
{
    return (struct check_readelf_step){.what = CHECK_READELF_UNKNOWN, .reason = reason};
}

static bool skip_prefix(const char **text, const char *prefix)
{
    size_t length = strlen(prefix);
    if (strncmp(*text, prefix, length) != 0)
        return false;
    *text += length;
    return true;
}

static bool number(const char **text, int base, int64_t *value)
{
    size_t digits = strspn(*text, base == 16 ? "0123456789abcdef" : "0123456789");
    *value = strtoll(*text, NULL, base);
    *text += digits;
    return digits > 0;
}

// The registers of one item of a list, "r4", "D8-D15": how many bytes of stack an item's registers take, and how many
// of the kind there are.
struct register_kind {
    const char *prefix;
    unsigned bytes_each;
    unsigned count;
};
static const struct register_kind other_kinds[] = {{"D", 8, 32}, {"wR", 8, 16}, {"wCGR", 4, 4}};

static bool pop_other(const char **text, unsigned limit, struct check_readelf_step *step)
{
    for (size_t i = 0; i < sizeof other_kinds / sizeof *other_kinds; i++) {
        const struct register_kind *kind = &other_kinds[i];
        int64_t first, last;
        if (!skip_prefix(text, kind->prefix))
            continue;
        if (!number(text, 10, &first))
            return false;
        last = first;
        if (skip_prefix(text, "-") && (!skip_prefix(text, kind->prefix) || !number(text, 10, &last)))
            return false;
        if (limit > kind->count)
            limit = kind->count;
        if (first < 0 || last < first || last >= limit) {
            *step = unknown("pop of registers that do not exist");
            return true;
        }
        step->bytes += (last - first + 1) * kind->bytes_each;
        return true;
    }
    return false;
}

// "{r4, r14}", "{D8-D9}", "{wCGR0, wCGR3}", "{ra_auth_code}". `fstmx`: what FSTMX saved is a word longer than the
// registers are, and the words do not show it; the instruction's first byte, printed with them, does.
static struct check_readelf_step pop_step(const char *text, bool fstmx)
{
    const struct check_readelf_step not_read = unknown("a list of registers in words not known here");
    struct check_readelf_step step = {.what = CHECK_READELF_MOVE, .bytes = fstmx ? 4 : 0};
    bool more = skip_prefix(&text, "{");
    if (!more)
        return not_read;
    while (more) {
        int64_t reg;
        if (skip_prefix(&text, "ra_auth_code")) {
            step.bytes += 4;
            step.ra_auth_code = true;
        } else if (skip_prefix(&text, "r")) {
            if (!number(&text, 10, &reg) || reg < 0 || reg >= CORE_REGISTERS)
                return not_read;
            step.what = CHECK_READELF_POP;
            step.core_mask |= 1u << reg;
        } else if (!pop_other(&text, fstmx ? 16 : 32, &step)) {
            return not_read;
        }
        if (step.what == CHECK_READELF_UNKNOWN)
            return step;
        more = skip_prefix(&text, ", ");
    }
    return strcmp(text, "}") == 0 ? step : not_read;
}

// `words`: what readelf says an instruction does.
static struct check_readelf_step step_of(const char *words, unsigned first_byte)
{
    int64_t value;
    if (strcmp(words, "finish") == 0)
        return (struct check_readelf_step){.what = CHECK_READELF_FINISH};
    if (strcmp(words, "Refuse to unwind") == 0)
        return (struct check_readelf_step){.what = CHECK_READELF_REFUSE};
    if (strcmp(words, "vsp as modifier for PAC validation") == 0)
        return (struct check_readelf_step){.what = CHECK_READELF_MOVE};
    if (skip_prefix(&words, "pop "))
        return pop_step(words, first_byte == 0xb3 || (first_byte >= 0xb8 && first_byte <= 0xbf));
    if (skip_prefix(&words, "vsp = vsp + ") && number(&words, 10, &value) && !*words)
        return (struct check_readelf_step){.what = CHECK_READELF_MOVE, .bytes = value};
    if (skip_prefix(&words, "vsp = vsp - ") && number(&words, 10, &value) && !*words)
        return (struct check_readelf_step){.what = CHECK_READELF_MOVE, .bytes = -value};
    if (skip_prefix(&words, "vsp = r") && number(&words, 10, &value) && !*words && value >= 0 && value < CORE_REGISTERS)
        return (struct check_readelf_step){.what = CHECK_READELF_SET, .reg = (unsigned)value};
    if (strcmp(words, "[Reserved]") == 0)
        return unknown("a reserved instruction");
    if (strcmp(words, "[Spare]") == 0)
        return unknown("a spare instruction");
    if (strcmp(words, "[unsupported opcode]") == 0)
        return unknown("an instruction that readelf does not know");
    return unknown("an instruction in words not known here");
}

// "  0x84 0x0b pop {r4, r5, r7, r14}"
static int instruction_line(struct check_readelf_listing *l, const char *text, struct base_error *error)
{
    int64_t byte, first_byte = -1;
    while (skip_prefix(&text, "0x") && number(&text, 16, &byte)) {
        if (first_byte < 0)
            first_byte = byte;
        text += strspn(text, " ");
    }
    l->functions.items[l->functions.count - 1].named_only = false;
    return add_step(l, step_of(text, (unsigned)first_byte), error);
}

static int function_line(struct check_readelf_listing *l, const char *text, struct base_error *error)
{
    struct check_readelf_function function = {.table_entry = 0};
    int64_t value;
    if (skip_prefix(&text, "0x") && number(&text, 16, &value))
        function.start = (uint32_t)value & ~UINT32_C(1);

    // A symbol's name may hold anything; what follows the last colon cannot.
    const char *data = strrchr(text, ':');
    bool cantunwind = false;
    if (!data)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "readelf printed `%.60s'", text);
    data += 1 + strspn(data + 1, " ");
    if (skip_prefix(&data, "@0x") && number(&data, 16, &value))
        function.table_entry = (uint32_t)value;
    else
        cantunwind = strstr(data, "[cantunwind]") != NULL;
    if (add_function(l, function, error))
        return -1;
    return cantunwind ? add_step(l, (struct check_readelf_step){.what = CHECK_READELF_REFUSE}, error) : 0;
}

static void section_line(struct check_readelf_listing *l, const char *section_name, const char *text)
{
    const char *name = strchr(text, '\'');
    size_t length = strlen(section_name);
    l->in_section = name && strncmp(name + 1, section_name, length) == 0 && name[1 + length] == '\'';
    if (!l->in_section)
        return;
    l->section_seen = true;
    const char *contains = strstr(text, " contains ");
    int64_t count = 0;
    if (contains && skip_prefix(&contains, " contains ") && number(&contains, 10, &count) && count > 0)
        l->functions_stated += (size_t)count;
}

int check_readelf_line(struct check_readelf_listing *l, const char *section_name, char *line, struct base_error *error)
{
    line[strcspn(line, "\n")] = '\0';
    const char *text = line;
    if (!*text)
        return 0;
    if (strncmp(text, "Unwind ", 7) == 0) {
        section_line(l, section_name, text);
        return 0;
    }
    if (!l->in_section)
        return 0;
    if (strncmp(text, "0x", 2) == 0)
        return function_line(l, text, error);
    if (!l->functions.count)
        return 0;
    text += strspn(text, " ");
    if (strncmp(text, "0x", 2) == 0)
        return instruction_line(l, text, error);
    if (strncmp(text, "Compact model index: ", 21) == 0)
        return 0;
    if (strncmp(text, "Personality routine: ", 21) == 0) {
        l->functions.items[l->functions.count - 1].named_only = true;
        return 0;
    }
    return add_step(l, unknown("readelf found the entry damaged"), error);
}

void check_readelf_listing_free(struct check_readelf_listing *l)
{
    base_vector_free(&l->functions.vector);
    base_vector_free(&l->steps.vector);
    *l = (struct check_readelf_listing){0};
}
