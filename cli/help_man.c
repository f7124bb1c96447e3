// SPDX-License-Identifier: Apache-2.0
// Manual pages: what --help says, with roff's words between.
#include <stdio.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "cli/help.h"

// Text of roff: a backslash is its escape, a hyphen would become a dash, a point or quote at the start a request.
static void print_escaped(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        bool begins = i == 0 || text[i - 1] == '\n';
        if (begins && (text[i] == '.' || text[i] == '\''))
            fputs("\\&", stdout);
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else if (text[i] == '~')
            fputs("\\(ti", stdout);
        else if (text[i] == '^')
            fputs("\\(ha", stdout);
        else
            putchar(text[i]);
    }
}

static void print_text(const char *text)
{
    print_escaped(text, strlen(text));
}

static void print_head(const char *name, const char *command, const char *summary)
{
    printf(".TH \"");
    for (const char *at = name; *at; at++)
        putchar(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    for (const char *at = command ? command : ""; *at || (command && at == command); at++) {
        if (at == command)
            putchar('-');
        putchar(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    }
    printf("\" 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n", name, QUT_VERSION);
    printf("%s%s%s \\- ", name, command ? "\\-" : "", command ? command : "");
    print_text(summary);
    fputs("\n", stdout);
}

// What is set in columns stays so.
static void print_verbatim(const char *text, size_t length)
{
    puts(".nf");
    print_escaped(text, length);
    puts("\n.fi");
}

// Lines of one column, which in --help stand below each other behind "Usage: ".
static void print_usage(const char *text, size_t length)
{
    const char *end = text + length;
    puts(".nf");
    for (const char *line = text; line < end; line += strcspn(line, "\n") + 1) {
        line += strspn(line, " ");
        print_escaped(line, strcspn(line, "\n"));
        putchar('\n');
    }
    puts(".fi");
}

static void print_paragraph(const char *text, size_t length)
{
    static const char usage[] = "Usage: ", example[] = "Example: ";
    if (strncmp(text, usage, sizeof usage - 1) == 0) {
        puts(".SH SYNOPSIS");
        print_usage(text + sizeof usage - 1, length - (sizeof usage - 1));
    } else if (strncmp(text, example, sizeof example - 1) == 0) {
        puts(".SH EXAMPLE");
        print_verbatim(text + sizeof example - 1, length - (sizeof example - 1));
    } else if (*text == ' ') {
        puts(".PP");
        print_verbatim(text, length);
    } else {
        puts(".PP");
        print_escaped(text, length);
        putchar('\n');
    }
}

// Paragraphs are apart by an empty line; the first is the usage, and one begins "Example: ".
static void print_help(const char *help, bool examples)
{
    bool has_begun = false;
    for (const char *from = help; *from;) {
        from += strspn(from, "\n");
        const char *end = strstr(from, "\n\n");
        size_t length = end ? (size_t)(end - from) : strlen(from);
        length -= length && from[length - 1] == '\n';
        bool is_example = strncmp(from, "Example: ", 9) == 0, is_usage = strncmp(from, "Usage: ", 7) == 0;
        if (length && is_example == examples) {
            if (!is_example && !is_usage && !has_begun)
                puts(".SH DESCRIPTION");
            has_begun |= !is_example && !is_usage;
            print_paragraph(from, length);
        }
        if (!end)
            return;
        from = end;
    }
}

static void print_options(const struct cli_parser *parser)
{
    puts(".SH OPTIONS");
    for (size_t i = 0; i < parser->argument_count; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!cli_help_takes(parser, argument))
            continue;
        puts(".TP");
        if (cli_help_has_letter(argument))
            printf("\\fB\\-%c\\fR, ", argument->id);
        fputs("\\fB\\-\\-", stdout);
        print_text(argument->name);
        fputs("\\fR", stdout);
        if (argument->value)
            printf(" \\fI%s\\fR", argument->value);
        putchar('\n');
        print_text(argument->text);
        putchar('\n');
    }
}

static void print_statuses(const struct cli_parser *parser)
{
    const char *text = parser->statuses ? parser->statuses : cli_help_statuses;
    text += strspn(text, "\n");
    const char *colon = strchr(text, ':');
    puts(".SH EXIT STATUS");
    text = colon ? colon + 1 + strspn(colon + 1, " ") : text;
    print_text(text);
}

void cli_help_man_command(const struct cli_parser *parser, const char *summary)
{
    print_head(cli_program, parser->command, summary);
    print_help(parser->help, false);
    print_options(parser);
    print_statuses(parser);
    print_help(parser->help, true);
    printf(".SH SEE ALSO\n.BR %s (1)\n", cli_program);
}

void cli_help_man_program(const struct cli_program *program)
{
    print_head(cli_program, NULL, program->about);
    printf(".SH SYNOPSIS\n\\fB%s\\fR \\fICOMMAND\\fR ...\n.SH COMMANDS\n", cli_program);
    for (const struct cli_command *const *command = program->commands; *command; command++) {
        puts(".TP");
        printf(".BR %s\\-", cli_program);
        print_text((*command)->name);
        puts(" (1)");
        print_text((*command)->summary);
        putchar('\n');
    }
    printf(".PP\n\\fB%s \\-\\-version\\fR says which this is.\n.SH EXAMPLE\n", cli_program);
    print_verbatim(program->example, strlen(program->example));
}
