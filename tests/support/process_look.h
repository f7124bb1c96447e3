// SPDX-License-Identifier: Apache-2.0
// What can be seen of a process from outside. All fail the test where they cannot.
#ifndef TESTS_SUPPORT_PROCESS_LOOK_H
#define TESTS_SUPPORT_PROCESS_LOOK_H

#include <stdbool.h>
#include <sys/types.h>

// From malloc.
char *process_maps(pid_t pid);
unsigned process_count(pid_t pid, const char *folder); // entries: "task", "fd"
bool process_has_name_in_maps(pid_t pid, const char *name);
// Of all bytes that it may execute.
unsigned long process_code_hash(pid_t pid);

#endif
