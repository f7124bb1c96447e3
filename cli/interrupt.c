// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came; // the signal
static const int signals[] = {SIGINT, SIGTERM};

static void note(int signal_number)
{
    came = signal_number;
}

void cli_interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old;
        // Ignored by the parent (nohup, a background job): stays so.
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool cli_interrupt_unwatch(void)
{
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == note)
            signal(signals[i], SIG_DFL);
    }
    return cli_interrupt_came();
}

bool cli_interrupt_came(void)
{
    return came != 0;
}

int cli_interrupt_status(void)
{
    return 128 + came;
}
