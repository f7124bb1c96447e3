// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM, as a question that is asked between two steps: a process that we stopped must go on.
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

enum { INTERRUPT_STATUS = 130 }; // what a shell says of a program that was interrupted

// From now on the first of these signals only makes cli_interrupt_came true. The second ends this process: the kernel
// lets go of what it traces then.
void cli_interrupt_watch(void);
bool cli_interrupt_came(void);

#endif
