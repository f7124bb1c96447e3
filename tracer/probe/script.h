// SPDX-License-Identifier: Apache-2.0
// Scripts of probes: from text to programs (formats/qut_probe.md) that are verified. The language: docs/probes.md.
#ifndef TRACER_PROBE_SCRIPT_H
#define TRACER_PROBE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/vector.h"
#include "formats/qut_probe.h"

enum probe_type { PROBE_INTEGER, PROBE_TEXT, PROBE_STACK }; // a stack is its number, one word

struct probe_part { // of a key, or of a record
    enum probe_type type;
    uint32_t words;
    char name[32]; // the last one in its text: of str(args->path) "path"; "": there is none
};
struct probe_parts { // in memory the last one comes first
    struct probe_part items[8];
    uint32_t count, words;
    bool is_in_order; // in memory the first one does
};

struct probe_place { // where a program runs
    enum qut_probe_kind kind;
    char *pattern;         // [MODULE!]GLOB, of entries and returns; else NULL
    char *caller;          // likewise, of calls out of such functions alone; NULL: of all
    uint64_t offset_bytes; // of PLACE: behind the entries of the pattern's functions
    char *file;            // of PLACE: where the code of a line of this file begins; NULL: an offset is meant
    uint32_t line;
    uint64_t period_ns;
    uint32_t program;
    bool is_resolved; // its program is made for those functions of the pattern that the resolver knew
};

struct probe_map {
    char *name; // without "@"; "" is one, too
    struct probe_parts key;
    enum probe_type value; // of kind value: a number, or a stack
};

// A map that is a script's own affair: its name begins with two underscores. It is shown where it is printed only.
static inline bool probe_map_is_hidden(const struct probe_map *map)
{
    return map->name[0] == '_' && map->name[1] == '_';
}

struct probe_record {
    char *format; // of printf, its escapes replaced
    struct probe_parts words;
};

struct probe_script {
    struct {
        BASE_VECTOR(struct probe_place);
    } places;
    struct {
        BASE_VECTOR(struct probe_map);
    } maps; // as the image has them
    struct {
        BASE_VECTOR(struct probe_record);
    } records;
    void *image; // malloc's
    size_t image_bytes;
};

struct probe_diagnostic {
    bool is_no_memory;
    uint32_t at, length; // in the text, bytes
    char text[160];
};

// 0; -1: *diagnostic says what and where. Allocates; free with probe_script_free in either case. A script that is
// compiled is verified, too.
int probe_compile(const char *text, size_t length, struct probe_script *script, struct probe_diagnostic *diagnostic);
// The same of scripts that may name arguments: `resolver` is asked what they are.
struct probe_resolver;
int probe_compile_with(const char *text, size_t length, struct probe_resolver *resolver, struct probe_script *script,
                       struct probe_diagnostic *diagnostic);
void probe_script_free(struct probe_script *script);

// "NAME:2:7: what is wrong", the line, and a caret below the place; malloc's, NULL: no memory.
char *probe_diagnostic_show(const struct probe_diagnostic *diagnostic, const char *name, const char *text,
                            size_t length);

#endif
