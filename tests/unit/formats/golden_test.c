// SPDX-License-Identifier: Apache-2.0
// What was written once is read as long as its version is; what is written today is what was; and what is of another
// version is refused with a sentence that says what to do. The golden files are made by make_golden_files.
#include <check.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/qut_table_check.h"
#include "formats/qut_trace_file.h"
#include "qutc/bundle.h"
#include "qutc/table_file.h"
#include "tests/support/golden/golden.h"
#include "tests/support/golden_files/golden_files.h"
#include "tests/support/run_suite.h"
#include "tracer/collect/collect.h"
#include "tracer/trace/raw_trace.h"

enum { SEGMENT_BYTES = 4 << 20 };
static const char *directory;

static struct golden_bytes read_named(const char *name)
{
    char path[4096];
    struct golden_bytes golden;
    struct base_error error = {0};
    snprintf(path, sizeof path, "%s/%s", directory, name);
    if (qutc_read_file(path, 1 << 20, &golden.bytes, &golden.size, &error) != 0)
        ck_abort_msg("%s: %s", path, error.detail);
    if (!strstr(name, ".zst"))
        return golden;
    struct golden_bytes whole = golden_file_unpack(golden, SEGMENT_BYTES);
    free(golden.bytes);
    return whole;
}

static struct golden_bytes read_golden(enum golden_file file)
{
    return read_named(golden_file_names[file]);
}

START_TEST(writers_write_the_same)
{
    struct golden_bytes golden = golden_file_plain((enum golden_file)_i, read_golden((enum golden_file)_i));
    struct golden_bytes made = golden_file_plain((enum golden_file)_i, golden_file_make((enum golden_file)_i));
    size_t same = 0;
    while (same < golden.size && same < made.size && golden.bytes[same] == made.bytes[same])
        same++;
    if (golden.size != made.size || same != golden.size)
        ck_abort_msg("%s: the format changed: raise the version, keep the old golden file (first at 0x%zx of %zu plain "
                     "bytes, now %zu; or what goes into it did: tests/support/golden, table_sample.c)",
                     golden_file_names[_i], same, golden.size, made.size);
    free(golden.bytes);
    free(made.bytes);
}
END_TEST

// ---- read

static void is_the_table(const uint8_t *bytes, size_t size, bool has_runs)
{
    struct qut_table table;
    struct base_error error = {0};
    if (qutc_table_attach(&table, bytes, size, &error) != 0)
        ck_abort_msg("%s", error.detail);
    ck_assert_uint_eq(table.header->arch, QUT_ARCH_AARCH64);
    ck_assert_uint_eq(table.header->row_count, 302);
    ck_assert_uint_eq(table.header->refused_rows, 57);
    ck_assert_uint_eq(table.header->runs.size != 0, has_runs);
    // The first function's second row: cfa = sp + 16, the return address unchanged in its register.
    struct qut_rule rule;
    runtime_table_rule(&table, 0x40000 + 36, &rule);
    ck_assert_uint_eq(rule.kind, QUT_RULE_FRAME);
    ck_assert_uint_eq(rule.cfa.how, QUT_CFA_REG);
    ck_assert_uint_eq(rule.cfa.reg, 31);
    ck_assert_int_eq(rule.cfa.offset_bytes, 16);
    ck_assert_uint_eq(rule.ra.how, QUT_REG_SAME);
    runtime_table_rule(&table, 0x40000 + 32 + 44, &rule);
    ck_assert_uint_eq(rule.kind, QUT_RULE_HOLE);
}

// Of this version, and of the one before.
START_TEST(a_table_is_read)
{
    struct golden_bytes golden = _i == 0 ? read_golden(GOLDEN_TABLE) : read_named("v1.qut");
    is_the_table(golden.bytes, golden.size, true);
    free(golden.bytes);
}
END_TEST

