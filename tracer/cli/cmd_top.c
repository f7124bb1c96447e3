// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock_inline.h"
#include "base/quantity.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/diagnostics.h"
#include "tracer/cli/top_recorder.h"
#include "tracer/top/terminal.h"

enum { SUBJECT_BYTES = 256, LOOK_PARTS = 10, NS_PER_MS = 1000000 };

struct top {
    struct top_options options;
    struct top_recorder recorder;
    struct top_terminal terminal;
    int signal_fd;
    sigset_t mask_before;
    char subject[SUBJECT_BYTES];
    char remark[64];
    char *lines;          // of the last look; NULL: none was there yet
    size_t first, behind; // of the table: the first line that is seen, how many there are
    uint64_t next_ns;     // when the next look is due
    int printed;          // screens
    bool is_paused, shows_help;
    bool is_asked_to_end; // by the user: what becomes of the command is no failure
    int left_by;          // a signal; 0: none
    int status;           // of looking; CLI_OK as long as all is well
};

static const char help[] = "\n"
                           "  f t w l    functions, threads, waits (with --wall or --sync), locks (with --sync)\n"
                           "  a          of all the time since the start, or of the last interval\n"
                           "  p          pause: the screen stays, the recording goes on\n"
                           "  + -        a longer, a shorter interval\n"
                           "  arrows, Page Up, Page Down, Home, End: the lines of the table\n"
                           "  q          the end: of the command as well; a process (-p) goes on\n\n"
                           "  +- beside a share: with a chance of 95 % it is no farther off.\n"
                           "  h, or any other key: back\n";

// ---- what is seen

static struct top_wanted wanted_now(struct top *top, bool is_last)
{
    struct top_wanted wanted = top->options.shown;
    wanted.subject = top->subject;
    wanted.window_ns = top->options.interval_ns;
    wanted.now_ns = base_clock_now_ns();
    wanted.has_keys = top->terminal.is_taken;
    wanted.columns = top->terminal.is_taken ? top->terminal.columns : 0;
    wanted.remark = is_last ? "it has ended" : top->remark;
    wanted.of_all = wanted.of_all || is_last;
    wanted.is_over = is_last;
    return wanted;
}

static int print_screen(struct top *top, const struct top_wanted *wanted, FILE *output, struct base_error *error)
{
    struct base_json json = {.stream = output};
    if (!top->options.json)
        return top_screen_text(top->recorder.path, wanted, output, error);
    int result = top_screen_json(top->recorder.path, wanted, &json, error);
    fputs(result == 0 ? "\n" : "", output);
    return result;
}

// A look at the recording. False: there is nothing to see yet.
static bool look(struct top *top, bool is_last)
{
    char *text = NULL, words[256];
    size_t size = 0;
    struct base_error error = {0};
    const struct top_wanted wanted = wanted_now(top, is_last);
    FILE *output = open_memstream(&text, &size);
    int result =
        output ? print_screen(top, &wanted, output, &error) : base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "a screen");
    if (output && fclose(output) != 0 && result == 0)
        result = base_fail(&error, BASE_ERR_NO_MEMORY, "", 0, "a screen");
    if (result != 0) {
        free(text);
        if (error.reason == BASE_ERR_TRUNCATED)
            return false;
        snprintf(top->remark, sizeof top->remark, "not read: %s", base_error_text(&error, words, sizeof words));
        if (is_last) {
            cli_report(stderr, top->recorder.path, "%s", words);
            top->status = CLI_BAD;
        }
        return false;
    }
    free(top->lines);
    top->lines = text;
    return true;
}

static void draw(struct top *top)
{
    char waiting[4 * SUBJECT_BYTES];
    const char *lines = top->lines;
    if (!lines) {
        snprintf(waiting, sizeof waiting, "%s\nnothing is recorded yet\n%s\nq quit\n", top->subject, top->remark);
        lines = waiting;
    }
    if (top->shows_help) {
        top_terminal_draw(&top->terminal, help, 0, 0);
        return;
    }
    top->behind = top_terminal_draw(&top->terminal, lines, TOP_HEAD_LINES, top->first);
}

// A look costs a tenth of a processor at most: the larger the recording, the rarer they are.
static void look_again(struct top *top)
{
    uint64_t begin_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    bool is_there = look(top, false);
    uint64_t cost_ns = base_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns, rest_ns = LOOK_PARTS * cost_ns;
    bool is_slow = rest_ns > top->options.interval_ns;
    top->next_ns = base_clock_now_ns() + (is_slow ? rest_ns : top->options.interval_ns);
    if (is_there)
        snprintf(top->remark, sizeof top->remark, "%s%s", is_slow ? "large: a look every " : "",
                 is_slow ? base_quantity_time(rest_ns).text : "");
    cli_top_recorder_trim(&top->recorder);
    if (top->terminal.is_taken)
        draw(top);
    else if (is_there) {
        printf("%s%s", top->lines, top->options.json ? "" : "\n");
        if (fflush(stdout) != 0) {
            cli_report(stderr, "standard output", "%s", strerror(errno));
            top->status = CLI_BAD;
        }
        top->printed++;
    }
}

