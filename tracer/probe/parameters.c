// SPDX-License-Identifier: Apache-2.0
#include "tracer/probe/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/inside.h"

struct putting {
    struct probe_compiler c; // for what is said of mistakes
    const char *const *values;
    size_t count;
    uint32_t used; // bits
    FILE *out;
};

// Behind the comment, or the text in quotes, that begins at `at`; `at` itself where none does.
static uint32_t behind_comment(const struct probe_compiler *c, uint32_t at)
{
    const bool is_line = at + 1 < c->length && c->text[at] == '/' && c->text[at + 1] == '/';
    const bool is_block = at + 1 < c->length && c->text[at] == '/' && c->text[at + 1] == '*';
    if (!is_line && !is_block)
        return at;
    for (uint32_t end = at + 2; end < c->length; end++) {
        if (is_line && c->text[end] == '\n')
            return end;
        if (is_block && c->text[end] == '/' && c->text[end - 1] == '*' && end > at + 2)
            return end + 1;
    }
    return c->length;
}

// One that begins at `at`, at its "$"; *end is behind it. What is not given has what stands behind ":-".
static bool put(struct putting *p, uint32_t at, uint32_t *end)
{
    struct probe_compiler *c = &p->c;
    const bool has_braces = at + 1 < c->length && c->text[at + 1] == '{';
    const uint32_t digit = at + 1 + has_braces;
    bool has_instead = false;
    uint32_t instead = digit + 1, behind = digit + 1;
    const char first = at + 1 < c->length ? c->text[at + 1] : 0;
    const bool is_name = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
    if (is_name)
        return probe_fail(c, at, 2,
                          "parameters are $1 to $9, or ${1:-what it is if it is not given}; what a script keeps "
                          "is in a map: @%c",
                          first);
    if (digit >= c->length || c->text[digit] < '1' || c->text[digit] > '9')
        return probe_fail(c, at, digit + 1 - at, "parameters are $1 to $9, or ${1:-what it is if it is not given}");
    if (has_braces) {
        const char *close = memchr(c->text + behind, '}', c->length - behind);
        has_instead = close && close - (c->text + behind) >= 2 && memcmp(c->text + behind, ":-", 2) == 0;
        if (!close || (!has_instead && close != c->text + behind))
            return probe_fail(c, at, behind - at, "expected ${%c}, or ${%c:-what it is if it is not given}",
                              c->text[digit], c->text[digit]);
        instead = behind + (has_instead ? 2 : 0);
        behind = (uint32_t)(close - c->text);
    }
    const unsigned number = (unsigned)(c->text[digit] - '1');
    p->used |= 1u << number;
    *end = behind + has_braces;
    if (number < p->count)
        fputs(p->values[number], p->out);
    else if (has_instead)
        fwrite(c->text + instead, 1, behind - instead, p->out);
    else
        return probe_fail(c, at, *end - at, "parameter %u is missing: -a VALUE, once for each", number + 1);
    return true;
}

// Quotes in which a "//" is none: what is behind a backslash does not end them.
static bool put_all(struct putting *p)
{
    struct probe_compiler *c = &p->c;
    bool is_quoted = false;
    for (uint32_t at = 0; at < c->length;) {
        uint32_t end = is_quoted ? at : behind_comment(c, at);
        if (end == at && c->text[at] == '$') {
            if (!put(p, at, &end))
                return false;
            at = end;
            continue;
        }
        const bool is_escape = is_quoted && c->text[at] == '\\' && at + 1 < c->length;
        is_quoted ^= end == at && c->text[at] == '"';
        end = end > at ? end : at + 1 + is_escape;
        fwrite(c->text + at, 1, end - at, p->out);
        at = end;
    }
    for (size_t i = 0; i < p->count; i++)
        if (!(p->used >> i & 1))
            return probe_fail(c, 0, 0, "the script has no parameter $%zu, which is \"%.60s\"", i + 1, p->values[i]);
    return true;
}

char *probe_parameters_put(const char *text, size_t length, const char *const *values, size_t count, size_t *put_length,
                           struct probe_diagnostic *diagnostic)
{
    char *made = NULL;
    struct putting p = {
        .c = {.text = text, .length = (uint32_t)length, .diagnostic = diagnostic}, .values = values, .count = count};
    *diagnostic = (struct probe_diagnostic){.text = ""};
    p.out = open_memstream(&made, put_length);
    const bool is_good =
        p.out && (length < 1 << 20 || probe_fail(&p.c, 0, 0, "a script of more than a megabyte")) && put_all(&p);
    if (p.out && fclose(p.out) == 0 && is_good)
        return made;
    probe_no_memory(&p.c); // unless something else was said
    free(made);
    return NULL;
}
