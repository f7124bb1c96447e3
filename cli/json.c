// SPDX-License-Identifier: Apache-2.0
#include "cli/json.h"

#include <inttypes.h>

// Length of the well-formed UTF-8 sequence at text, or 0. File names are bytes; JSON is not.
static unsigned utf8_length(const unsigned char *text)
{
    unsigned length = *text < 0x80 ? 1 : *text >= 0xc2 && *text < 0xe0 ? 2 : (*text & 0xf0) == 0xe0 ? 3 : 4;
    if ((*text >= 0x80 && *text < 0xc2) || *text > 0xf4)
        return 0;
    for (unsigned i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if (length < 3)
        return length;
    unsigned two = (unsigned)text[0] << 8 | text[1];
    bool overlong = (two >= 0xe080 && two < 0xe0a0) || (two >= 0xf080 && two < 0xf090);
    bool surrogate = two >= 0xeda0 && two < 0xee00;
    return overlong || surrogate || two >= 0xf490 ? 0 : length;
}

static void write_string(FILE *stream, const char *value)
{
    fputc('"', stream);
    for (const unsigned char *at = (const unsigned char *)value; *at;) {
        unsigned length = utf8_length(at);
        if (length == 0) {
            fputs("\\ufffd", stream);
            at++;
        } else if (length == 1 && (*at < 0x20 || *at == 0x7f)) {
            fprintf(stream, "\\u%04x", *at++);
        } else {
            if (*at == '"' || *at == '\\')
                fputc('\\', stream);
            fwrite(at, 1, length, stream);
            at += length;
        }
    }
    fputc('"', stream);
}

static void begin_member(struct cli_json *json, const char *key)
{
    if (json->has_members)
        fputs(", ", json->stream);
    json->has_members = true;
    if (key) {
        write_string(json->stream, key);
        fputs(": ", json->stream);
    }
}

void cli_json_open(struct cli_json *json, const char *key, char bracket)
{
    begin_member(json, key);
    fputc(bracket, json->stream);
    json->has_members = false;
}

void cli_json_close(struct cli_json *json, char bracket)
{
    fputc(bracket, json->stream);
    json->has_members = true;
}

void cli_json_string(struct cli_json *json, const char *key, const char *value)
{
    begin_member(json, key);
    write_string(json->stream, value);
}

void cli_json_number(struct cli_json *json, const char *key, uint64_t value)
{
    begin_member(json, key);
    fprintf(json->stream, "%" PRIu64, value);
}

void cli_json_real(struct cli_json *json, const char *key, double value, int decimals)
{
    begin_member(json, key);
    fprintf(json->stream, "%.*f", decimals, value);
}

void cli_json_bool(struct cli_json *json, const char *key, bool value)
{
    begin_member(json, key);
    fputs(value ? "true" : "false", json->stream);
}
