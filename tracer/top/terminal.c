// SPDX-License-Identifier: Apache-2.0
#include "tracer/top/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/style.h"

static const char take[] = "\033[?1049h\033[?25l\033[2J", give_back[] = "\033[?25h\033[?1049l";

static void put(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}

void top_terminal_measure(struct top_terminal *terminal)
{
    enum { COLUMNS = 80, ROWS = 24 };
    struct winsize size = {.ws_col = 0};
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    terminal->columns = is_known ? size.ws_col : COLUMNS;
    terminal->rows = is_known ? size.ws_row : ROWS;
}

int top_terminal_take(struct top_terminal *terminal)
{
    if (tcgetattr(STDIN_FILENO, &terminal->before) != 0)
        return -1;
    struct termios raw = terminal->before;
    raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO); // signals stay: Ctrl-C reaches the command too
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0)
        return -1;
    terminal->is_taken = true;
    top_terminal_measure(terminal);
    put(take);
    return 0;
}

void top_terminal_give_back(struct top_terminal *terminal)
{
    if (!terminal->is_taken)
        return;
    terminal->is_taken = false;
    put(give_back);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &terminal->before);
}

// ---- keys

static int next_byte(bool *is_open)
{
    unsigned char byte;
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&ready, 1, 0) <= 0)
        return -1;
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got == 1)
        return byte;
    if (got == 0 || errno != EINTR) // it hung up: as a terminal it would have waited
        *is_open = false;
    return -1;
}

// ESC [ A, ESC [ 5 ~, ...
static int escaped(bool *is_open)
{
    static const struct {
        const char *text;
        int key;
    } known[] = {{"[A", TOP_KEY_UP},       {"OA", TOP_KEY_UP},         {"[B", TOP_KEY_DOWN}, {"OB", TOP_KEY_DOWN},
                 {"[5~", TOP_KEY_PAGE_UP}, {"[6~", TOP_KEY_PAGE_DOWN}, {"[H", TOP_KEY_HOME}, {"[1~", TOP_KEY_HOME},
                 {"OH", TOP_KEY_HOME},     {"[F", TOP_KEY_END},        {"[4~", TOP_KEY_END}, {"OF", TOP_KEY_END}};
    char text[16] = "";
    for (size_t length = 0; length + 1 < sizeof text; length++) {
        int byte = next_byte(is_open);
        if (byte < 0)
            break;
        text[length] = (char)byte;
        if (length && byte >= '@' && byte <= '~')
            break;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].text, text) == 0)
            return known[i].key;
    return TOP_KEY_NONE;
}

int top_terminal_key(bool *is_open)
{
    for (;;) {
        int byte = next_byte(is_open);
        int key = byte == '\033' ? escaped(is_open) : byte;
        if (byte < 0)
            return TOP_KEY_NONE;
        if (key != TOP_KEY_NONE)
            return key;
    }
}

// ---- drawing

// Characters of UTF-8 stay whole; each is taken to be one column wide.
static size_t bytes_of_columns(const char *line, size_t bytes, unsigned columns)
{
    size_t at = 0;
    for (unsigned column = 0; at < bytes; at++)
        if (((unsigned char)line[at] & 0xc0) != 0x80 && column++ == columns)
            break;
    return at;
}

size_t top_terminal_draw(const struct top_terminal *terminal, const char *lines, size_t head_count, size_t first)
{
    size_t number = 0, row = 0;
    fputs("\033[H", stdout);
    for (const char *line = lines; *line; number++) {
        size_t bytes = strcspn(line, "\n");
        if ((number < head_count || number >= head_count + first) && row < terminal->rows) {
            // The newline comes before a row, not behind it: the last one would scroll.
            printf("%s%s%.*s%s\033[K", row ? "\n" : "", number == 0 ? cli_style_head(stdout) : "",
                   (int)bytes_of_columns(line, bytes, terminal->columns), line,
                   number == 0 ? cli_style_end(stdout) : "");
            row++;
        }
        line += bytes + (line[bytes] == '\n');
    }
    fputs(row < terminal->rows ? "\033[J" : "", stdout);
    fflush(stdout);
    return number > head_count ? number - head_count : 0;
}
