// SPDX-License-Identifier: Apache-2.0
// JSON, written as it goes.
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// A string with its quotes, by pieces. `escaped`: ASCII that must not stand as it is, beside control characters; '"'
// and
// '\\' are of it always. `replacement`: for each byte that belongs to no well-formed UTF-8.
typedef void json_put(void *to, const void *bytes, size_t size);
void base_json_quote(json_put *put, void *to, const char *text, const char *escaped, const char *replacement);

struct base_json {
    FILE *stream;
    bool has_members; // of the innermost open object or array
};

// Members of the one object that is open. A key of NULL: an element of an array, or the outermost value.
void base_json_open(struct base_json *json, const char *key, char bracket);
void base_json_close(struct base_json *json, char bracket);
void base_json_string(struct base_json *json, const char *key, const char *value);
void base_json_number(struct base_json *json, const char *key, uint64_t value);
void base_json_integer(struct base_json *json, const char *key, int64_t value);
void base_json_null(struct base_json *json, const char *key);
void base_json_real(struct base_json *json, const char *key, double value, int decimals);
// With as few digits as tell it apart from all others; of what is no number null.
void base_json_short_real(struct base_json *json, const char *key, double value);
void base_json_bool(struct base_json *json, const char *key, bool value);

#endif
