// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/probe/inside.h"

static bool is_letter(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || character == '_';
}

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static char at(const struct probe_compiler *c, uint32_t place)
{
    return place < c->length ? c->text[place] : 0;
}

static bool pass_comment(struct probe_compiler *c, bool *passed)
{
    const uint32_t begin = c->next;
    *passed = at(c, begin) == '/' && (at(c, begin + 1) == '/' || at(c, begin + 1) == '*');
    if (!*passed)
        return true;
    if (at(c, begin + 1) == '/') {
        while (c->next < c->length && c->text[c->next] != '\n')
            c->next++;
        return true;
    }
    for (c->next += 2; c->next + 1 < c->length; c->next++)
        if (c->text[c->next] == '*' && c->text[c->next + 1] == '/') {
            c->next += 2;
            return true;
        }
    return probe_fail(c, begin, 2, "this comment does not end");
}

static bool pass_spaces(struct probe_compiler *c)
{
    bool passed = true;
    while (passed) {
        while (c->next < c->length && c->text[c->next] && strchr(" \t\r\n", c->text[c->next]))
            c->next++;
        if (!pass_comment(c, &passed))
            return false;
    }
    return true;
}

// ---- numbers

static const struct unit {
    char name[3];
    uint64_t factor;
} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

static int value_of_digit(char character, unsigned base)
{
    const int value = is_digit(character)                    ? character - '0'
                      : character >= 'a' && character <= 'f' ? character - 'a' + 10
                      : character >= 'A' && character <= 'F' ? character - 'A' + 10
                                                             : 16;
    return value < (int)base ? value : -1;
}

static bool take_unit(struct probe_compiler *c, uint32_t begin)
{
    struct probe_token *token = &c->token;
    const uint32_t unit_at = c->next;
    while (is_letter(at(c, c->next)) || is_digit(at(c, c->next)))
        c->next++;
    const uint32_t length = c->next - unit_at;
    token->length = c->next - begin;
    if (length == 0)
        return true;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == length && memcmp(units[i].name, c->text + unit_at, length) == 0) {
            token->has_unit = true;
            if (__builtin_mul_overflow(token->number, units[i].factor, &token->number) || token->number > INT64_MAX)
                return probe_fail(c, begin, token->length, "more than 63 bits");
            return true;
        }
    return probe_fail(c, unit_at, length, "no such unit: there are ns, us, ms, s");
}

static bool take_number(struct probe_compiler *c)
{
    struct probe_token *token = &c->token;
    const uint32_t begin = c->next;
    const bool is_hex = at(c, begin) == '0' && (at(c, begin + 1) == 'x' || at(c, begin + 1) == 'X');
    const unsigned base = is_hex ? 16 : 10;
    token->kind = PROBE_TOKEN_NUMBER;
    c->next += is_hex ? 2 : 0;
    const uint32_t digits = c->next;
    for (int digit; (digit = value_of_digit(at(c, c->next), base)) >= 0; c->next++)
        if (__builtin_mul_overflow(token->number, (uint64_t)base, &token->number) ||
            __builtin_add_overflow(token->number, (uint64_t)digit, &token->number))
            return probe_fail(c, begin, c->next - begin + 1, "more than 64 bits");
    if (c->next == digits)
        return probe_fail(c, begin, 2, "no digits");
    return take_unit(c, begin);
}

// ---- the others

static bool take_text(struct probe_compiler *c)
{
    const uint32_t begin = c->next;
    c->token.kind = PROBE_TOKEN_TEXT;
    for (c->next++; c->next < c->length && c->text[c->next] != '\n'; c->next++) {
        if (c->text[c->next] == '"') {
            c->token.length = ++c->next - begin;
            return true;
        }
        c->next += c->text[c->next] == '\\';
    }
    c->next = c->next < c->length ? c->next : c->length;
    return probe_fail(c, begin, 1, "this text does not end");
}

static bool take_sign(struct probe_compiler *c)
{
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "->"};
    c->token.kind = PROBE_TOKEN_SIGN;
    c->token.length = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (at(c, c->next) == pairs[i][0] && at(c, c->next + 1) == pairs[i][1])
            c->token.length = 2;
    if (!at(c, c->next) || !strchr("{}()[];,:=!<>&|^~+-*/%?.", c->text[c->next]))
        return probe_fail(c, c->next, 1, "this character means nothing here");
    c->next += c->token.length;
    return true;
}

bool probe_next(struct probe_compiler *c)
{
    if (!pass_spaces(c))
        return false;
    c->token = (struct probe_token){.kind = PROBE_TOKEN_END, .at = c->next};
    const char first = at(c, c->next);
    if (c->next >= c->length)
        return true;
    if (is_letter(first) || first == '@') {
        c->token.kind = first == '@' ? PROBE_TOKEN_MAP : PROBE_TOKEN_NAME;
        for (c->next++; is_letter(at(c, c->next)) || is_digit(at(c, c->next)); c->next++)
            continue;
        c->token.length = c->next - c->token.at;
        return true;
    }
    if (is_digit(first))
        return take_number(c);
    return first == '"' ? take_text(c) : take_sign(c);
}

static bool is_token(const struct probe_compiler *c, enum probe_token_kind kind, const char *text)
{
    return c->token.kind == kind && c->token.length == strlen(text) &&
           memcmp(c->text + c->token.at, text, c->token.length) == 0;
}

bool probe_is_sign(const struct probe_compiler *c, const char *sign)
{
    return is_token(c, PROBE_TOKEN_SIGN, sign);
}

bool probe_is_name(const struct probe_compiler *c, const char *name)
{
    return is_token(c, PROBE_TOKEN_NAME, name);
}

bool probe_take_sign(struct probe_compiler *c, const char *sign)
{
    char expected[8];
    snprintf(expected, sizeof expected, "\"%s\"", sign);
    return probe_is_sign(c, sign) ? probe_next(c) : probe_fail_here(c, expected);
}

char *probe_token_text(const struct probe_compiler *c, const struct probe_token *token, size_t *length)
{
    char *text = malloc(token->length);
    size_t count = 0;
    for (uint32_t i = 1; text && i + 1 < token->length; i++) {
        char character = c->text[token->at + i];
        if (character == '\\' && i + 2 < token->length) {
            character = c->text[token->at + ++i];
            character = character == 'n' ? '\n' : character == 't' ? '\t' : character;
        }
        text[count++] = character;
    }
    if (text)
        text[count] = 0;
    *length = count;
    return text;
}

char *probe_copy(struct probe_compiler *c, uint32_t begin, uint32_t length)
{
    char *copy = strndup(c->text + begin, length);
    if (!copy)
        probe_no_memory(c);
    return copy;
}
