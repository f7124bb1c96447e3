// SPDX-License-Identifier: Apache-2.0
// Where agents find the recorder: a socket by name, which needs no file, and one in a directory of ours, for those in
// another network namespace.
#ifndef TRACER_RECORD_ENDPOINT_H
#define TRACER_RECORD_ENDPOINT_H

#include <stddef.h>

#include "base/error.h"
#include "formats/qut_agent.h"

int record_dup_cloexec(int fd);

// Random: only a process that was told by us knows it.
int record_endpoint_token(char token[AGENT_TOKEN_BYTES], struct base_error *error);
// A directory of ours alone, empty. "": there is none to be had.
void record_endpoint_directory(char *path, size_t size);
void record_endpoint_remove(const char *directory);
// Sockets that listen, not blocking; -1: not to be had.
int record_endpoint_abstract(const char *token);
int record_endpoint_in(const char *directory, char *path, size_t size);

#endif