// With tables of either version.
START_TEST(a_bundle_is_read)
{
    struct golden_bytes golden = _i == 0 ? read_golden(GOLDEN_BUNDLE) : read_named("v1.qutz");
    struct qutc_bundle bundle;
    ck_assert_int_eq(qutc_bundle_open(&bundle, golden.bytes, golden.size, NULL), 0);
    ck_assert_uint_eq(bundle.entry_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
        uint8_t *table;
        size_t size;
        qutc_bundle_name(&bundle, i, name);
        ck_assert_str_eq(name, i ? "b-small.qut" : "a-plain.qut");
        ck_assert_int_eq(qutc_bundle_unpack(&bundle, i, &table, &size, NULL), 0);
        is_the_table(table, size, i);
        free(table);
    }
    free(golden.bytes);
}
END_TEST

// Of every version that is read, as a segment and as a file: the same trace, in its version's units.
static const struct {
    const char *name;
    uint64_t merged_ns, told_ns;
} golden_traces[] = {
    {"v1.segment.zst", 9000192, 0},
    {"v1.qtrace", 9000192, 0},
    {"v2.qtrace", 9000192, 0},
    {"v2.segment.zst", 8999936, GOLDEN_TOLD_NS},
    {"v5.qtrace", 8999936, GOLDEN_TOLD_NS},
};

static uint64_t told_by(const struct trace *trace, unsigned kind)
{
    uint64_t sum_ns = 0, ns = 0;
    for (size_t i = 0; i < trace->sample_count; i++)
        if (trace->samples[i].kind == kind && trace_extra(trace, &trace->samples[i], QUT_TRACE_EXTRA_CPU_NS, &ns))
            sum_ns += ns;
    return sum_ns;
}

static void is_the_trace(struct golden_bytes golden, unsigned which)
{
    struct trace trace;
    struct base_error error = {0};
    if (trace_read_bytes(golden.bytes, golden.size, "golden", &trace, &error) != 0)
        ck_abort_msg("%s", error.detail);
    ck_assert(trace.is_complete);
    ck_assert_uint_eq(trace.pid, 4242);
    ck_assert_int_eq(strncmp(trace.command, "/opt/app/golden --name=", 23), 0);
    ck_assert_uint_eq(trace.start_ns, 1000000000000);
    ck_assert_uint_eq(trace.end_ns, 1001000000000);
    ck_assert_uint_eq(trace.present_samples, 167);
    ck_assert_uint_eq(trace.sample_count, 57);
    ck_assert_uint_eq(trace.mark_count, 10);
    ck_assert_uint_eq(trace.module_count, 6);
    ck_assert_str_eq(trace.modules[1].path, "/opt/app/golden");
    ck_assert_uint_eq(trace.thread_count, 4);
    ck_assert_str_eq(trace.threads[0].name, "main");
    ck_assert_uint_eq(trace.threads[0].counts.throttled, 17);
    // Ten samples that were merged, of main's caller.
    const struct trace_sample *merged = &trace.samples[1];
    ck_assert_uint_eq(merged->count, 10);
    ck_assert_uint_eq(merged->kind, QUT_TRACE_KIND_CPU);
    ck_assert_uint_eq(merged->last_ns - merged->first_ns, golden_traces[which].merged_ns);
    ck_assert_uint_eq(told_by(&trace, GOLDEN_OWN_KIND), golden_traces[which].told_ns);
    ck_assert_uint_eq(trace.nodes[merged->node].pc, 0x1300);
    ck_assert_uint_eq(trace.nodes[merged->node].depth, 3);
    struct trace_balance balance = trace_balance(&trace);
    ck_assert_int_eq(balance.hits_missing, 0);
    ck_assert_int_eq(balance.samples_missing, 0);
    trace_free(&trace);
    free(golden.bytes);
}

START_TEST(a_trace_is_read)
{
    is_the_trace(read_named(golden_traces[_i].name), (unsigned)_i);
}
END_TEST

