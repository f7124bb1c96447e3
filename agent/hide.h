// SPDX-License-Identifier: Apache-2.0
// What the program believes of the signal that our ticks come by: whether a thread blocks it, and what is done when it
// comes. The kernel is told otherwise, and the program never finds out.
#ifndef AGENT_HIDE_H
#define AGENT_HIDE_H

#include <signal.h>
#include <stdint.h>

#include "agent/inside.h"

#pragma GCC visibility push(hidden)

// Of a mask that was found in the calling thread: without our signal, which the thread then believes it blocks. And the
// mask as it would be without us.
uint64_t agent_hide_blocked(uint64_t blocked);
uint64_t agent_show_blocked(uint64_t blocked);

// What was done with the signals before one of them became ours; then that `number` did, and libqut handles it; and the
// end of that, where libqut has stopped or never began (a child that is not followed).
void agent_hide_actions_before(void);
void agent_hide_action(int number);
void agent_hide_ends(void);
void agent_hide_ends_in_child(void); // the same in a child of a process that goes on
// SIGTRAP becomes ours, for functions that are entered by traps; whether it is. From the first trap on it stays so as
// long as there are any, whatever ends.
void agent_hide_begin_traps(void);
bool agent_hide_takes_traps(void);
// Whether what the program does with our signal is remembered for this process: it is recorded, or has traps.
bool agent_hide_is_on(void);
// Around a fork, by the thread that forks.
void agent_hide_before_fork(void);
void agent_hide_after_fork(void);
// Whether what the program does with that signal is kept from the kernel.
bool agent_hides(int number);
// Libqut has set its action again.
void agent_hide_action_again(void);
// A signal of that number that the program sent came while it believed that it blocks it, and does so no more.
void agent_hide_deliver(void);

// Around an exec of the calling thread: the new program inherits what this one believes. If it comes back, it failed.
void agent_hide_drain(void); // kept quiet by the caller: no tick is pending in this thread, which has none any more
void agent_hide_before_exec(void);
void agent_hide_after_exec(void);

#pragma GCC visibility pop

#endif
