// SPDX-License-Identifier: Apache-2.0
#include "tracer/cli/top_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/record_options.h"
#include "tracer/top/growing.h"

extern const struct cli_command command_record;

struct command_line {
    char **words;
    int count;
};

// As one would type it, with what top alone decides.
static bool make_command_line(struct command_line *line, const struct top_recorder *recorder)
{
    const struct top_options *options = recorder->options;
    int count = 0, operands = 0;
    while (options->command && options->command[operands])
        operands++;
    line->words = calloc((size_t)(options->record_count + operands) + 8, sizeof *line->words);
    if (!line->words)
        return false;
    const char *const before[] = {"record", "--quiet", "--live", "--output", recorder->path};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        line->words[count++] = (char *)(uintptr_t)before[i];
    for (int i = 0; i < options->record_count; i++)
        line->words[count++] = (char *)(uintptr_t)options->record[i];
    if (operands)
        line->words[count++] = (char *)(uintptr_t) "--";
    for (int i = 0; i < operands; i++)
        line->words[count++] = options->command[i];
    line->count = count;
    return true;
}

static int refuse(const char *name, const char *what)
{
    cli_report(stderr, name, "%s: %s", what, strerror(errno));
    return CLI_BAD;
}

static int choose_place(struct top_recorder *recorder)
{
    const struct top_options *options = recorder->options;
    const char *temporary = getenv("TMPDIR");
    if (options->path) {
        if (strlen(options->path) >= sizeof recorder->path) {
            errno = ENAMETOOLONG;
            return refuse(options->path, "cannot be the file");
        }
        memcpy(recorder->path, options->path, strlen(options->path) + 1);
        return CLI_GO_ON;
    }
    if (!temporary || !*temporary || strlen(temporary) > PATH_MAX / 2)
        temporary = "/tmp";
    snprintf(recorder->directory, sizeof recorder->directory, "%s/qut-top-XXXXXX", temporary);
    if (!mkdtemp(recorder->directory)) {
        recorder->directory[0] = 0;
        return refuse(temporary, "no folder can be made there for the recording; $TMPDIR or -o says another place");
    }
    snprintf(recorder->path, sizeof recorder->path, "%s/top.qtrace", recorder->directory);
    return CLI_GO_ON;
}

static int open_output(struct top_recorder *recorder)
{
    const char *wanted = recorder->options->command_output;
    if (wanted) {
        recorder->output_fd = open(wanted, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
        return recorder->output_fd >= 0 ? CLI_GO_ON : refuse(wanted, "cannot be written");
    }
    const char *temporary = recorder->directory[0] ? recorder->directory : "/tmp";
    recorder->output_fd = open(temporary, O_RDWR | O_TMPFILE | O_APPEND | O_CLOEXEC, 0600);
    if (recorder->output_fd < 0) // a file system that has no such files
        recorder->output_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return recorder->output_fd >= 0 ? CLI_GO_ON : refuse(temporary, "no file for the command's output");
}

__attribute__((noreturn)) static void become_recorder(const struct top_recorder *recorder,
                                                      const struct command_line *line, const sigset_t *mask,
                                                      pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(CLI_BAD);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(recorder->output_fd, STDOUT_FILENO) < 0 ||
        dup2(recorder->output_fd, STDERR_FILENO) < 0)
        _exit(CLI_BAD);
    close(nothing);
    sigprocmask(SIG_SETMASK, mask, NULL);
    int status = command_record.run(&command_record, line->count, line->words);
    fflush(NULL);
    _exit(status);
}

static int start(struct top_recorder *recorder, const struct command_line *line, const sigset_t *mask)
{
    // Parsing moves words of the line: of a copy.
    struct record_command_options checked;
    struct command_line copy;
    if (!make_command_line(&copy, recorder))
        return refuse("top", "no memory");
    int status = cli_record_options_parse(&checked, copy.count, copy.words);
    free(copy.words);
    if (status != CLI_GO_ON)
        return status;
    fflush(NULL);
    pid_t parent = getpid();
    recorder->pid = fork();
    if (recorder->pid == 0)
        become_recorder(recorder, line, mask, parent);
    if (recorder->pid > 0)
        return CLI_GO_ON;
    recorder->pid = 0;
    return refuse("top", "no process can be started");
}

int cli_top_recorder_begin(struct top_recorder *recorder, const struct top_options *options, const sigset_t *mask)
{
    struct command_line line = {.words = NULL};
    *recorder = (struct top_recorder){.options = options, .output_fd = -1};
    int status = choose_place(recorder);
    if (status == CLI_GO_ON)
        status = open_output(recorder);
    if (status == CLI_GO_ON)
        status = make_command_line(&line, recorder) ? start(recorder, &line, mask) : refuse("top", "no memory");
    free(line.words);
    if (status != CLI_GO_ON)
        cli_top_recorder_end(recorder);
    return status;
}

bool cli_top_recorder_has_ended(struct top_recorder *recorder, bool waits)
{
    int status;
    pid_t got = 0;
    if (!recorder->pid)
        return true;
    do
        got = waitpid(recorder->pid, &status, waits ? 0 : WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == 0)
        return false;
    recorder->pid = 0;
    recorder->status = got < 0 ? CLI_BAD : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

void cli_top_recorder_trim(struct top_recorder *recorder)
{
    const off_t most_bytes = 4 << 20;
    struct stat status;
    bool is_ours = !recorder->options->command_output;
    if (is_ours && fstat(recorder->output_fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > most_bytes &&
        ftruncate(recorder->output_fd, 0) != 0)
        return; // then it grows: the disk has room, or the command is told
}

void cli_top_recorder_say_output(const struct top_recorder *recorder)
{
    enum { LINES = 10, BYTES = 4096 };
    char text[BYTES + 1];
    struct stat status;
    if (recorder->options->command_output || fstat(recorder->output_fd, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    off_t from = status.st_size > BYTES ? status.st_size - BYTES : 0;
    ssize_t got = pread(recorder->output_fd, text, BYTES, from);
    size_t length = got > 0 ? (size_t)got : 0, begin = length;
    text[length] = 0;
    for (unsigned lines = 0; begin > 0; begin--)
        if (text[begin - 1] == '\n' && begin < length && ++lines == LINES)
            break;
    for (char *line = text + begin; *line;) {
        size_t bytes = strcspn(line, "\n");
        bool has_more = line[bytes] != 0;
        line[bytes] = 0;
        cli_print_name(stderr, line);
        fputc('\n', stderr);
        line += bytes + has_more;
    }
}

void cli_top_recorder_end(struct top_recorder *recorder)
{
    if (recorder->output_fd >= 0)
        close(recorder->output_fd);
    recorder->output_fd = -1;
    if (recorder->directory[0])
        top_growing_remove(recorder->directory, recorder->path);
    recorder->directory[0] = 0;
}
