// SPDX-License-Identifier: Apache-2.0
// What the parts of a live target share.
#ifndef QUT_TARGET_LIVE_H
#define QUT_TARGET_LIVE_H

#include "libqut/target/opened_target.h"

struct target_live {
    pid_t pid;        // of the whole process
    pid_t memory_tid; // a thread that still has its memory: the first one may have ended before the others
    int memory_fd, tasks_fd;
    bool is_child;        // of this process
    unsigned patience_us; // what is left of the time for threads that wait for a disk
    char *maps_text;      // what target->maps was made of
    size_t maps_text_size;
};

// What /proc tells of a thread that does not run.
struct target_sleep {
    char text[TARGET_SLEEP_TEXT_BYTES];
    long number; // of the system call; -1: it is in none, and the arguments are not set
    uint64_t argument[6];
    uint64_t sp, pc;
};

// ---- stop.c

int target_live_stop(struct qut_target *target, struct qut_target_error *error);

// ---- ask.c

// Asks a thread to stop, or finds that it must be left asleep (thread->state). 0, or -errno: it cannot be asked.
int target_live_ask(struct qut_target *target, struct qut_target_thread *thread);
// Waits for those that were asked, until all stand still, have gone, or too much time went by.
void target_live_await_all(const struct qut_target *target, struct qut_target_thread *threads, size_t count);
// A thread that was left asleep and can have woken: asked anew. False: it has no registers.
bool target_live_retake(struct qut_target *target, struct qut_target_thread *thread);
void target_live_resume_thread(struct qut_target *target, struct qut_target_thread *thread);
bool target_live_registers(struct qut_target *target, struct qut_target_thread *thread);

// ---- interrupted.c

// What a thread that sleeps notices of being stopped.
enum target_wake {
    TARGET_WAKE_UNKNOWN, // nothing, as far as we know; it can be where nothing wakes it
    TARGET_WAKE_UNSEEN,  // nothing, and it can be woken
    TARGET_WAKE_SEEN,    // its system call, *name, ends
};
enum target_wake target_live_wake(struct qut_target *target, pid_t tid, const struct target_sleep *sleep,
                                  const char **name);

// ---- stopped_call.c. A block is the general registers (NT_PRSTATUS) of a thread that is stopped

// Whether a stop in this call can be made good so that nothing is other than without it.
bool target_live_can_mend(const struct arch *arch, const struct target_sleep *sleep);
// The call that was stopped would return EINTR: true, and the block was changed so that it begins anew.
bool target_live_mend_call(const struct arch *arch, void *block);
bool target_live_is_clone(const struct arch *arch, int64_t number);
// Whether it has just come out of the call that made it: where its stack begins, which no unwind information says.
// `code` ends at its pc.
bool target_live_is_newborn(const struct arch *arch, const void *block, const uint8_t *code, size_t code_bytes);
// The same, of a thread of this target.
bool target_live_has_just_begun(struct qut_target *target, const void *block);

// ---- asleep.c

// False: it runs, or has gone.
bool target_live_look(const struct target_live *live, pid_t tid, struct target_sleep *sleep);
// The same of sleep->text, which the caller has read.
bool target_live_parse_sleep(struct target_sleep *sleep);
// Its registers are what was seen. `call`: for info.asleep_in.
void target_live_fall_asleep(const struct qut_target *target, struct qut_target_thread *thread,
                             const struct target_sleep *sleep, const char *call);
void target_live_list_sleepers(struct qut_target *target);
bool target_live_still_asleep(struct qut_target *target, struct qut_target_thread *thread);
// The thread's state as in its status: 'R', 'S', 'D', 'T', 'Z', ...; 0: it has gone.
char target_live_thread_state(const struct target_live *live, pid_t tid);
void target_live_name_thread(struct qut_target *target, struct qut_target_thread *thread);

// ---- live.c

// Words -errno of what was done to a process. -1.
int target_live_fail(struct qut_target_error *error, pid_t pid, int result);
int target_live_refresh_maps(struct qut_target *target, struct qut_target_error *error);
// A field of /proc/PID/status as a number; -1: there is none.
long target_live_status_number(pid_t pid, const char *field);
// Calls each for every thread's id.
int target_live_each_tid(pid_t pid, int (*each)(void *context, pid_t tid), void *context);

#endif
