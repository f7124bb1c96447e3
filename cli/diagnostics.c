// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnostics.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8_inline.h"

void cli_print_name(FILE *stream, const char *name)
{
    for (;;) {
        size_t plain = base_utf8_plain(name, "");
        fwrite(name, 1, plain, stream);
        name += plain;
        if (!*name)
            return;
        fputc('?', stream);
        size_t length = base_utf8_sequence(name);
        name += length ? length : 1;
    }
}

void cli_report(FILE *stream, const char *name, const char *format, ...)
{
    fprintf(stream, "%s: ", cli_program);
    if (name) {
        cli_print_name(stream, name);
        fputs(": ", stream);
    }
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    // What was found wrong can hold names too.
    cli_print_name(stream, length < 0 ? "no memory for what is to be said" : text);
    if (length >= 0)
        free(text);
    fputc('\n', stream);
}

void cli_report_error(FILE *stream, const char *name, const struct base_error *error)
{
    char text[256];
    cli_report(stream, name, "%s", base_error_text(error, text, sizeof text));
}

const char *cli_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
