// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/short_name.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char ellipsis[] = "…";

static bool begins_character(char byte)
{
    return ((uint8_t)byte & 0xc0) != 0x80;
}

static size_t columns_of(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += begins_character(text[i]);
    return count;
}

// ---- brackets

// "operator<", "operator->", "operator()" are no brackets, nor is the arrow of a result's type.
static size_t operator_length(const char *name, size_t at)
{
    static const char word[] = "operator";
    static const char *const signs[] = {"()", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"};
    if (strncmp(name + at, word, sizeof word - 1) != 0)
        return strncmp(name + at, "->", 2) == 0 ? 2 : 0;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(name + at + sizeof word - 1, signs[i], strlen(signs[i])) == 0)
            return sizeof word - 1 + strlen(signs[i]);
    return 0;
}

static bool opens(char byte)
{
    return byte == '<' || byte == '(';
}

static bool closes(char byte)
{
    return byte == '>' || byte == ')';
}

// "(anonymous namespace)" and the like are names, not arguments.
static bool is_name_in_brackets(const char *name, size_t at)
{
    return strncmp(name + at, "(anonymous", 10) == 0 || (at == 0 && name[0] == '<') ||
           (name[at] == '<' && at >= 2 && name[at - 1] == ':' && name[at - 2] == ':');
}

// What stands deeper in brackets than `depth` becomes an ellipsis. False: there is no room for it. *deepest: how deep
// they go, of as much as there was room for.
static bool fold(const char *name, unsigned depth, char *text, size_t size, unsigned *deepest)
{
    size_t used = 0;
    unsigned now = 0, kept_names = 0;
    *deepest = 0;
    for (size_t i = 0; name[i];) {
        size_t length = operator_length(name, i);
        if (!length)
            length = 1;
        bool is_bracket = length == 1;
        if (is_bracket && closes(name[i])) {
            if (now)
                now--;
            else if (kept_names)
                kept_names--;
        }
        if (now <= depth) {
            if (used + length >= size)
                return false;
            memcpy(text + used, name + i, length);
            used += length;
        }
        if (is_bracket && opens(name[i])) {
            if (!now && is_name_in_brackets(name, i)) {
                kept_names++;
            } else {
                now++;
                *deepest = now > *deepest ? now : *deepest;
                bool is_empty = closes(name[i + 1]);
                if (now == depth + 1 && !is_empty) {
                    if (used + sizeof ellipsis > size)
                        return false;
                    memcpy(text + used, ellipsis, sizeof ellipsis - 1);
                    used += sizeof ellipsis - 1;
                }
            }
        }
        i += length;
    }
    text[used] = '\0';
    return true;
}

// ---- the middle

static size_t bytes_of(const char *text, size_t columns)
{
    size_t at = 0;
    for (; text[at]; at++)
        if (begins_character(text[at]) && columns-- == 0)
            break;
    return at;
}

static void cut_middle(char *text, size_t columns)
{
    size_t length = strlen(text), all = columns_of(text, length);
    if (all <= columns)
        return;
    size_t left = (columns - 1) / 2, right = columns - 1 - left;
    size_t head = bytes_of(text, left), tail = bytes_of(text, all - right);
    size_t mark = sizeof ellipsis - 1, tail_bytes = length - tail;
    memmove(text + head + mark, text + tail, tail_bytes + 1);
    memcpy(text + head, ellipsis, mark);
}

// Of a name that even folded is too long for the room.
static void take_ends(const char *name, size_t length, char *text, size_t room)
{
    size_t head = room / 2 - 1, tail = length - head;
    while (head && !begins_character(name[head]))
        head--;
    while (name[tail] && !begins_character(name[tail]))
        tail++;
    memcpy(text, name, head);
    memcpy(text + head, name + tail, length - tail + 1);
}

char *names_shorten(const char *name, size_t columns, char *text, size_t size)
{
    size_t length = strlen(name);
    unsigned deepest = 0, unused;
    if (columns_of(name, length) <= columns && length < size) {
        memcpy(text, name, length + 1);
        return text;
    }
    size_t room = size - 1; // an ellipsis may take a byte more than what it stands for
    fold(name, 0, text, room, &deepest);
    for (unsigned depth = deepest; depth-- > 1;) // as much as there is room for
        if (fold(name, depth, text, room, &unused) && columns_of(text, strlen(text)) <= columns)
            return text;
    if (!fold(name, 0, text, room, &unused))
        take_ends(name, length, text, room);
    cut_middle(text, columns);
    return text;
}
