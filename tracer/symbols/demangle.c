// SPDX-License-Identifier: Apache-2.0
#include "tracer/symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct output {
    jmp_buf too_long;
    size_t length;
    char text[SYMBOLS_DEMANGLED_MAX + 1];
};

// The callback cannot say "enough". Both demanglers keep what they need on the stack while they print, so leaving them
// from here loses nothing.
static void take(const char *text, size_t length, void *opaque)
{
    struct output *output = opaque;
    if (length > SYMBOLS_DEMANGLED_MAX - output->length)
        longjmp(output->too_long, 1);
    if (length) // of an empty part it passes NULL
        memcpy(output->text + output->length, text, length);
    output->length += length;
}

static bool demangle(const char *mangled, struct output *output)
{
    const int options = DMGL_PARAMS | DMGL_ANSI;
    if (setjmp(output->too_long) != 0)
        return false;
    output->length = 0;
    // Rust's older names are C++ names in form: it must be asked first.
    if (rust_demangle_callback(mangled, options, take, output))
        return true;
    output->length = 0;
    return cplus_demangle_v3_callback(mangled, options, take, output) != 0;
}

char *symbols_demangle(const char *name)
{
    // Android's linker puts this in front of the names of all that it links into itself.
    static const char linker_prefix[] = "__dl_";
    size_t prefix = strncmp(name, linker_prefix, sizeof linker_prefix - 1) == 0 ? sizeof linker_prefix - 1 : 0;
    const char *mangled = name + prefix;
    bool is_mangled = mangled[0] == '_' && (mangled[1] == 'Z' || mangled[1] == 'R');
    if (!is_mangled || strnlen(mangled, SYMBOLS_MANGLED_MAX + 1) > SYMBOLS_MANGLED_MAX)
        return strdup(name);
    struct output *output = malloc(sizeof *output);
    char *result = NULL;
    if (output && demangle(mangled, output)) {
        result = malloc(prefix + output->length + 1);
        if (result) {
            memcpy(result, name, prefix);
            memcpy(result + prefix, output->text, output->length);
            result[prefix + output->length] = '\0';
        }
    } else if (output) {
        result = strdup(name);
    }
    free(output);
    return result;
}
