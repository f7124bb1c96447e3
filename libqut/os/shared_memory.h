// SPDX-License-Identifier: Apache-2.0
// Memory that other processes may map, too, and the little else that a trace wants to know of the system. Not
// signal-safe.
#ifndef QUT_OS_SHARED_MEMORY_H
#define QUT_OS_SHARED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

// size_bytes of zeroes: *pages, mapped shared. All of them are there from now on; on_demand: each when it is first
// written to, unless the system counts what it promises (vm.overcommit_memory 2): then the first process that gets no
// page is killed. path: a file that is made, for its owner only, in a memory file system (else -EMEDIUMTYPE); NULL:
// memory without a name. Where the system can, its size is sealed: no reader is killed by a file that shrinks under it.
// Returns a descriptor or -errno.
int os_share_pages(const char *path, size_t size_bytes, bool on_demand, void **pages);
void os_unshare_pages(int fd, void *pages, size_t size_bytes);

// Of pages that are there: in larger ones from now on, where the system has such and is asked for nothing more. What
// they hold stays.
void os_join_pages(void *pages, size_t size_bytes);

size_t os_page_bytes(void);

// The three clocks of the same moment, nearly.
void os_read_clocks(uint64_t *monotonic_ns, uint64_t *realtime_ns, uint64_t *boottime_ns);

// Bytes that no other call gets, in this process or another.
void os_random(void *bytes, size_t size);

#pragma GCC visibility pop

#endif
