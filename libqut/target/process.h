// SPDX-License-Identifier: Apache-2.0
// What the parts of a live target share.
#ifndef QUT_TARGET_PROCESS_H
#define QUT_TARGET_PROCESS_H

#include "libqut/target/target.h"

struct qut_live {
    pid_t pid; // of the whole process
    int memory_fd;
};

// ---- stop.c

int qut_live_stop(struct qut_target *target, struct qut_target_error *error);
void qut_live_resume_thread(struct qut_target *target, struct qut_target_thread *thread);
bool qut_live_registers(struct qut_target *target, struct qut_target_thread *thread);

// ---- asleep.c

void qut_live_list_sleepers(struct qut_target *target);
// Registers of a thread that sleeps in a system call; false where it does not.
bool qut_live_fall_asleep(struct qut_target *target, struct qut_target_thread *thread);
bool qut_live_still_asleep(struct qut_target *target, struct qut_target_thread *thread);
// The thread's state as in its status: 'R', 'S', 'D', 'T', 'Z', ...; 0: it has gone.
char qut_live_thread_state(pid_t pid, pid_t tid);

// ---- process.c

// Words -errno of what was done to a process. -1.
int qut_live_fail(struct qut_target_error *error, pid_t pid, int result);
int qut_live_refresh_maps(struct qut_target *target, struct qut_target_error *error);
// A field of /proc/PID/status as a number; -1: there is none.
long qut_live_status_number(pid_t pid, const char *field);
// Calls each for every thread's id.
int qut_live_each_tid(pid_t pid, int (*each)(void *context, pid_t tid), void *context);

#endif
