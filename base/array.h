// SPDX-License-Identifier: Apache-2.0
// Large arrays. A compile touches megabytes of fresh memory once; page by page, the faults would cost as much as the
// decoding: 8 MB take 3 ms so, and 0.3 ms in huge pages. Large arrays therefore ask for those.
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stddef.h>

// Like realloc, but the caller knows the sizes. NULL where memory lacks; the old array is then untouched.
void *base_array_resize(void *array, size_t old_bytes, size_t new_bytes);
void base_array_free(void *array, size_t bytes);

// Of zeros, of which few pages will be touched: those stay small. Free it with base_array_free, or resize it.
void *base_array_sparse(size_t bytes);

// The same wish for memory that leaves as malloc's: free it with free. Not zeroed.
void *base_array_malloc(size_t bytes);

#endif
