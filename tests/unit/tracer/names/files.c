// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/names/files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elf_builder.h"

static void must(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "failed: %s\n", what);
    abort();
}

static char *format_text(const char *format, va_list arguments)
{
    char *text = NULL;
    must(vasprintf(&text, format, arguments) >= 0, format);
    return text;
}

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(format, arguments);
    va_end(arguments);
    return text;
}

void files_run(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *command = format_text(format, arguments);
    va_end(arguments);
    must(system(command) == 0, command);
    free(command);
}

static void first_line(const char *command, char *line, int size)
{
    FILE *output = popen(command, "re");
    must(output && fgets(line, size, output), command);
    pclose(output);
    line[strcspn(line, "\n")] = '\0';
}

static uint64_t address_of(const char *option, const char *path, const char *symbol)
{
    char line[64];
    char *command =
        text_of("nm %s '%s' | awk '{ sub(/@.*/, \"\", $3) } $3 == \"%s\" { print $1; exit }'", option, path, symbol);
    first_line(command, line, sizeof line);
    free(command);
    return strtoull(line, NULL, 16) + 1;
}

uint64_t files_address(const char *path, const char *symbol)
{
    return address_of("", path, symbol);
}

uint64_t files_dynamic_address(const char *path, const char *symbol)
{
    return address_of("-D", path, symbol);
}

char *files_build_id(const char *path)
{
    char line[256], *command = text_of("readelf -n '%s' | sed -n 's/.*Build ID: //p'", path);
    first_line(command, line, sizeof line);
    free(command);
    return text_of("%s", line);
}

char *files_copy(const char *directory, const char *path, const char *name)
{
    char *copy = text_of("%s/%s", directory, name);
    files_run("mkdir -p \"$(dirname '%s')\" && cp '%s' '%s'", copy, path, copy);
    return copy;
}

char *files_strip(const char *directory, const char *path, const char *name)
{
    char *copy = files_copy(directory, path, name);
    files_run("objcopy --strip-all '%s'", copy);
    return copy;
}

char *files_debug(const char *root, const char *path)
{
    char *id = files_build_id(path);
    char *made = text_of("%s/.build-id/%.2s/%s.debug", root, id, id + 2);
    files_run("mkdir -p \"$(dirname '%s')\" && objcopy --only-keep-debug '%s' '%s'", made, path, made);
    free(id);
    return made;
}

char *files_mini(const char *directory, const char *path, const char *name)
{
    char *copy = files_strip(directory, path, name);
    files_run(
        "objcopy --only-keep-debug '%s' '%s/mini' && objcopy -S --keep-symbol=names_inner '%s/mini' '%s/mini2' && "
        "xz -f '%s/mini2' && objcopy --add-section .gnu_debugdata='%s/mini2.xz' '%s'",
        path, directory, directory, directory, directory, directory, copy);
    return copy;
}

static struct build_buffer read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    struct build_buffer bytes = {0};
    char part[4096];
    must(file != NULL, path);
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        build_add(&bytes, part, got);
    fclose(file);
    return bytes;
}

char *files_archive(const char *directory, const char *name, const char *path, const char *entry,
                    const char *other_path, const char *other_entry)
{
    struct build_buffer bytes = read_file(path), others = read_file(other_path);
    const struct build_member members[] = {{"AndroidManifest.xml", "<x/>", 4, 0},
                                           {other_entry, others.data, others.size, 0},
                                           {entry, bytes.data, bytes.size, 0}};
    struct build_buffer zip = build_zip(members, 3, "");
    char *made = build_file(directory, name, zip.data, zip.size);
    free(zip.data);
    free(bytes.data);
    free(others.data);
    return made;
}
