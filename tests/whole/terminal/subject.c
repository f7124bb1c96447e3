// SPDX-License-Identifier: Apache-2.0
// Its function and its thread have names that a terminal would obey: C1 controls, what turns text around, no UTF-8.
// subject [wait]: works for a moment, or says "ready" and waits for the end of its input.
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile unsigned sum;
static int waits;

__attribute__((noinline)) void evil(void) __asm__("evil\xc2\x9b"
                                                  "31m\xe2\x80\xae\x9b\xff");

void evil(void)
{
    char byte;
    for (unsigned i = 0; !waits && i < 50000000; i++)
        sum += i;
    while (waits && read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    sum++;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_NAME, "t\x1b[1m\xc2\x85\x9b\xe2\x80\xae\n");
    waits = argc > 1 && strcmp(argv[1], "wait") == 0;
    puts("ready");
    fflush(stdout);
    evil();
    return sum == 0;
}
