// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM, as a question that is asked between two steps: a process that we stopped must go on.
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

// From here on the first of these signals only makes cli_interrupt_came true. The second ends this process: the kernel
// lets go of what it traces then.
void cli_interrupt_watch(void);
bool cli_interrupt_came(void);
// From now on they end this process, as they do any other: nothing is held any more, and who reads our output may be
// gone. True: one had come.
bool cli_interrupt_unwatch(void);
// What a shell says of a program that this signal ended: 130, 143.
int cli_interrupt_status(void);

#endif
