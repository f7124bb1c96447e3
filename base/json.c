// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_inline.h"

void base_json_quote(json_put *put, void *to, const char *text, const char *escaped, const char *replacement)
{
    static const char digits[] = "0123456789abcdef";
    put(to, "\"", 1);
    for (;; text++) {
        size_t plain = base_utf8_plain(text, escaped);
        put(to, text, plain);
        text += plain;
        uint8_t byte = (uint8_t)*text;
        if (byte == 0)
            break;
        size_t length = base_utf8_sequence(text); // all of these are of 16 bits
        uint32_t character = length ? base_utf8_character(text, length) : 0;
        const char number[] = {'\\',
                               'u',
                               digits[character >> 12 & 15],
                               digits[character >> 8 & 15],
                               digits[character >> 4 & 15],
                               digits[character & 15]};
        if (!length)
            put(to, replacement, strlen(replacement));
        else if (byte == '"' || byte == '\\')
            put(to, (const char[]){'\\', (char)byte}, 2);
        else
            put(to, number, sizeof number);
        text += length ? length - 1 : 0;
    }
    put(to, "\"", 1);
}

static void put_in_stream(void *stream, const void *bytes, size_t size)
{
    fwrite(bytes, 1, size, stream);
}

static void write_string(FILE *stream, const char *value)
{
    base_json_quote(put_in_stream, stream, value, "\"\\", "\\ufffd");
}

static void begin_member(struct base_json *json, const char *key)
{
    if (json->has_members)
        fputs(", ", json->stream);
    json->has_members = true;
    if (key) {
        write_string(json->stream, key);
        fputs(": ", json->stream);
    }
}

void base_json_open(struct base_json *json, const char *key, char bracket)
{
    begin_member(json, key);
    fputc(bracket, json->stream);
    json->has_members = false;
}

void base_json_close(struct base_json *json, char bracket)
{
    fputc(bracket, json->stream);
    json->has_members = true;
}

void base_json_string(struct base_json *json, const char *key, const char *value)
{
    begin_member(json, key);
    write_string(json->stream, value);
}

void base_json_number(struct base_json *json, const char *key, uint64_t value)
{
    begin_member(json, key);
    fprintf(json->stream, "%" PRIu64, value);
}

void base_json_integer(struct base_json *json, const char *key, int64_t value)
{
    begin_member(json, key);
    fprintf(json->stream, "%" PRId64, value);
}

void base_json_null(struct base_json *json, const char *key)
{
    begin_member(json, key);
    fputs("null", json->stream);
}

void base_json_real(struct base_json *json, const char *key, double value, int decimals)
{
    begin_member(json, key);
    fprintf(json->stream, "%.*f", decimals, value);
}

void base_json_short_real(struct base_json *json, const char *key, double value)
{
    char text[40] = "null";
    if (value - value == 0) // no infinity, no NaN
        for (int digits = 15; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, value);
            if (strtod(text, NULL) == value)
                break;
        }
    begin_member(json, key);
    fputs(text, json->stream);
}

void base_json_bool(struct base_json *json, const char *key, bool value)
{
    begin_member(json, key);
    fputs(value ? "true" : "false", json->stream);
}
