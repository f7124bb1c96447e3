// SPDX-License-Identifier: Apache-2.0
#ifndef QUT_OS_FILE_H
#define QUT_OS_FILE_H

#include <stddef.h>
#include <stdint.h>

// The whole of a regular file of 1 to max_bytes bytes, in fresh pages: os_free_pages(*pages, *size). Read, not
// mapped: a file that is cut off later must not kill its reader. 0 or -errno (-EFBIG: over max_bytes; -ENODATA:
// it is empty, or not all of it can be read; -EINVAL: not a regular file). Blocks, not signal-safe.
int os_read_file(const char *path, size_t max_bytes, void **pages, size_t *size);
// The same of a file that nobody else has made: -EPERM where everybody may write it, and where we are root and it is
// not root's, or a group may write it. For other users the directory has to answer for the rest.
int os_read_own_file(const char *path, size_t max_bytes, void **pages, size_t *size);
// The same of a file that belongs to a user, or to root, and that not everybody may write: else -EPERM.
int os_read_file_of(const char *path, uint32_t user_id, size_t max_bytes, void **pages, size_t *size);

// A file of which only parts are read: a descriptor (os_close_file) or -errno. Only regular files. *size may be
// NULL.
int os_open_file(const char *path, uint64_t *size);
// The same, of a file that os_read_file_of would read.
int os_open_file_of(const char *path, uint32_t user_id, uint64_t *size);
void os_close_file(int fd);
// Returns how many bytes from the start on could be read.
size_t os_read_at(int fd, uint64_t offset, void *bytes, size_t size);

// A file whose size is not known before it is read (of /proc), at most max_bytes of it: *text is from malloc and ends
// with a NUL behind *size bytes. 0 or -errno.
int os_read_text(const char *path, size_t max_bytes, char **text, size_t *size);

// Calls each for every name in a directory, until it returns non-zero; returns that, 0 or -errno.
int os_each_name(const char *directory, int (*each)(void *context, const char *name), void *context);

#endif
