// SPDX-License-Identifier: Apache-2.0
// What is wrong with a script, and where.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/builtin.h"
#include "tracer/probe/inside.h"

bool probe_fail(struct probe_compiler *c, uint32_t at, uint32_t length, const char *format, ...)
{
    struct probe_diagnostic *diagnostic = c->diagnostic;
    if (diagnostic->text[0])
        return false;
    va_list values;
    va_start(values, format);
    vsnprintf(diagnostic->text, sizeof diagnostic->text, format, values);
    va_end(values);
    diagnostic->at = at;
    diagnostic->length = length;
    for (const struct probe_source *outer = c->outer; outer; outer = outer->outer) {
        diagnostic->at = outer->token.at;
        diagnostic->length = outer->token.length;
    }
    return false;
}

bool probe_no_memory(struct probe_compiler *c)
{
    if (!c->diagnostic->text[0])
        c->diagnostic->is_no_memory = true;
    return probe_fail(c, 0, 0, "no memory");
}

bool probe_fail_here(struct probe_compiler *c, const char *expected)
{
    const struct probe_token *token = &c->token;
    if (token->kind == PROBE_TOKEN_END)
        return probe_fail(c, token->at, 1, "expected %s, not the end", expected);
    const bool is_long = token->length > 32;
    return probe_fail(c, token->at, token->length, "expected %s, not %.*s%s", expected,
                      (int)(is_long ? 32 : token->length), c->text + token->at, is_long ? "..." : "");
}

// Tabs of the line stay tabs below it, so that the caret stands where the reader looks.
static void point(FILE *out, const char *line, size_t before, size_t length)
{
    for (size_t i = 0; i < before; i++)
        if (((unsigned char)line[i] & 0xc0) != 0x80) // one column for each character of UTF-8
            fputc(line[i] == '\t' ? '\t' : ' ', out);
    fputc('^', out);
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)line[before + i] & 0xc0) != 0x80)
            fputc('~', out);
    fputc('\n', out);
}

static void print_line(FILE *out, const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        fputc((unsigned char)line[i] < ' ' && line[i] != '\t' ? '?' : line[i], out);
    fputc('\n', out);
}

char *probe_diagnostic_show(const struct probe_diagnostic *diagnostic, const char *name, const char *text,
                            size_t length)
{
    char *shown = NULL;
    size_t size, begin, end, number = 1;
    const size_t at = diagnostic->at < length ? diagnostic->at : length;
    FILE *out = open_memstream(&shown, &size);
    if (!out)
        return NULL;
    for (begin = at; begin > 0 && text[begin - 1] != '\n';)
        begin--;
    for (end = at; end < length && text[end] != '\n';)
        end++;
    for (size_t i = 0; i < begin; i++)
        number += text[i] == '\n';
    fprintf(out, "%s:%zu:%zu: %s\n", name, number, at - begin + 1, diagnostic->text);
    print_line(out, text + begin, end - begin);
    point(out, text + begin, at - begin, diagnostic->length < end - at ? diagnostic->length : end - at);
    if (fclose(out) == 0)
        return shown;
    free(shown);
    return NULL;
}
