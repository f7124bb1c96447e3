// SPDX-License-Identifier: Apache-2.0
// Code in a process that no file has: what was put there by us is among it, and known by how it begins.
#ifndef TRACER_INJECT_CODE_PAGES_H
#define TRACER_INJECT_CODE_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { INJECT_PAGE_HEAD_BYTES = 64 };

// Calls `each` with how each page of such code begins, by address, until it says that it has seen enough. What cannot
// be read is left out. False: /proc does not tell what is mapped.
typedef bool (*inject_page_fn)(void *context, uint64_t address, const uint8_t head[INJECT_PAGE_HEAD_BYTES]);
bool inject_each_code_page(pid_t pid, inject_page_fn each, void *context);

#endif
