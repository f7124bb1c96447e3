// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/diagnostics.h"
#include "tracer/stack/print.h"

enum { NAME_TEXT_BYTES = 8192 };

static bool use_color(void)
{
    const char *terminal = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
}

static void print_name(const struct stack_thread *thread)
{
    fputs(" \"", stdout);
    cli_print_name(stdout, thread->info.name);
    fputc('"', stdout);
}

static void print_signal(const struct stack_thread *thread)
{
    int number = thread->info.signal_number;
    if (!number || !thread->info.crashed)
        return;
    const char *abbreviation = sigabbrev_np(number);
    if (abbreviation)
        printf(" (killed by SIG%s)", abbreviation);
    else
        printf(" (killed by signal %d)", number);
}

static bool has_one_name(const struct stack_report *report, size_t group)
{
    const struct stack_groups *groups = report->groups;
    const struct stack_thread *threads = report->take->threads;
    size_t first = groups->first[group];
    for (size_t i = groups->next[first]; i != SIZE_MAX; i = groups->next[i])
        if (strcmp(threads[i].info.name, threads[first].info.name) != 0)
            return false;
    return true;
}

static void print_header(const struct stack_report *report, size_t group, bool color)
{
    const struct stack_groups *groups = report->groups;
    const struct stack_take *take = report->take;
    const struct stack_thread *first = &take->threads[groups->first[group]];
    // A snapshot is of one thread, and does not know which.
    if (report->options->snapshot)
        return;
    fputs(color ? "\033[1m" : "", stdout);
    bool is_shared = groups->size[group] > 1 && has_one_name(report, group);
    if (groups->size[group] > 1)
        printf("%zu threads", groups->size[group]);
    if (is_shared)
        print_name(first);
    const char *separator = groups->size[group] > 1 ? ": " : "";
    for (size_t i = groups->first[group]; i != SIZE_MAX; i = groups->next[i], separator = ", ") {
        printf("%s%d", separator, (int)take->threads[i].info.tid);
        if (!is_shared)
            print_name(&take->threads[i]);
    }
    print_signal(first);
    fputs(color ? "\033[0m\n" : "\n", stdout);
}

// What follows "  #NN ", for one pc of a caller: threads share most of their frames.
struct line {
    uint64_t pc, lookup_pc;
    uint32_t flags, code_id;
    size_t level;
    char *text; // NULL: empty
    size_t size;
};
enum { LINES = 1 << 12 };

static void print_source(FILE *out, const struct stack_place *place)
{
    if (!place->file || !place->module) // without one, the file stands in its place
        return;
    fputc(' ', out);
    cli_print_name(out, place->file);
    if (place->line)
        fprintf(out, ":%" PRIu32, place->line);
}

static void print_place(FILE *out, const struct stack_report *report, const struct qut_frame *frame, size_t index,
                        size_t level)
{
    struct stack_place place;
    char name[NAME_TEXT_BYTES];
    stack_describe(report->modules, report->options, frame, index, level, &place);
    int digits = 2 * (int)qut_target_word_bytes(report->modules->target);
    fprintf(out, "pc %0*" PRIx64 "  ", digits, place.pc);
    // A snapshot has its files by their last names.
    cli_print_name(out, stack_place_module(&place, report->options->snapshot, name, sizeof name));
    if (place.function) {
        fputs(" (", out);
        cli_print_name(out, place.function);
        // Of bytecode AOSP prints none.
        if (place.function_offset && !(frame->flags & QUT_FRAME_DEX))
            fprintf(out, "+%" PRIu64, place.function_offset);
        fputc(')', out);
    }
    print_source(out, &place);
    // The lines of a snapshot are compared with AOSP's to the last byte.
    const char *before_mark = report->options->snapshot ? "\n     " : "";
    if (frame->flags & QUT_FRAME_SIGNAL)
        fprintf(out, "%s [signal frame]", before_mark);
    if (frame->flags & QUT_FRAME_GUESSED)
        fprintf(out, "%s [guessed]", before_mark);
    if (report->options->verbose && frame->flags & QUT_FRAME_FROM_CODE)
        fputs(" [from code]", out);
    if (report->options->verbose && frame->flags & QUT_FRAME_DOUBTFUL)
        fputs(" [doubtful]", out);
    if (place.is_inlined)
        fputs(" [inlined]", out);
    if (place.is_near)
        fputs(" [near]", out);
    fputc('\n', out);
    stack_place_free(&place);
}

static bool make_line(const struct stack_report *report, const struct qut_frame *frame, size_t index, size_t level,
                      struct line *line)
{
    free(line->text);
    *line = (struct line){.pc = frame->pc,
                          .lookup_pc = frame->lookup_pc,
                          .flags = frame->flags,
                          .code_id = frame->code_id,
                          .level = level};
    FILE *out = open_memstream(&line->text, &line->size);
    if (!out)
        return false;
    print_place(out, report, frame, index, level);
    bool has_failed = ferror(out);
    if (fclose(out) == 0 && !has_failed && line->text) // glibc's streams may fail to hand over what they hold
        return true;
    free(line->text);
    line->text = NULL;
    return false;
}

static void print_frame(const struct stack_report *report, const struct qut_frame *frame, size_t index, size_t level,
                        size_t shown, struct line *lines)
{
    fputs(shown < 10 ? "  #0" : "  #", stdout);
    char number[24];
    size_t at = sizeof number;
    number[--at] = ' ';
    for (size_t rest = shown; at == sizeof number - 1 || rest; rest /= 10)
        number[--at] = (char)('0' + rest % 10);
    fwrite(number + at, 1, sizeof number - at, stdout);

    // Frame 0 is counted in its own way; 2^32 divided by the golden ratio spreads the rest.
    struct line *line = &lines[((uint32_t)frame->pc + (uint32_t)level) * 0x9e3779b1u >> 20];
    bool fits = line->text && line->pc == frame->pc && line->lookup_pc == frame->lookup_pc &&
                line->flags == frame->flags && line->code_id == frame->code_id && line->level == level;
    if (index == 0 || (!fits && !make_line(report, frame, index, level, line)))
        print_place(stdout, report, frame, index, level);
    else
        fwrite(line->text, 1, line->size, stdout);
}

void stack_print_text(const struct stack_report *report)
{
    static struct line lines[LINES];
    bool color = use_color();
    for (size_t group = 0; group < report->groups->count; group++) {
        const struct stack_thread *thread = &report->take->threads[report->groups->first[group]];
        if (group > 0)
            fputc('\n', stdout);
        print_header(report, group, color);
        size_t shown = 0; // inlined ones count
        for (size_t i = 0; i < thread->count; i++) {
            size_t count = stack_level_count(report->modules, report->options, &thread->frames[i]);
            for (size_t level = 0; level < count; level++)
                print_frame(report, &thread->frames[i], i, level, shown++, lines);
        }
        char text[NAME_TEXT_BYTES];
        if (thread->python_reason)
            printf("      python: %s\n", thread->python_reason);
        if (thread->end.reason != QUT_END_OUTERMOST) {
            fputs("      end: ", stdout);
            cli_print_name(stdout, stack_end_text(report->modules, thread, text, sizeof text));
            fputc('\n', stdout);
        }
    }
    for (size_t i = 0; i < LINES; i++) {
        free(lines[i].text);
        lines[i].text = NULL;
    }
}
