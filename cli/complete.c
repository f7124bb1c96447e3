// SPDX-License-Identifier: Apache-2.0
// Scripts by which shells complete our command lines. What an option's argument is follows from the word --help has for
// it (FILE, DIR, PID), or from the list of words that its parser has.
#include <stdio.h>
#include <string.h>

#include "cli/diagnostics.h"
#include "cli/help.h"

enum kind { NOTHING, WORDS, FILES, FOLDERS, PROCESSES };

static enum kind kind_of(const struct cli_parser *parser, const struct cli_argument *argument)
{
    static const struct {
        const char *value;
        enum kind kind;
    } values[] = {{"FILE", FILES}, {"OUT", FILES}, {"PATH", FILES}, {"DIR", FOLDERS}, {"PID", PROCESSES}};
    if (parser->word && parser->word(argument->id, 0))
        return WORDS;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(argument->value, values[i].value) == 0)
            return values[i].kind;
    return NOTHING;
}

static void print_words(const struct cli_parser *parser, int id)
{
    const char *word;
    for (size_t i = 0; (word = parser->word(id, i)); i++)
        printf("%s%s", i ? " " : "", word);
}

// Inside single quotes of a shell; `more` is what the place itself gives a meaning to.
static void print_quoted(const char *text, const char *more)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\", stdout); // ends the quotes, a quote, and below they begin again
        else if (strchr(more, *text))
            putchar('\\');
        putchar(*text);
        if (*text == '\'')
            putchar('\'');
    }
}

static void print_commands(const struct cli_program *program)
{
    for (const struct cli_command *const *command = program->commands; *command; command++)
        printf("%s%s", command == program->commands ? "" : " ", (*command)->name);
}

// ---- bash. It needs nothing of the package bash-completion.

// "PROGRAM" in a script is this program.
static void print_script(const char *script)
{
    static const char name[] = "PROGRAM";
    for (const char *found; (found = strstr(script, name)); script = found + sizeof name - 1)
        printf("%.*s%s", (int)(found - script), script, cli_program);
    fputs(script, stdout);
}

static void bash_begin(const struct cli_program *program)
{
    printf("# bash completion of %s %s; made by %s itself\n", cli_program, QUT_VERSION, cli_program);
    printf("_%s_commands='", cli_program);
    print_commands(program);
    puts("'");
}

// One function for each command: its options, which of them take something, and what.
static void bash_command(const struct cli_parser *parser)
{
    static const char *const kinds[] = {"nothing", "words ", "files", "folders", "processes"};
    printf("_%s_of_%s()\n{\n    starts=%s\n    options='", cli_program, parser->command,
           parser->stop_at_operand ? "1" : "");
    for (size_t i = 0; i < parser->argument_count; i++)
        if (cli_help_takes(parser, &parser->arguments[i]))
            printf("--%s ", parser->arguments[i].name);
    puts("'\n    case $1 in");
    for (size_t i = 0; i < parser->argument_count; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!cli_help_takes(parser, argument) || !argument->value)
            continue;
        enum kind kind = kind_of(parser, argument);
        printf("        --%s", argument->name);
        if (cli_help_has_letter(argument))
            printf("|-%c", argument->id);
        printf(") kind='%s", kinds[kind]);
        if (kind == WORDS)
            print_words(parser, argument->id);
        puts("';;");
    }
    puts("    esac\n}");
}

static const char bash_script[] =
    "_PROGRAM_files()\n"
    "{\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$2\")\n"
    "}\n"
    "_PROGRAM()\n"
    "{\n"
    "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
    "    local starts options kind='' i list\n"
    "    COMPREPLY=()\n"
    "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$_PROGRAM_commands --help --version\" -- \"$current\")\n"
    "        return\n"
    "    fi\n"
    "    case \" $_PROGRAM_commands \" in *\" $command \"*) ;; *) return;; esac\n"
    "    # Behind the first operand of a command that starts another one, all is the other one's.\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        kind=''\n"
    "        \"_PROGRAM_of_$command\" \"${COMP_WORDS[i]}\"\n"
    "        [ -n \"$starts\" ] || break\n"
    "        case ${COMP_WORDS[i]} in\n"
    "            --) [ $((i + 1)) -lt \"$COMP_CWORD\" ] || { mapfile -t COMPREPLY < <(compgen -c -- \"$current\"); "
    "return; }\n"
    "                _PROGRAM_files -f \"$current\"; return;;\n"
    "            -*) [ -z \"$kind\" ] || { i=$((i + 1)); [ \"${COMP_WORDS[i]}\" != = ] || i=$((i + 1)); };;\n"
    "            *) _PROGRAM_files -f \"$current\"; return;;\n"
    "        esac\n"
    "    done\n"
    "    [ \"$current\" != = ] || { before='='; current=''; }\n"
    "    if [ \"$before\" = = ]; then\n"
    "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
    "        [ \"${COMP_WORDS[COMP_CWORD]}\" != = ] || before=${COMP_WORDS[COMP_CWORD-1]}\n"
    "    fi\n"
    "    kind=''\n"
    "    \"_PROGRAM_of_$command\" \"$before\"\n"
    "    case $kind in\n"
    "        words\\ *)\n"
    "            list=${current%\"${current##*,}\"}\n"
    "            mapfile -t COMPREPLY < <(compgen -P \"$list\" -W \"${kind#words }\" -- \"${current##*,}\");;\n"
    "        files) _PROGRAM_files -f \"$current\";;\n"
    "        folders) _PROGRAM_files -d \"$current\";;\n"
    "        processes) mapfile -t COMPREPLY < <(compgen -W \"$(cd /proc && echo [0-9]*)\" -- \"$current\");;\n"
    "        nothing) ;;\n"
    "        *)\n"
    "            if [[ $current == -* ]]; then\n"
    "                mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
    "            elif [ -n \"$starts\" ]; then\n"
    "                mapfile -t COMPREPLY < <(compgen -c -- \"$current\")\n"
    "            else\n"
    "                _PROGRAM_files -f \"$current\"\n"
    "            fi;;\n"
    "    esac\n"
    "}\n"
    "complete -F _PROGRAM PROGRAM\n";

