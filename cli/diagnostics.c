// SPDX-License-Identifier: Apache-2.0
#include "cli/diagnostics.h"

#include <stdarg.h>
#include <string.h>

void cli_print_name(FILE *stream, const char *name)
{
    for (;;) {
        size_t plain = 0;
        while ((unsigned char)name[plain] >= 0x20 && name[plain] != 0x7f)
            plain++;
        fwrite(name, 1, plain, stream);
        name += plain;
        if (!*name++)
            return;
        fputc('?', stream);
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
    va_start(args, format);
    vfprintf(stream, format, args);
    va_end(args);
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
