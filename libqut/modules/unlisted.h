// SPDX-License-Identifier: Apache-2.0
// What is found of images that no loader lists, while mappings are read. All of it under work, without lock.
#ifndef QUT_MODULES_UNLISTED_H
#define QUT_MODULES_UNLISTED_H

#include "libqut/modules/scan.h"

enum { MODULES_UNLISTED_BACK = 16 }; // so many mappings at most lie between an image's beginning and its code

struct unlisted_mapping {
    uintptr_t start, end;
    uint64_t offset_bytes, device, inode;
    bool is_readable;
    bool is_no_head;  // no image begins here
    const char *path; // only of the one that is looked at
};

struct modules_unlisted {
    struct modules_scan scan; // with a buffer
    size_t seen_count;
    // Of the image that was found last: where it begins, where its code ends so far, and where it says that it does.
    struct unlisted_mapping head;
    uintptr_t code_end, whole_end;
    struct unlisted_mapping seen[MODULES_UNLISTED_BACK];
    char path[4096];
};

// The next mapping, ascending. 0 or -ENOMEM.
int modules_unlisted_see(struct modules_unlisted *unlisted, const struct os_map_line *line);
// After the last one: the registry has what was found, and no longer what was not. As modules_scan_take.
int modules_unlisted_take(struct modules_unlisted *unlisted);

#endif
