// SPDX-License-Identifier: Apache-2.0
#ifndef AGENT_THREAD_START_H
#define AGENT_THREAD_START_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

void agent_threads_prepare(void);          // once, before libqut starts
uint64_t agent_threads_without_room(void); // that have no ticks, since their stacks are too small
void agent_threads_count_from(void);       // the calling one is the program's only one, as far as we know
void agent_threads_begin_own(void);        // in a thread of ours that no hook has begun
void agent_threads_after_fork(void);
// In a child after fork: libqut's thread does not begin, until a thread does, or this is called.
void agent_threads_hold(void);
void agent_threads_go_on(void);
// libqut's thread is gone between these two, and begins again.
void agent_threads_pause_own(void);
void agent_threads_resume_own(void);
uint32_t agent_threads_own_tid(void); // of the agent's own thread, the last one that began; 0: there was none
// A second thread of the agent's own has begun, and is not the one that is meant above.
void agent_threads_set_own_tid(uint32_t tid);

#pragma GCC visibility pop

#endif