// What an older QUT's process left: today's file of it has records of that version.
START_TEST(an_older_segment_is_collected)
{
    struct golden_bytes golden = read_named(golden_traces[0].name);
    int from = memfd_create("segment", MFD_CLOEXEC), to = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_eq(write(from, golden.bytes, golden.size), (ssize_t)golden.size);
    free(golden.bytes);
    const struct collect_options options = {.segment_fd = from, .file_fd = to, .stop_fd = -1, .process_fd = -1};
    struct collect_result result;
    ck_assert_int_eq(collect(&options, &result, NULL), 0);
    golden = (struct golden_bytes){aligned_alloc(64, (result.file_bytes + 63) / 64 * 64), result.file_bytes};
    ck_assert_int_eq(pread(to, golden.bytes, golden.size, 0), (ssize_t)golden.size);
    close(from);
    close(to);
    is_the_trace(golden, 0);
}
END_TEST

static char *text_of(struct golden_bytes golden)
{
    char *text = strndup((const char *)golden.bytes, golden.size);
    ck_assert_ptr_nonnull(text);
    free(golden.bytes);
    return text;
}

START_TEST(settings_are_read)
{
    struct agent_settings settings;
    char *text = text_of(read_golden(GOLDEN_SETTINGS));
    ck_assert_int_eq(agent_settings_read(&settings, text), 0);
    ck_assert_str_eq(settings.token, "0123456789abcdef0123456789abcdef");
    ck_assert_str_eq(settings.socket, "/run/user/1000/qut-1/socket");
    ck_assert_str_eq(settings.cache, "/home/u/.cache/qut");
    ck_assert_str_eq(settings.preload, "a.so:b.so");
    ck_assert_uint_eq(settings.trigger, 1);
    ck_assert_int_eq(settings.signal_number, 2);
    ck_assert_uint_eq(settings.period_ns, 3);
    ck_assert_uint_eq(settings.sync_interval_ns, 4);
    ck_assert_uint_eq(settings.fault_period, 5);
    ck_assert_uint_eq(settings.segment_bytes, 6);
    ck_assert_uint_eq(settings.blocked_least_ns, UINT64_MAX);
    ck_assert_uint_eq(settings.sync, 255);
    ck_assert_uint_eq(settings.metric_mask, UINT32_MAX);
    ck_assert(settings.follow && !settings.keep_newest);
    ck_assert_uint_eq(settings.group_count, 2);
    ck_assert_str_eq(settings.groups[1].pattern, "a:b*");
    free(text);
}
END_TEST

// By number, as a reader in another language would.
START_TEST(packets_are_read)
{
    struct golden_bytes golden = read_golden(GOLDEN_PACKETS);
    static const struct {
        size_t offset;
        uint32_t value;
    } words[] = {
        {0, 1},     {4, 1},    {48, 11},  {52, 12},  {56, 2},   {60, 13},  {64, -14u}, {72, 1},
        {76, 2},    {120, 21}, {128, 22}, {136, 23}, {140, 4},  {4304, 1}, {4308, 3},  {4352, 31},
        {4416, 39}, {4480, 1}, {4484, 4}, {4528, 8}, {4532, 1}, {4536, 1}, {4544, 1},  {4548, 17},
    };
    ck_assert_uint_eq(golden.size, 72 + 4232 + 176 + 64 + 136);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint32_t value;
        memcpy(&value, golden.bytes + words[i].offset, sizeof value);
        ck_assert_msg(value == words[i].value, "0x%x at %zu", value, words[i].offset);
    }
    ck_assert_mem_eq(golden.bytes + 8, "0123456789abcdef0123456789abcdef\0\0\0\0\0\0\0\0", 40);
    ck_assert_mem_eq(golden.bytes + 144, "\xde\xad\xbe\xef", 5);
    ck_assert_str_eq((const char *)golden.bytes + 208, "/usr/lib/libgolden.so");
    ck_assert_str_eq((const char *)golden.bytes + 4552, "there is none");
    free(golden.bytes);
}
END_TEST

// ---- of another version