// ---- zsh

static void zsh_begin(const struct cli_program *program)
{
    printf("#compdef %s\n# Made by %s %s itself.\n_%s() {\n  local -a commands\n  commands=(\n", cli_program,
           cli_program, QUT_VERSION, cli_program);
    for (const struct cli_command *const *command = program->commands; *command; command++) {
        printf("    '%s:", (*command)->name);
        print_quoted((*command)->summary, ":");
        puts("'");
    }
    puts("  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in");
}

static void zsh_option(const struct cli_parser *parser, const struct cli_argument *argument)
{
    static const char *const actions[] = {" ", "", "_files", "_files -/", "_pids"};
    if (cli_help_has_letter(argument))
        printf(" \\\n        '(-%c --%s)'{-%c%s,--%s%s}'[", argument->id, argument->name, argument->id,
               argument->value ? "+" : "", argument->name, argument->value ? "=" : "");
    else
        printf(" \\\n        '--%s%s[", argument->name, argument->value ? "=" : "");
    print_quoted(argument->text, "[]:\\");
    putchar(']');
    if (argument->value) {
        enum kind kind = kind_of(parser, argument);
        printf(":%s:", argument->value);
        if (kind == WORDS) {
            putchar('(');
            print_words(parser, argument->id);
            putchar(')');
        } else {
            fputs(actions[kind], stdout);
        }
    }
    putchar('\'');
}

static void zsh_command(const struct cli_parser *parser)
{
    printf("    %s)\n      _arguments -s -S", parser->command);
    for (size_t i = 0; i < parser->argument_count; i++)
        if (cli_help_takes(parser, &parser->arguments[i]))
            zsh_option(parser, &parser->arguments[i]);
    puts(parser->stop_at_operand ? " \\\n        '(-):command: _command_names -e' \\\n        '*::arguments: _normal';;"
                                 : " \\\n        '*:file:_files';;");
}

// ---- fish

static void fish_begin(const struct cli_program *program)
{
    printf("# Made by %s %s itself.\n", cli_program, QUT_VERSION);
    for (const struct cli_command *const *command = program->commands; *command; command++) {
        printf("complete -c %s -n __fish_use_subcommand -f -a %s -d '", cli_program, (*command)->name);
        print_quoted((*command)->summary, "\\");
        puts("'");
    }
}

static void fish_command(const struct cli_parser *parser)
{
    for (size_t i = 0; i < parser->argument_count; i++) {
        const struct cli_argument *argument = &parser->arguments[i];
        if (!cli_help_takes(parser, argument))
            continue;
        printf("complete -c %s -n '__fish_seen_subcommand_from %s' -l %s", cli_program, parser->command,
               argument->name);
        if (cli_help_has_letter(argument))
            printf(" -s %c", argument->id);
        enum kind kind = argument->value ? kind_of(parser, argument) : NOTHING;
        if (argument->value)
            fputs(kind == FILES ? " -r -F" : " -x", stdout);
        if (kind == FOLDERS)
            fputs(" -a '(__fish_complete_directories)'", stdout);
        else if (kind == PROCESSES)
            fputs(" -a '(__fish_complete_pids)'", stdout);
        else if (kind == WORDS) {
            fputs(" -a '", stdout);
            print_words(parser, argument->id);
            putchar('\'');
        }
        fputs(" -d '", stdout);
        print_quoted(argument->text, "\\");
        puts("'");
    }
    if (parser->stop_at_operand)
        printf("complete -c %s -n '__fish_seen_subcommand_from %s' -a '(__fish_complete_subcommand --fcs-skip=2)'\n",
               cli_program, parser->command);
}

// ---- which

void cli_complete_begin(enum cli_help_form shell, const struct cli_program *program)
{
    (shell == CLI_HELP_BASH ? bash_begin : shell == CLI_HELP_ZSH ? zsh_begin : fish_begin)(program);
}

void cli_complete_command(enum cli_help_form shell, const struct cli_parser *parser)
{
    (shell == CLI_HELP_BASH ? bash_command : shell == CLI_HELP_ZSH ? zsh_command : fish_command)(parser);
}

void cli_complete_end(enum cli_help_form shell)
{
    if (shell == CLI_HELP_BASH)
        print_script(bash_script);
    else if (shell == CLI_HELP_ZSH)
        printf("  esac\n}\n_%s \"$@\"\n", cli_program);
}