// ---- what is asked for

// The recording, and the command with it; once more: at once.
static void ask_to_end(struct top *top)
{
    if (top->recorder.pid)
        kill(top->recorder.pid, top->is_asked_to_end ? SIGKILL : SIGTERM);
    top->is_asked_to_end = true;
    snprintf(top->remark, sizeof top->remark, "%s", "ends; q again: at once");
}

static void scroll(struct top *top, long by)
{
    size_t room = top->terminal.rows > TOP_HEAD_LINES ? top->terminal.rows - TOP_HEAD_LINES : 1;
    size_t last = top->behind > room ? top->behind - room : 0;
    if (by < 0)
        top->first = (size_t)-by < top->first ? top->first - (size_t)-by : 0;
    else
        top->first = (size_t)by < last - (top->first < last ? top->first : last) ? top->first + (size_t)by : last;
}

static void change_interval(struct top *top, bool is_longer)
{
    const uint64_t least_ns = 100 * NS_PER_MS, most_ns = (uint64_t)3600 * 1000 * NS_PER_MS;
    uint64_t changed_ns = is_longer ? 2 * top->options.interval_ns : top->options.interval_ns / 2;
    if (changed_ns >= least_ns && changed_ns <= most_ns)
        top->options.interval_ns = changed_ns;
}

static void take_key(struct top *top, int key)
{
    static const char views[] = "ftwl"; // in the order of enum top_view
    const long page = top->terminal.rows > TOP_HEAD_LINES + 1 ? (long)top->terminal.rows - TOP_HEAD_LINES - 1 : 1;
    const char *view = key > 0 && key < 128 ? strchr(views, key) : NULL;
    bool looks = true;
    if (top->shows_help && key != 'q') {
        top->shows_help = false;
        draw(top);
        return;
    }
    if (view) {
        top->options.shown.view = (enum top_view)(view - views);
        top->first = 0;
    } else if (key == 'a') {
        top->options.shown.of_all = !top->options.shown.of_all;
    } else if (key == 'p') {
        top->is_paused = !top->is_paused;
        snprintf(top->remark, sizeof top->remark, "%s", top->is_paused ? "paused" : "");
    } else if (key == '+' || key == '-') {
        change_interval(top, key == '+');
    } else if (key == 'q') {
        ask_to_end(top);
    } else {
        looks = false;
    }
    switch (key) {
    case TOP_KEY_UP: scroll(top, -1); break;
    case TOP_KEY_DOWN: scroll(top, 1); break;
    case TOP_KEY_PAGE_UP: scroll(top, -page); break;
    case TOP_KEY_PAGE_DOWN: scroll(top, page); break;
    case TOP_KEY_HOME: top->first = 0; break;
    case TOP_KEY_END: scroll(top, (long)top->behind); break;
    case 'h':
    case '?': top->shows_help = true; break;
    default: break;
    }
    if (looks)
        look(top, false);
    draw(top);
}

static void take_keys(struct top *top)
{
    bool is_open = true;
    for (int key; (key = top_terminal_key(&is_open)) != TOP_KEY_NONE;)
        take_key(top, key);
    if (!is_open) { // the terminal is gone
        top->left_by = SIGHUP;
        ask_to_end(top);
    }
}

// ---- signals

static void be_stopped(struct top *top)
{
    bool was_taken = top->terminal.is_taken;
    top_terminal_give_back(&top->terminal);
    kill(getpid(), SIGSTOP);
    if (was_taken && top_terminal_take(&top->terminal) == 0)
        draw(top);
}

static void take_signals(struct top *top)
{
    struct signalfd_siginfo came;
    while (read(top->signal_fd, &came, sizeof came) == (ssize_t)sizeof came)
        switch ((int)came.ssi_signo) {
        case SIGCHLD: break;
        case SIGWINCH:
            top_terminal_measure(&top->terminal);
            if (top->terminal.is_taken) {
                look(top, false);
                draw(top);
            }
            break;
        case SIGTSTP: be_stopped(top); break;
        default:
            top->left_by = (int)came.ssi_signo;
            // A key of the terminal has reached the recorder already.
            if (came.ssi_code != SI_KERNEL)
                ask_to_end(top);
        }
}

