// SPDX-License-Identifier: Apache-2.0
// Where agents find the recorder: a socket by name, which needs no file, and one in a directory of ours, for those in
// another network namespace.
#ifndef TRACER_RECORD_ENDPOINT_H
#define TRACER_RECORD_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "formats/qut_agent.h"

int record_dup_cloexec(int fd);

// Random: only a process that was told by us knows it.
int record_endpoint_token(char token[AGENT_TOKEN_BYTES], struct base_error *error);
// A directory of ours alone, empty. "": there is none to be had. With `is_for_all` in a place that every user can
// reach, where none but us can replace what is in it, and from which programs may be loaded: true; false: there was no
// such place, and it is as any.
bool record_endpoint_directory(char *path, size_t size, bool is_for_all);
// Whether every user may go through the directories above `path`; and none but its owner and root can replace them.
bool record_endpoint_is_reached(const char *path);
bool record_endpoint_is_safe(const char *path);
void record_endpoint_remove(const char *directory);
// Sockets that listen, not blocking; -1: not to be had, *error says why.
int record_endpoint_abstract(const char *token, struct base_error *error);
int record_endpoint_in(const char *directory, char *path, size_t size, struct base_error *error);

#endif