static int read_as(enum golden_file file, struct golden_bytes golden, struct base_error *error)
{
    struct qut_table table;
    struct qutc_bundle bundle;
    struct trace trace;
    if (file == GOLDEN_TABLE)
        return qutc_table_attach(&table, golden.bytes, golden.size, error);
    if (file == GOLDEN_BUNDLE)
        return qutc_bundle_open(&bundle, golden.bytes, golden.size, error);
    return trace_read_bytes(golden.bytes, golden.size, "golden", &trace, error);
}

static void expect_refusal(enum golden_file file, uint32_t version, const char *sentence)
{
    struct golden_bytes golden = read_golden(file);
    struct base_error error = {0};
    memcpy(golden.bytes + 8, &version, sizeof version);
    if (file == GOLDEN_TRACE_FILE) { // its header has a checksum of its own
        uint64_t checksum = qut_table_checksum(golden.bytes, offsetof(struct qut_trace_file_header, checksum));
        memcpy(golden.bytes + offsetof(struct qut_trace_file_header, checksum), &checksum, sizeof checksum);
    }
    ck_assert_int_eq(read_as(file, golden, &error), -1);
    ck_assert_msg(strncmp(error.detail, sentence, strlen(sentence)) == 0, "%s", error.detail);
    free(golden.bytes);
}

START_TEST(other_versions_are_refused)
{
    static const struct {
        uint32_t newest;
        const char *older, *newer;
    } formats[] = {
        [GOLDEN_TABLE] = {QUT_TABLE_VERSION, "made by an older QUT: make it again with qutc compile",
                          "made by a newer QUT: use that one, or make it again with qutc compile"},
        [GOLDEN_BUNDLE] = {QUT_BUNDLE_VERSION,
                           "made by an older QUT: unpack it with that one, or make its tables again with qutc compile",
                           "made by a newer QUT: unpack it with that one, or make its tables again with qutc compile"},
        [GOLDEN_SEGMENT] = {QUT_TRACE_VERSION, "made by an older QUT: read it with that one",
                            "made by a newer QUT: read it with that one"},
        [GOLDEN_TRACE_FILE] = {QUT_TRACE_FILE_VERSION, "made by an older QUT: read it with that one",
                               "made by a newer QUT: read it with that one"},
    };
    expect_refusal((enum golden_file)_i, 0, formats[_i].older);
    expect_refusal((enum golden_file)_i, formats[_i].newest + 1, formats[_i].newer);
    expect_refusal((enum golden_file)_i, UINT32_MAX, formats[_i].newer);
}
END_TEST

// Each sealed chunk gets a single record, which tells processor time by its tag: of the root, 0 units.
static void put_told(struct golden_bytes golden, uint8_t flags)
{
    static const uint8_t record[] = {QUT_TRACE_TAG_RUN | QUT_TRACE_TAG_TOLD, 0, 0, 0, 0}; // node, time, [cpu,] told
    const struct qut_trace_header *header = (const void *)golden.bytes;
    const uint64_t *words = (const void *)(golden.bytes + header->directory.offset_bytes);
    for (uint32_t i = 0; i < header->chunk_count; i++) {
        struct qut_trace_chunk *chunk =
            (void *)(golden.bytes + header->chunks.offset_bytes + (size_t)i * QUT_TRACE_CHUNK_BYTES);
        if ((words[i] & ((1u << QUT_TRACE_CHUNK_STATE_BITS) - 1)) != QUT_TRACE_CHUNK_SEALED)
            continue;
        memcpy(chunk + 1, record, sizeof record);
        chunk->flags = flags;
        chunk->used_bytes = flags & QUT_TRACE_HAS_CPU_TIME ? sizeof record : sizeof record - 1;
        chunk->record_count = 1;
        chunk->sample_count = 1;
        chunk->checksum = 0;
        chunk->checksum = qut_table_checksum(chunk, sizeof *chunk + chunk->used_bytes);
    }
}

