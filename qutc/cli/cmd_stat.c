// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include <qut/frame.h>

#include "formats/qut_table_name_inline.h"
#include "qutc/cli/batch.h"
#include "qutc/cli/load_table.h"
#include "qutc/cli/table_facts.h"
#include "qutc/table/rule_text.h"

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void print_json_times(struct base_json *json, const struct cli_loaded *loaded)
{
    const struct input_image *image = loaded->image;
    if (!image)
        return;
    base_json_number(json, "fdes", loaded->stats.fde_count);
    base_json_number(json, "exidx_entries", loaded->stats.exidx_count);
    base_json_number(json, "skipped_fdes", loaded->stats.skipped_fdes);
    base_json_number(json, "source_rows", loaded->stats.source_rows);
    base_json_number(json, "damaged_parts", image->damage_count);
    base_json_number(json, "functions_in_holes", loaded->stats.code.functions);
    base_json_number(json, "functions_followed", loaded->stats.code.followed);
    base_json_number(json, "data_among_code_bytes", loaded->stats.code.data_bytes);
    base_json_bool(json, "following_was_cut", loaded->stats.code.is_cut);
    base_json_real(json, "open_ms", milliseconds(loaded->open_time_ns), 3);
    base_json_real(json, "unpack_ms", milliseconds(image->unpack_time_ns), 3);
    base_json_real(json, "xz_ms", milliseconds(image->xz_time_ns), 3);
    base_json_real(json, "compile_ms", milliseconds(loaded->compile_time_ns), 3);
}

static void print_json(const char *name, const struct cli_loaded *loaded, const struct cli_coverage *coverage,
                       FILE *output)
{
    const struct qut_table_header *header = loaded->file.table.header;
    struct cli_source source = cli_source(header);
    char identity[2 * sizeof header->identity + 1];
    qut_hex(header->identity, header->identity_size, identity);
    struct base_json json = {.stream = output};
    base_json_open(&json, NULL, '{');
    base_json_string(&json, "file", name);
    base_json_string(&json, "arch", loaded->arch->name);
    base_json_string(&json, "identity", identity);
    base_json_bool(&json, "identity_is_build_id", header->flags & QUT_TABLE_BUILD_ID);
    base_json_number(&json, "rows", header->row_count);
    base_json_number(&json, "rules", header->rule_count);
    base_json_number(&json, "refused_rows", header->refused_rows);
    base_json_number(&json, "hole_rows", header->hole_rows);
    base_json_number(&json, "table_bytes", loaded->file.size);
    base_json_bool(&json, "small", header->flags & QUT_TABLE_SMALL);
    base_json_string(&json, "source", source.name);
    base_json_number(&json, "source_bytes", source.bytes);
    if (source.bytes)
        base_json_real(&json, "share", (double)loaded->file.size / (double)source.bytes, 4);
    base_json_number(&json, "text_bytes", header->text_size);
    base_json_number(&json, "covered_bytes", coverage->rule_bytes);
    base_json_number(&json, "from_code_bytes", coverage->from_code_bytes);
    base_json_number(&json, "doubtful_bytes", coverage->doubtful_bytes);
    base_json_number(&json, "refused_bytes", coverage->refused_bytes);
    base_json_number(&json, "hole_bytes", coverage->hole_bytes);
    if (coverage->code_bytes) {
        base_json_number(&json, "code_bytes", coverage->code_bytes);
        base_json_number(&json, "padding_bytes", coverage->padding_bytes);
    }
    base_json_open(&json, "refused_by_reason", '{');
    for (unsigned i = 0; i < QUT_REFUSAL_END; i++)
        if (coverage->refused[i].bytes)
            base_json_number(&json, qut_refusal_name(i), coverage->refused[i].rows);
    base_json_close(&json, '}');
    const char *origins[CLI_ORIGINS_MAX];
    unsigned origin_count = cli_origins(header, origins);
    base_json_open(&json, "from", '[');
    for (unsigned i = 0; i < origin_count; i++)
        base_json_string(&json, NULL, origins[i]);
    base_json_close(&json, ']');
    print_json_times(&json, loaded);
    base_json_close(&json, '}');
}

static void print_times(const struct cli_loaded *loaded, FILE *output)
{
    const struct input_image *image = loaded->image;
    if (!image)
        return;
    uint64_t whole_ns = loaded->open_time_ns + loaded->compile_time_ns;
    fprintf(output, "  time      open %.2f ms, compile %.2f ms; unpacking %.2f ms, xz %.0f%% of all\n",
            milliseconds(loaded->open_time_ns), milliseconds(loaded->compile_time_ns),
            milliseconds(image->unpack_time_ns), percent(image->xz_time_ns, whole_ns));
    const struct code_fill_counts *code = &loaded->stats.code;
    if (code->functions)
        fprintf(output, "  code      %" PRIu64 " functions that nothing describes, %" PRIu64 " followed\n",
                code->functions, code->followed);
    for (unsigned i = CODE_FOLLOWED + 1; i < CODE_OUTCOME_END; i++)
        if (code->outcomes[i])
            fprintf(output, "  not       followed, %" PRIu64 " times: %s\n", code->outcomes[i], code_outcome_name(i));
    if (code->is_cut)
        fputs("  not       looked at, some of it: too much was followed in vain (--fill: all is)\n", output);
    if (code->doubtful)
        fprintf(output, "  without   a rule, %" PRIu64 " instructions: behind calls that nothing shows to come back\n",
                code->doubtful);
    char why[256];
    if (image->damage_count) {
        fprintf(output, "  left out  %u parts that cannot be read; the first: ", image->damage_count);
        cli_print_name(output, base_error_text(&image->damage, why, sizeof why));
        fputc('\n', output);
    }
    if (loaded->stats.skipped_fdes) {
        fprintf(output,
                "  left out  %" PRIu64 " records that contradict the format; the first: ", loaded->stats.skipped_fdes);
        cli_print_name(output, base_error_text(&loaded->stats.first_skipped, why, sizeof why));
        fputc('\n', output);
    }
}

