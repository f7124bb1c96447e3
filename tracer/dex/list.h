// SPDX-License-Identifier: Apache-2.0
// Where the dex files are in what holds several: a container of dex 041, a .vdex file, an OAT file.
#ifndef TRACER_DEX_LIST_H
#define TRACER_DEX_LIST_H

#include "tracer/dex/dex.h"

enum { QUT_DEX_FILES_MAX = 65536 };

struct qut_dex_list {
    uint64_t *offsets; // of their headers in the file, ascending
    size_t count;
    size_t capacity;
};

// All of these make a new list, also an empty one. Return 0, or -1 with *error filled, and an empty list.

// The dex file at an offset, and, of a container, those behind it.
int qut_dex_list_at(struct qut_dex_list *list, struct qutc_bytes file, uint64_t offset, struct qutc_error *error);

// A .vdex file: 006, 010 (Android 8.0, 8.1), 019 (9), 021 (10, 11), 027 (from 12 on). One without dex files is none's
// fault: they are in the APK.
int qut_dex_list_vdex(struct qut_dex_list *list, struct qutc_bytes file, struct qutc_error *error);

// An OAT file of Android 7 or older has its dex files inside, at offsets that each version notes elsewhere: they are
// found by their headers, at multiples of 4.
int qut_dex_list_search(struct qut_dex_list *list, struct qutc_bytes file, struct qutc_error *error);

void qut_dex_list_free(struct qut_dex_list *list);

#endif
