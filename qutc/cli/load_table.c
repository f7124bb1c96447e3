// SPDX-License-Identifier: Apache-2.0
#include "qutc/cli/load_table.h"

#include "base/clock_inline.h"

int cli_load_open(const struct cli_options *options, const struct input *input, struct cli_loaded *loaded,
                  struct base_error *error)
{
    *loaded = (struct cli_loaded){0};
    uint64_t start_ns = base_clock_now_ns();
    if (input_open(input, &options->image, &loaded->image, error) != 0)
        return -1;
    loaded->arch = loaded->image->arch;
    loaded->open_time_ns = base_clock_now_ns() - start_ns;
    return 0;
}

int cli_load_compile(const struct cli_options *options, struct cli_loaded *loaded, struct base_error *error)
{
    const struct qutc_compile_options compile_options = {.small = options->small, .fill = options->fill};
    struct qutc_table_file *file = &loaded->file;
    uint64_t start_ns = base_clock_now_ns();
    if (qutc_compile(loaded->image, &compile_options, &file->bytes, &file->size, &loaded->stats, error) != 0)
        return -1;
    loaded->compile_time_ns = base_clock_now_ns() - start_ns;
    return qutc_table_attach(&file->table, file->bytes, file->size, error);
}

int cli_load(const struct cli_options *options, const struct cli_inputs *inputs, size_t index,
             struct cli_loaded *loaded, struct base_error *error)
{
    const struct cli_input *input = &inputs->items[index];
    if (!input->table) {
        if (cli_load_open(options, &inputs->elfs.items[input->elf], loaded, error) != 0)
            return -1;
        if (cli_load_compile(options, loaded, error) == 0)
            return 0;
        cli_unload(loaded);
        return -1;
    }
    *loaded = (struct cli_loaded){0};
    if (qutc_table_file_read(input->table, &loaded->file, error) != 0)
        return -1;
    loaded->arch = arch_by_id((enum qut_arch_id)loaded->file.table.header->arch);
    return 0;
}

void cli_unload(struct cli_loaded *loaded)
{
    qutc_table_file_free(&loaded->file);
    if (loaded->image)
        input_image_close(loaded->image);
    *loaded = (struct cli_loaded){0};
}

int cli_load_operand(const struct cli_options *options, const char *path, struct cli_loaded *loaded)
{
    struct cli_options one = *options;
    char *operand = (char *)(uintptr_t)path;
    one.operands = &operand;
    one.operand_count = 1;
    struct cli_inputs inputs;
    int status = cli_inputs_expand(&one, true, &inputs);
    if (status == CLI_OK && inputs.count != 1) {
        cli_report(stderr, path, "several ELF files; name one of them");
        status = CLI_BAD;
    }
    struct base_error error = {0};
    if (status == CLI_OK && cli_load(options, &inputs, 0, loaded, &error) != 0) {
        cli_report_error(stderr, path, &error);
        status = CLI_BAD;
    }
    cli_inputs_free(&inputs);
    return status;
}
