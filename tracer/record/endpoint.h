// SPDX-License-Identifier: Apache-2.0
// Where agents find the recorder: a socket by name, which needs no file, and one in a directory of ours, for those in
// another network namespace.
#ifndef TRACER_RECORD_ENDPOINT_H
#define TRACER_RECORD_ENDPOINT_H

#include <stddef.h>

#include "qutc/base/error.h"
#include "tracer/agent/settings.h"

int dup_cloexec(int fd);

// Random: who knows it was told by us.
int endpoint_token(char token[AGENT_TOKEN_BYTES], struct qutc_error *error);
// A directory of ours alone, empty. "": there is none to be had.
void endpoint_directory(char *path, size_t size);
void endpoint_remove(const char *directory);
// Sockets that listen, not blocking; -1: not to be had.
int endpoint_abstract(const char *token);
int endpoint_in(const char *directory, char *path, size_t size);

#endif
