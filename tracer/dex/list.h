// SPDX-License-Identifier: Apache-2.0
// Where the dex files are in what holds several: a container of dex 041, a .vdex file, an OAT file.
#ifndef TRACER_DEX_LIST_H
#define TRACER_DEX_LIST_H

#include "base/vector.h"
#include "tracer/dex/dex.h"

enum { DEX_LIST_FILES_MAX = 65536 };

struct dex_list {
    BASE_VECTOR(uint64_t); // of their headers in the file, ascending
};

// All of these make a new list, also an empty one. Return 0, or -1 with *error filled, and an empty list.

// The dex file at an offset, and, of a container, those behind it.
int dex_list_at(struct dex_list *list, struct base_bytes file, uint64_t offset, struct base_error *error);

// A .vdex file: 006, 010 (Android 8.0, 8.1), 019 (9), 021 (10, 11), 027 (from 12 on). One without dex files is none's
// fault: they are in the APK.
int dex_list_vdex(struct dex_list *list, struct base_bytes file, struct base_error *error);

// What a .vdex file notes of its dex file number `index`: where that was taken from an archive, the CRC-32 that its
// entry has, else the checksum of the dex file's header. OAT files note the same. False: there is none.
bool dex_list_vdex_checksum(struct base_bytes file, size_t index, uint32_t *checksum);

// An OAT file of Android 7 or older has its dex files inside, at offsets that each version notes elsewhere: they are
// found by their headers, at multiples of 4.
int dex_list_search(struct dex_list *list, struct base_bytes file, struct base_error *error);

void dex_list_free(struct dex_list *list);

#endif
