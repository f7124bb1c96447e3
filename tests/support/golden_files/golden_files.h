// SPDX-License-Identifier: Apache-2.0
// One file of each format in each version that is read. They are never made again: what is read today must be read as
// long as its version is.
#ifndef TESTS_SUPPORT_GOLDEN_FILES_GOLDEN_FILES_H
#define TESTS_SUPPORT_GOLDEN_FILES_GOLDEN_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "formats/qut_agent.h"

enum golden_file {
    GOLDEN_TABLE,
    GOLDEN_BUNDLE,
    GOLDEN_SEGMENT, // packed with zstd in the tree
    GOLDEN_TRACE_FILE,
    GOLDEN_SETTINGS,
    GOLDEN_PACKETS, // struct golden_packets
    GOLDEN_FILE_COUNT,
};

struct golden_packets {
    struct agent_channel_hello hello;
    struct agent_channel_table table;
    struct agent_channel_counts counts;
    struct agent_channel_left left;
    struct agent_channel_answer answer;
};

struct golden_bytes {
    uint8_t *bytes; // with malloc, aligned as tables need it
    size_t size;
};

extern const char *const golden_file_names[GOLDEN_FILE_COUNT]; // of today's versions: "v1.qut"

// As today's writers make it. Aborts where that fails.
struct golden_bytes golden_file_make(enum golden_file file);

// Without what differs each time, or with the library that packs: times of collecting, packed bytes, and checksums of
// these. Takes the bytes, and gives others.
struct golden_bytes golden_file_plain(enum golden_file file, struct golden_bytes bytes);

struct golden_bytes golden_file_pack(struct golden_bytes bytes);
struct golden_bytes golden_file_unpack(struct golden_bytes packed, size_t size);

#endif
