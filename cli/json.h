// SPDX-License-Identifier: Apache-2.0
// JSON, written as it goes: members of the one object that is open.
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_json {
    FILE *stream;
    bool has_members; // of the innermost open object or array
};

// A key of NULL: an element of an array, or the outermost value.
void cli_json_open(struct cli_json *json, const char *key, char bracket);
void cli_json_close(struct cli_json *json, char bracket);
void cli_json_string(struct cli_json *json, const char *key, const char *value);
void cli_json_number(struct cli_json *json, const char *key, uint64_t value);
void cli_json_real(struct cli_json *json, const char *key, double value, int decimals);
void cli_json_bool(struct cli_json *json, const char *key, bool value);

#endif
