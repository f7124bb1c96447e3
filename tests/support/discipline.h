// SPDX-License-Identifier: Apache-2.0
// What the tests of a walk's manners share: tables without libqutc, and a watch over libc while a walk runs.
#ifndef TESTS_SUPPORT_DISCIPLINE_H
#define TESTS_SUPPORT_DISCIPLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qut/local.h>

// A qut_compile_fn that runs $QUT_TEST_QUTC, the compiler of the machine that builds, also under qemu-user: an emulated
// program may execute the host's. Files that are not there are looked for under $QUT_TEST_SYSROOT. Without
// QUT_TEST_QUTC no module has a table.
int discipline_compile(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                       char *reason, size_t reason_size);
bool discipline_has_compiler(void);
bool discipline_start(void); // qut_start with it, and all tables are made

// ---- discipline_interpose.c: while a walk runs, functions of libc that it must not call end the process with a
// message.
void discipline_watch(bool on); // of the calling thread
bool discipline_watching_works(void);
uint64_t discipline_watched_calls(void); // that came while no watch was on: shows that they are seen at all

// A walk with everything on: watched, errno poisoned. Returns the number of frames; false in *errno_kept if changed.
size_t discipline_walk(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end, bool *errno_kept);
// As often as there are ways to walk: without shortcuts, with them, and once more, when the walk is remembered. The
// last one counts; *errno_kept is that of all.
size_t discipline_walk_every_way(const void *ucontext, uintptr_t *pcs, size_t max, struct qut_end *end,
                                 bool *errno_kept);

// A trace is open: everything that may be called in a handler, watched as a walk. Returns how many hits were not
// stored.
int discipline_store(const void *ucontext, bool *errno_kept);

#endif
