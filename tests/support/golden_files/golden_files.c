// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_files/golden_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codec.h"
#include "qutc/bundle.h"
#include "tests/support/golden/golden.h"
#include "tests/support/golden/segment.h"
#include "tests/support/table_sample.h"
#include "tracer/collect/collect.h"

const char *const golden_file_names[GOLDEN_FILE_COUNT] = {
    [GOLDEN_TABLE] = "v2.qut",         [GOLDEN_BUNDLE] = "v1-of-v2.qutz", [GOLDEN_SEGMENT] = "v2.segment.zst",
    [GOLDEN_TRACE_FILE] = "v5.qtrace", [GOLDEN_SETTINGS] = "v1.settings", [GOLDEN_PACKETS] = "v1.packets",
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct golden_bytes room(size_t size)
{
    struct golden_bytes made = {.bytes = aligned_alloc(64, (size + 63) / 64 * 64), .size = size};
    require(made.bytes != NULL);
    return made;
}

static struct golden_bytes copy(const void *bytes, size_t size)
{
    struct golden_bytes made = room(size);
    memcpy(made.bytes, bytes, size);
    return made;
}

// ---- tables

static struct golden_bytes make_table(bool small)
{
    struct maker maker;
    sample_fill(&maker);
    struct made_table table = maker_table(&maker, small);
    struct golden_bytes made = copy(table.bytes, table.size);
    made_table_free(&table);
    maker_free(&maker);
    return made;
}

static struct golden_bytes make_bundle(void)
{
    struct golden_bytes tables[] = {make_table(true), make_table(false)};
    struct qutc_bundle_item items[] = {{"b-small.qut", tables[0].bytes, tables[0].size},
                                       {"a-plain.qut", tables[1].bytes, tables[1].size}};
    uint8_t *bytes;
    size_t size;
    require(qutc_bundle_pack(items, 2, &bytes, &size, NULL) == 0);
    struct golden_bytes made = copy(bytes, size);
    free(bytes);
    free(tables[0].bytes);
    free(tables[1].bytes);
    return made;
}

// ---- traces

static int segment_fd(void)
{
    struct trace trace;
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/qut-golden-files.%d", (int)getpid());
    golden_trace(&trace);
    golden_tell(&trace);
    require(golden_write(&trace, path, true) == 0);
    golden_free(&trace);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unlink(path);
    require(fd >= 0);
    return fd;
}

static struct golden_bytes contents(int fd)
{
    struct stat status;
    require(fstat(fd, &status) == 0);
    struct golden_bytes made = room((size_t)status.st_size);
    require(pread(fd, made.bytes, made.size, 0) == (ssize_t)made.size);
    close(fd);
    return made;
}

static struct golden_bytes make_trace_file(void)
{
    int from = segment_fd(), to = memfd_create("golden", MFD_CLOEXEC);
    const struct collect_options options = {.segment_fd = from, .file_fd = to, .stop_fd = -1, .process_fd = -1};
    struct collect_result result;
    require(to >= 0 && collect(&options, &result, NULL) == 0 && result.has_trailer);
    close(from);
    return contents(to);
}

// ---- the agent

static struct golden_bytes make_settings(void)
{
    static const struct agent_settings settings = {.token = "0123456789abcdef0123456789abcdef",
                                                   .socket = "/run/user/1000/qut-1/socket",
                                                   .cache = "/home/u/.cache/qut",
                                                   .preload = "a.so:b.so",
                                                   .trigger = 1,
                                                   .signal_number = 2,
                                                   .period_ns = 3,
                                                   .sync_interval_ns = 4,
                                                   .fault_period = 5,
                                                   .segment_bytes = 6,
                                                   .blocked_least_ns = UINT64_MAX,
                                                   .sync = AGENT_SYNC_ALL,
                                                   .metric_mask = UINT32_MAX,
                                                   .group_count = 2,
                                                   .follow = true,
                                                   .groups = {{"main", 8}, {"a:b*", 0}}};
    char text[AGENT_SETTINGS_BYTES];
    size_t size = agent_settings_write(&settings, text, sizeof text);
    require(size != 0);
    return copy(text, size);
}

static struct agent_channel_head head(uint32_t type)
{
    return (struct agent_channel_head){
        .version = AGENT_VERSION, .type = type, .token = "0123456789abcdef0123456789abcdef"};
}

static struct golden_bytes make_packets(void)
{
    static struct golden_packets packets;
    packets = (struct golden_packets){
        .hello = {head(AGENT_CHANNEL_HELLO), 11, 12, AGENT_BEGAN_BY_INJECTION, 13, -14, 0, 0},
        .table = {head(AGENT_CHANNEL_TABLE), 21, 22, 23, 4, {0xde, 0xad, 0xbe, 0xef}, "/usr/lib/libgolden.so"},
        .counts = {head(AGENT_CHANNEL_ADD), 31, 32, 33, 34, 35, 36, 37, 38, 39, 0, 0, 0, 0, {0}},
        .left = {head(AGENT_CHANNEL_LEFT), AGENT_LEFT_FAILED, 1, 1, 0, 0},
        .answer = {AGENT_VERSION, AGENT_CHANNEL_NO, "there is none"}};
    return copy(&packets, sizeof packets);
}

struct golden_bytes golden_file_make(enum golden_file file)
{
    switch (file) {
    case GOLDEN_TABLE: return make_table(true);
    case GOLDEN_BUNDLE: return make_bundle();
    case GOLDEN_SEGMENT: return contents(segment_fd());
    case GOLDEN_TRACE_FILE: return make_trace_file();
    case GOLDEN_SETTINGS: return make_settings();
    default: return make_packets();
    }
}

// ---- without what differs

static void append(struct golden_bytes *to, const void *bytes, size_t size)
{
    to->bytes = realloc(to->bytes, to->size + size);
    require(to->bytes != NULL);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
}

static struct golden_bytes plain_bundle(struct golden_bytes from)
{
    struct qutc_bundle bundle;
    struct golden_bytes plain = {0};
    require(qutc_bundle_open(&bundle, from.bytes, from.size, NULL) == 0);
    struct qut_bundle_header header = *(const struct qut_bundle_header *)bundle.bytes;
    header.file_size = header.checksum = 0;
    append(&plain, &header, sizeof header);
    append(&plain, bundle.names, header.names_bytes);
    for (uint32_t i = 0; i < bundle.entry_count; i++) {
        struct qut_bundle_entry entry = bundle.entries[i];
        uint8_t *table;
        size_t size;
        require(qutc_bundle_unpack(&bundle, i, &table, &size, NULL) == 0);
        entry.frame_offset = entry.packed_bytes = 0;
        append(&plain, &entry, sizeof entry);
        append(&plain, table, size);
        free(table);
    }
    free(from.bytes);
    return plain;
}

static void clear_times(uint8_t *contents, uint8_t type)
{
    if (type == QUT_TRACE_FILE_SEGMENT)
        memset(contents + sizeof(struct qut_trace_header) + offsetof(struct qut_trace_counters, collector_ns), 0, 8);
    if (type != QUT_TRACE_FILE_TRAILER)
        return;
    memset(contents + offsetof(struct qut_trace_file_trailer, end_ns), 0, 8);
    memset(contents + offsetof(struct qut_trace_file_trailer, file_bytes), 0, 8);
}

static struct golden_bytes plain_trace_file(struct golden_bytes from)
{
    struct golden_bytes plain = {0};
    struct qut_trace_file_header header;
    memcpy(&header, from.bytes, sizeof header);
    header.begin_ns = header.checksum = 0;
    append(&plain, &header, sizeof header);
    struct qut_trace_file_block block;
    for (size_t at = sizeof header; at < from.size; at += sizeof block + block.packed_bytes) {
        memcpy(&block, from.bytes + at, sizeof block);
        const struct golden_bytes packed = {from.bytes + at + sizeof block, block.packed_bytes};
        struct golden_bytes contents = block.codec != QUT_TRACE_FILE_PLAIN
                                           ? golden_file_unpack(packed, block.unpacked_bytes)
                                           : copy(packed.bytes, packed.size);
        struct qut_trace_file_block told = block;
        told.codec = 0;
        told.packed_bytes = 0;
        told.contents_checksum = told.checksum = 0;
        clear_times(contents.bytes, block.type);
        append(&plain, &told, sizeof told);
        append(&plain, contents.bytes, contents.size);
        free(contents.bytes);
    }
    free(from.bytes);
    return plain;
}

struct golden_bytes golden_file_plain(enum golden_file file, struct golden_bytes bytes)
{
    if (file == GOLDEN_BUNDLE)
        return plain_bundle(bytes);
    return file == GOLDEN_TRACE_FILE ? plain_trace_file(bytes) : bytes;
}

struct golden_bytes golden_file_pack(struct golden_bytes bytes)
{
    struct golden_bytes packed = room(base_zstd_bound(bytes.size));
    require(base_zstd_pack((struct base_bytes){bytes.bytes, bytes.size}, 19, packed.bytes, packed.size, &packed.size,
                           NULL) == 0);
    return packed;
}

struct golden_bytes golden_file_unpack(struct golden_bytes packed, size_t size)
{
    struct golden_bytes bytes = room(size);
    require(base_unzstd((struct base_bytes){packed.bytes, packed.size}, bytes.bytes, size, "", NULL) == 0);
    return bytes;
}