// Not in version 1, and not where no sample has processor time.
START_TEST(told_where_it_cannot_be_is_damage)
{
    static const struct {
        uint32_t version;
        uint8_t flags;
        bool is_damage;
    } cases[] = {{QUT_TRACE_VERSION, QUT_TRACE_HAS_CPU_TIME, false},
                 {QUT_TRACE_VERSION_OLDEST, QUT_TRACE_HAS_CPU_TIME, true},
                 {QUT_TRACE_VERSION, 0, true}};
    struct golden_bytes golden = read_golden(GOLDEN_SEGMENT);
    struct trace trace;
    ((struct qut_trace_header *)(void *)golden.bytes)->version = cases[_i].version;
    put_told(golden, cases[_i].flags);
    ck_assert_int_eq(trace_read_bytes(golden.bytes, golden.size, "golden", &trace, NULL), 0);
    ck_assert_uint_eq(trace.damaged_chunks != 0, cases[_i].is_damage);
    ck_assert_uint_eq(trace.sample_count != 0, !cases[_i].is_damage);
    trace_free(&trace);
    free(golden.bytes);
}
END_TEST

// Behind a part that is read, one that is not is damage, and says why.
START_TEST(a_part_of_another_version_is_damage)
{
    struct golden_bytes golden = read_golden(GOLDEN_TRACE_FILE);
    struct golden_bytes both = {aligned_alloc(64, (2 * golden.size + 63) / 64 * 64), 2 * golden.size};
    ck_assert_ptr_nonnull(both.bytes);
    memcpy(both.bytes, golden.bytes, golden.size);
    struct qut_trace_file_header header;
    memcpy(&header, golden.bytes, sizeof header);
    header.version = QUT_TRACE_FILE_VERSION + 1;
    header.checksum = qut_table_checksum(&header, offsetof(struct qut_trace_file_header, checksum));
    memcpy(golden.bytes, &header, sizeof header);
    memcpy(both.bytes + golden.size, golden.bytes, golden.size);
    struct trace trace;
    ck_assert_int_eq(trace_read_bytes(both.bytes, both.size, "golden", &trace, NULL), 0);
    ck_assert(!trace.is_complete);
    ck_assert_uint_eq(trace.damage_count, 1);
    ck_assert_ptr_nonnull(strstr(trace.damages[0], "made by a newer QUT: read it with that one"));
    trace_free(&trace);
    free(both.bytes);
    free(golden.bytes);
}
END_TEST

START_TEST(settings_of_another_version_say_where_the_recorder_is)
{
    struct agent_settings settings;
    char *text = text_of(read_golden(GOLDEN_SETTINGS));
    ck_assert_int_eq(strncmp(text, "v=1;", 4), 0);
    static_assert(AGENT_VERSION == 1, "as the text says");
    for (const char *version = "02"; *version; version++) {
        text[2] = *version;
        ck_assert_int_eq(agent_settings_read(&settings, text), -EPROTONOSUPPORT);
        ck_assert_str_eq(settings.token, "0123456789abcdef0123456789abcdef");
        ck_assert_str_eq(settings.socket, "/run/user/1000/qut-1/socket");
        ck_assert_uint_eq(settings.period_ns, 0);
    }
    free(text);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    directory = dirname(argv[1]);
    if (access("/dev/shm", W_OK) != 0) {
        puts("SKIP: /dev/shm cannot be written to");
        return 77;
    }
    Suite *suite = suite_create("golden");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, writers_write_the_same, 0, GOLDEN_FILE_COUNT);
    tcase_add_loop_test(all, a_table_is_read, 0, 2);
    tcase_add_loop_test(all, a_bundle_is_read, 0, 2);
    tcase_add_loop_test(all, a_trace_is_read, 0, sizeof golden_traces / sizeof *golden_traces);
    tcase_add_test(all, an_older_segment_is_collected);
    tcase_add_test(all, settings_are_read);
    tcase_add_test(all, packets_are_read);
    tcase_add_loop_test(all, other_versions_are_refused, GOLDEN_TABLE, GOLDEN_TRACE_FILE + 1);
    tcase_add_test(all, a_part_of_another_version_is_damage);
    tcase_add_loop_test(all, told_where_it_cannot_be_is_damage, 0, 3);
    tcase_add_test(all, settings_of_another_version_say_where_the_recorder_is);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