static void print_text(const char *name, const struct cli_loaded *loaded, const struct cli_coverage *coverage,
                       FILE *output)
{
    const struct qut_table_header *header = loaded->file.table.header;
    struct cli_source source = cli_source(header);
    char identity[2 * sizeof header->identity + 1];
    qut_hex(header->identity, header->identity_size, identity);
    cli_print_name(output, name);
    fprintf(output, ":\n  for       %s, %s %s\n", loaded->arch->name,
            header->flags & QUT_TABLE_BUILD_ID       ? "build-id"
            : header->flags & QUT_TABLE_OAT_IDENTITY ? "OAT identity"
                                                     : "content hash",
            identity);
    fprintf(output, "  table     %zu bytes", loaded->file.size);
    if (source.bytes)
        fprintf(output, ", %.1f%% of %s (%" PRIu64 " bytes)", percent(loaded->file.size, source.bytes), source.name,
                source.bytes);
    fprintf(output, "%s\n", header->flags & QUT_TABLE_SMALL ? ", small" : "");
    fprintf(output,
            "  rows      %" PRIu32 ", %" PRIu32 " distinct rules; %" PRIu32 " rows refused, %" PRIu32 " holes\n",
            header->row_count, header->rule_count, header->refused_rows, header->hole_rows);
    fprintf(output, "  text      %" PRIu64 " bytes: %.2f%% with a rule, %.2f%% refused, %.2f%% holes\n",
            header->text_size, percent(coverage->rule_bytes, header->text_size),
            percent(coverage->refused_bytes, header->text_size), percent(coverage->hole_bytes, header->text_size));
    if (coverage->from_code_bytes)
        fprintf(output, "            %.2f%% by what the code does\n",
                percent(coverage->from_code_bytes, header->text_size));
    uint64_t other_bytes = loaded->stats.code.data_bytes + coverage->padding_bytes;
    uint64_t code_bytes = coverage->code_bytes - other_bytes;
    if (other_bytes)
        fprintf(output,
                "            %" PRIu64 " bytes of it are code, without %" PRIu64 " that fill up and %" PRIu64
                " that code loads or jumps by: %.2f%% of them with a rule\n",
                code_bytes, coverage->padding_bytes, loaded->stats.code.data_bytes,
                percent(coverage->rule_bytes, code_bytes));
    if (coverage->doubtful_bytes)
        fprintf(output, "            %.2f%% doubtful: the code says otherwise\n",
                percent(coverage->doubtful_bytes, header->text_size));
    const char *origins[CLI_ORIGINS_MAX];
    unsigned origin_count = cli_origins(header, origins);
    for (unsigned i = 0; i < origin_count; i++)
        fprintf(output, "%s%s", i ? ", " : "  rows from ", origins[i]);
    fputs(origin_count ? "\n" : "", output);
    for (unsigned i = 0; i < QUT_REFUSAL_END; i++)
        if (coverage->refused[i].bytes)
            fprintf(output, "  refused   %s: %" PRIu64 " rows, %" PRIu64 " bytes\n", qut_refusal_name(i),
                    coverage->refused[i].rows, coverage->refused[i].bytes);
    print_times(loaded, output);
}

static int stat_one(struct cli_batch *batch, size_t index, FILE *output, uint64_t numbers[CLI_TALLY_NUMBERS],
                    struct base_error *error)
{
    (void)numbers;
    struct cli_loaded loaded;
    struct cli_coverage coverage;
    if (cli_load(batch->options, &batch->inputs, index, &loaded, error) != 0)
        return CLI_FAILED;
    cli_coverage(&loaded.file.table, loaded.image, &coverage);
    if (batch->options->json)
        print_json(batch->inputs.items[index].name, &loaded, &coverage, output);
    else
        print_text(batch->inputs.items[index].name, &loaded, &coverage, output);
    cli_unload(&loaded);
    return CLI_DONE;
}

static int run_stat(const struct cli_options *options)
{
    struct cli_batch batch = {.work = stat_one};
    int status = cli_batch_expand(&batch, options, true);
    if (status == CLI_OK)
        status = cli_batch_run(&batch);
    cli_batch_free(&batch);
    return status;
}

static const struct cli_usage usage = {
    .run = run_stat,
    .option_set = CLI_OPT_JOBS | CLI_OPT_SMALL | CLI_OPT_FILL | CLI_OPT_QUIET | CLI_OPT_JSON | CLI_OPT_SYSTEM |
                  CLI_OPT_DEBUG_FILES,
    .operands_min = 1,
    .operands_max = -1,
    .help = "Usage: qutc stat [--json] TABLE|ELF...\n\n"
            "Prints rows, distinct rules, bytes, their share of the tables they replace, coverage of the text, and "
            "refusals by\n"
            "reason.\n\n"
            "Example: qutc stat --json libc.qut\n",
};
const struct cli_command command_stat = {"stat", "print sizes, coverage, refusals", cli_run, &usage};
