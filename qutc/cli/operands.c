// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/operands.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/qut_bundle.h"
#include "formats/qut_table.h"

enum { MAGIC_NAME_BYTES = 7 }; // the eighth is a version, for the checker to refuse by name

static bool begins_with(const char *path, const char *magic)
{
    char start[MAGIC_NAME_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    ssize_t got = pread(fd, start, sizeof start, 0);
    close(fd);
    return got == (ssize_t)sizeof start && memcmp(start, magic, sizeof start) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

static bool is_elf(const char *path)
{
    char start[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    ssize_t got = pread(fd, start, sizeof start, 0);
    close(fd);
    return got == (ssize_t)sizeof start && memcmp(start, "\177ELF", sizeof start) == 0;
}

bool cli_is_table(const char *path)
{
    return begins_with(path, QUT_TABLE_MAGIC) || (ends_with(path, ".qut") && !is_elf(path));
}

bool cli_is_bundle(const char *path)
{
    return begins_with(path, QUT_BUNDLE_MAGIC);
}

static int append(struct cli_inputs *inputs, const struct cli_input *item)
{
    struct cli_input *place = BASE_ADD(inputs);
    if (!place)
        return -1;
    *place = *item;
    return 0;
}

static int append_elfs(struct cli_inputs *inputs, size_t first, bool is_named)
{
    for (size_t i = first; i < inputs->elfs.count; i++) {
        struct cli_input item = {.name = inputs->elfs.items[i].name, .elf = i, .is_named = is_named};
        if (append(inputs, &item) != 0)
            return -1;
    }
    return 0;
}

static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int add_operand(struct cli_inputs *inputs, const char *path, bool take_tables, struct base_error *error)
{
    bool directory = is_directory(path);
    if (directory)
        inputs->is_batch = true;
    else if (cli_is_bundle(path))
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "a bundle; take tables out of it with qutc unpack");
    else if (cli_is_table(path) && !take_tables)
        return base_fail(error, BASE_ERR_NOT_ELF, "", 0, "a table already");
    else if (cli_is_table(path))
        return append(inputs, &(struct cli_input){.name = path, .table = path, .is_named = true}) == 0
                   ? 0
                   : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of inputs");
    size_t first = inputs->elfs.count;
    if (input_inputs_add_path(&inputs->elfs, path, error) != 0)
        return -1;
    size_t found = inputs->elfs.count - first;
    if (directory && inputs->elfs.count == 0)
        return base_fail(error, BASE_ERR_NOT_ELF, "", 0, "no ELF files in this directory");
    if (append_elfs(inputs, first, !directory && found == 1) != 0)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "list of inputs");
    return 0;
}

static void note(struct cli_inputs *inputs, const char *name, int result, const struct base_error *error)
{
    if (result == 0)
        return;
    cli_report_error(stderr, name, error);
    inputs->failed++;
    struct cli_failure *failure = BASE_ADD(&inputs->failures);
    if (!failure)
        return;
    snprintf(failure->name, sizeof failure->name, "%s", name);
    base_error_text(error, failure->why, sizeof failure->why);
}

int cli_inputs_expand(const struct cli_options *options, bool take_tables, struct cli_inputs *inputs)
{
    *inputs = (struct cli_inputs){0};
    input_inputs_init(&inputs->elfs);
    for (int i = 0; i < options->operand_count; i++) {
        struct base_error error = {0};
        int result = add_operand(inputs, options->operands[i], take_tables, &error);
        note(inputs, options->operands[i], result, &error);
    }
    for (unsigned i = 0; i < options->pid_count; i++) {
        struct base_error error = {0};
        char name[32];
        snprintf(name, sizeof name, "process %d", options->pids[i]);
        size_t first = inputs->elfs.count;
        int result = input_inputs_add_process(&inputs->elfs, options->pids[i], &error);
        note(inputs, name, result ? result : append_elfs(inputs, first, false), &error);
        inputs->is_batch = true;
    }
    if (options->system) {
        struct base_error error = {0};
        size_t first = inputs->elfs.count;
        int result = input_inputs_add_system(&inputs->elfs, &error);
        note(inputs, "--system", result ? result : append_elfs(inputs, first, false), &error);
        inputs->is_batch = true;
    }
    if (inputs->count + inputs->failed > 1)
        inputs->is_batch = true;
    if (inputs->count)
        return CLI_OK;
    if (!inputs->failed)
        cli_report(stderr, options->command, "no ELF files found");
    return CLI_BAD;
}

void cli_inputs_free(struct cli_inputs *inputs)
{
    base_vector_free(&inputs->vector);
    base_vector_free(&inputs->failures.vector);
    input_inputs_free(&inputs->elfs);
    *inputs = (struct cli_inputs){0};
}