static int open_signals(struct top *top)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGWINCH, SIGTSTP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, &top->mask_before);
    top->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return top->signal_fd;
}

// ---- from the beginning to the end

static void wait_for_something(struct top *top)
{
    uint64_t now_ns = base_clock_now_ns();
    uint64_t rest_ms = top->next_ns > now_ns ? (top->next_ns - now_ns) / NS_PER_MS + 1 : 0;
    struct pollfd ready[2] = {{.fd = top->signal_fd, .events = POLLIN},
                              {.fd = top->terminal.is_taken ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(ready, 2, (int)(rest_ms < 3600000 ? rest_ms : 3600000)) <= 0)
        return;
    if (ready[0].revents)
        take_signals(top);
    if (ready[1].revents)
        take_keys(top);
}

static void watch(struct top *top)
{
    bool is_done = false;
    while (!cli_top_recorder_has_ended(&top->recorder, false)) {
        wait_for_something(top);
        if (base_clock_now_ns() < top->next_ns || top->is_asked_to_end)
            continue;
        if (top->is_paused)
            top->next_ns += top->options.interval_ns;
        else
            look_again(top);
        is_done = top->options.is_batch && top->options.batch && top->printed >= top->options.batch;
        if ((is_done || top->status != CLI_OK) && !top->is_asked_to_end)
            ask_to_end(top);
    }
}

// What stays on the terminal, or is the last screen.
static void say_end(struct top *top)
{
    enum { ROWS = 10 };
    bool is_enough = top->options.is_batch && top->options.batch && top->printed >= top->options.batch;
    if (!top->options.is_batch) {
        top->options.shown.rows = ROWS;
        top->options.shown.view = TOP_FUNCTIONS;
    }
    if (!is_enough && top->status == CLI_OK && look(top, true))
        fputs(top->lines, stdout);
    else if (!is_enough && !top->lines && top->status == CLI_OK)
        cli_report(stderr, top->subject, "nothing was recorded");
    if (top->recorder.status && !top->is_asked_to_end)
        cli_top_recorder_say_output(&top->recorder);
    if (top->options.path && top->lines)
        cli_report(stderr, top->options.path, "kept; next: %s report", cli_program);
}

static int status_of(const struct top *top)
{
    if (top->status != CLI_OK)
        return top->status;
    if (top->left_by)
        return 128 + top->left_by;
    return top->is_asked_to_end ? CLI_OK : top->recorder.status;
}

static void name_subject(struct top *top)
{
    const struct top_options *options = &top->options;
    size_t used = 0;
    if (options->pid)
        snprintf(top->subject, sizeof top->subject, "process %d", options->pid);
    for (int i = 0; options->command && options->command[i] && used < sizeof top->subject; i++)
        used += (size_t)snprintf(top->subject + used, sizeof top->subject - used, "%s%s", i ? " " : "",
                                 i ? options->command[i] : cli_basename(options->command[i]));
}

static int run(struct top *top)
{
    if (open_signals(top) < 0) {
        cli_report(stderr, "signalfd", "%s", strerror(errno));
        return CLI_BAD;
    }
    name_subject(top);
    int status = cli_top_recorder_begin(&top->recorder, &top->options, &top->mask_before);
    if (status != CLI_GO_ON)
        return status;
    signal(SIGPIPE, SIG_IGN); // a reader that goes away ends us in an orderly way; the command has it as it was
    bool has_terminal = !top->options.is_batch && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
    top->options.is_batch = !(has_terminal && top_terminal_take(&top->terminal) == 0);
    top->next_ns = base_clock_now_ns() + top->options.interval_ns;
    if (top->terminal.is_taken)
        draw(top);
    watch(top);
    top_terminal_give_back(&top->terminal);
    say_end(top);
    cli_top_recorder_end(&top->recorder);
    return status_of(top);
}

static int top_command(const struct cli_command *command, int argc, char **argv)
{
    (void)command;
    struct top *top = calloc(1, sizeof *top);
    if (!top) {
        cli_report(stderr, "top", "no memory");
        return CLI_BAD;
    }
    top->signal_fd = -1;
    int status = cli_top_options_parse(&top->options, argc, argv);
    if (status == CLI_GO_ON) {
        status = run(top);
        sigprocmask(SIG_SETMASK, &top->mask_before, NULL);
    }
    if (top->signal_fd >= 0)
        close(top->signal_fd);
    free(top->lines);
    free(top);
    return status;
}

const struct cli_command command_top = {"top", "watch a command, or a process that runs, on the terminal", top_command,
                                        NULL};
