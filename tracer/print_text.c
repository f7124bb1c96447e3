// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"
#include "tracer/interrupt.h"
#include "tracer/print.h"

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

static void print_frame(const struct stack_report *report, const struct qut_frame *frame, size_t index)
{
    struct stack_place place;
    char name[NAME_TEXT_BYTES];
    stack_describe(report->modules, report->options, frame, index, &place);
    int digits = 2 * (int)qut_target_word_bytes(report->modules->target);
    printf("  #%02zu pc %0*" PRIx64 "  ", index, digits, place.pc);
    cli_print_name(stdout, place.module ? stack_module_name(place.module, name, sizeof name) : "<unknown>");
    if (place.function) {
        fputs(" (", stdout);
        cli_print_name(stdout, place.function);
        if (place.function_offset)
            printf("+%" PRIu64, place.function_offset);
        fputc(')', stdout);
    }
    // The lines of a snapshot are compared with AOSP's to the last byte.
    const char *before_mark = report->options->snapshot ? "\n     " : "";
    if (frame->flags & QUT_FRAME_SIGNAL)
        printf("%s [signal frame]", before_mark);
    if (frame->flags & QUT_FRAME_GUESSED)
        printf("%s [guessed]", before_mark);
    fputc('\n', stdout);
    stack_place_free(&place);
}

void stack_print_text(const struct stack_report *report)
{
    bool color = use_color();
    for (size_t group = 0; group < report->groups->count && !interrupt_came(); group++) {
        const struct stack_thread *thread = &report->take->threads[report->groups->first[group]];
        if (group > 0)
            fputc('\n', stdout);
        print_header(report, group, color);
        for (size_t i = 0; i < thread->count; i++)
            print_frame(report, &thread->frames[i], i);
        char text[NAME_TEXT_BYTES];
        if (thread->end.reason != QUT_END_OUTERMOST) {
            fputs("      end: ", stdout);
            cli_print_name(stdout, stack_end_text(report->modules, thread, text, sizeof text));
            fputc('\n', stdout);
        }
    }
}
