// SPDX-License-Identifier: Apache-2.0
// Names of methods by the dex pc: every version of dex files, compact ones, containers; and files that lie.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/dex_writer.h"
#include "tests/support/run_suite.h"
#include "tracer/dex/method_index.h"

static const struct dex_method arrays[] = {
    {.name = "<clinit>", .units = 3},
    {.name = "binarySearch", .units = 40},
    {.name = "nativeSort"},
    {.name = "empty", .units = 1},
    {.name = "compare", .units = 70000, .is_virtual = true}, // more than a compact code item counts itself
    {.name = "abstractOne", .is_virtual = true},
    {.name = "equals", .units = 2100, .is_virtual = true},
};
static const struct dex_method worker[] = {
    {.name = "run", .units = 9, .is_virtual = true},
    {.name = "run2", .units = 9, .same_code = true, .is_virtual = true},
    {.name = "lambda$0", .units = 200, .is_virtual = true},
};
static const struct dex_class classes[] = {
    {"Ljava/util/Arrays;", arrays, sizeof arrays / sizeof *arrays},
    {"Ljava/util/concurrent/ThreadPoolExecutor$Worker;", worker, sizeof worker / sizeof *worker},
    {"LEmpty;", NULL, 0},
};
static const struct dex_method snap[] = {{.name = "hot", .units = 12}, {.name = "osr", .units = 31}};
static const struct dex_class others[] = {{"LSnap;", snap, 2}};

static struct base_bytes bytes_of(const struct build_buffer *file)
{
    return (struct base_bytes){file->data, file->size};
}

static struct dex_index *index_of(struct base_bytes file, uint64_t offset, struct base_error *error)
{
    struct dex_list list;
    *error = (struct base_error){0};
    if (dex_list_at(&list, file, offset, error) != 0)
        return NULL;
    struct dex_index *index = dex_index_make(file, &list, error);
    dex_list_free(&list);
    return index;
}

// NULL: there is none.
static bool has_name(const struct dex_index *index, uint64_t offset, const char *name)
{
    struct dex_found found;
    if (!dex_index_find(index, offset, &found))
        return name == NULL;
    char *got = dex_found_name(&found);
    bool is_right = name && got && strcmp(got, name) == 0 && offset >= found.code.start && offset < found.code.end;
    free(got);
    return is_right;
}

static void expect_name(const struct dex_index *index, uint64_t offset, const char *name)
{
    ck_assert_msg(has_name(index, offset, name), "0x%jx: not %s", (uintmax_t)offset, name ? name : "nothing");
}

// At every dex pc there is the name, and none right before and behind the code.
static void expect_truth(const struct dex_index *index, const struct dex_truth *truth)
{
    ck_assert_uint_gt(truth->count, 0);
    for (size_t i = 0; i < truth->count; i++) {
        uint64_t at = truth->code[i].start;
        while (at < truth->code[i].end && has_name(index, at, truth->code[i].name)) // an assertion each takes minutes
            at += 2;
        ck_assert_msg(at == truth->code[i].end, "0x%jx: not %s", (uintmax_t)at, truth->code[i].name);
        expect_name(index, truth->code[i].start - 1, NULL);
        expect_name(index, truth->code[i].end, NULL);
    }
}

START_TEST(every_version)
{
    const unsigned versions[] = {35, 37, 38, 39, 40, 41, 0};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        // Not at the start: offsets count from the header.
        struct build_buffer file = {0};
        build_add(&file, NULL, 52);
        const struct dex_spec spec = {versions[i], classes, 3};
        struct dex_truth truth = {0};
        struct base_error error;
        uint64_t offset;
        dex_add(&file, &spec, 1, 0, &offset, &truth);
        build_add(&file, NULL, 100);
        struct dex_index *index = index_of(bytes_of(&file), offset, &error);
        ck_assert_msg(index != NULL, "%u: %s", versions[i], error.detail);
        ck_assert_uint_eq(truth.count, 7);
        ck_assert_uint_eq(dex_index_count(index), 8);
        expect_truth(index, &truth);
        expect_name(index, 0, NULL);
        expect_name(index, UINT64_MAX, NULL);
        dex_index_free(index);
        dex_truth_free(&truth);
        free(file.data);
    }
}
END_TEST

START_TEST(two_in_one)
{
    for (int compact = 0; compact < 2; compact++) {
        struct build_buffer file = {0};
        unsigned version = compact ? 0 : 41;
        const struct dex_spec specs[] = {{version, classes, 3}, {version, others, 1}};
        struct dex_truth truth = {0};
        struct base_error error;
        uint64_t offsets[2];
        build_add(&file, NULL, 8);
        dex_add(&file, specs, 2, 0, offsets, &truth);
        struct base_bytes bytes = bytes_of(&file);
        struct dex_list list;
        ck_assert_int_eq(dex_list_at(&list, bytes, offsets[0], &error), 0);
        // That two compact files belong together, only the file around them knows.
        ck_assert_uint_eq(list.count, compact ? 1 : 2);
        dex_list_free(&list);
        const struct dex_list both = {.items = offsets, .count = 2};
        struct dex_index *index = dex_index_make(bytes, &both, &error);
        ck_assert_ptr_nonnull(index);
        ck_assert_uint_eq(truth.count, 9);
        expect_truth(index, &truth);
        dex_index_free(index);
        dex_truth_free(&truth);
        free(file.data);
    }
}
END_TEST

START_TEST(extents)
{
    const struct dex_spec specs[] = {{41, classes, 3}, {41, others, 1}};
    const struct dex_spec compact = {0, others, 1}, plain = {39, others, 1};
    struct build_buffer file = {0};
    uint64_t offsets[2], offset, before;
    dex_add(&file, specs, 2, 0, offsets, NULL);
    ck_assert_uint_eq(dex_extent((struct base_bytes){file.data + offsets[1], DEX_CONTAINER_HEADER_BYTES}, &before),
                      file.size);
    ck_assert_uint_eq(before, offsets[1]);
    const struct dex_spec *alone[] = {&compact, &plain};
    for (size_t i = 0; i < 2; i++) {
        file.size = 0;
        dex_add(&file, alone[i], 1, 0, &offset, NULL);
        ck_assert_uint_eq(dex_extent((struct base_bytes){file.data, DEX_CONTAINER_HEADER_BYTES}, &before), file.size);
        ck_assert_uint_eq(before, 0);
    }
    file.data[0] = 'x';
    ck_assert_uint_eq(dex_extent(bytes_of(&file), &before), 0);
    free(file.data);
}
END_TEST

static void expect_error(const struct build_buffer *file, enum base_reason reason, const char *detail)
{
    struct base_error error;
    struct dex_index *index = index_of(bytes_of(file), 0, &error);
    ck_assert_ptr_null(index);
    ck_assert_msg(error.reason == reason && strstr(error.detail, detail), "%s: %s", base_reason_name(error.reason),
                  error.detail);
}

static struct build_buffer one_file(unsigned version)
{
    struct build_buffer file = {0};
    uint64_t offset;
    const struct dex_spec spec = {version, others, 1};
    dex_add(&file, &spec, 1, 0, &offset, NULL);
    return file;
}

static void put(struct build_buffer *file, size_t at, uint32_t value)
{
    memcpy(file->data + at, &value, sizeof value);
}

static uint32_t get(const struct build_buffer *file, size_t at)
{
    uint32_t value;
    memcpy(&value, file->data + at, sizeof value);
    return value;
}

START_TEST(refusals)
{
    static const char *magics[] = {"dex\n034", "dex\n036", "dex\n042", "dex 035", "cdex002", "dey\n036", "dex\n04:"};
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        struct build_buffer file = one_file(39);
        memcpy(file.data, magics[i], 8);
        expect_error(&file, BASE_ERR_UNSUPPORTED, "neither dex 035");
        free(file.data);
    }
    const struct {
        unsigned version;
        size_t at;
        uint32_t value;
        enum base_reason reason;
        const char *detail;
    } cases[] = {
        {39, 40, 0x78563412, BASE_ERR_MALFORMED, "endian"},
        {39, 36, 0x6f, BASE_ERR_MALFORMED, "header"},
        {41, 36, 0x77, BASE_ERR_MALFORMED, "header"},
        {0, 36, 0x87, BASE_ERR_MALFORMED, "header"},
        {39, 32, 0x7fffffff, BASE_ERR_TRUNCATED, "are there"},
        {39, 32, 0x60, BASE_ERR_MALFORMED, "header"},
        {39, 56, 0xffffffff, BASE_ERR_TRUNCATED, "table"},
        {39, 60, 0xfffffffc, BASE_ERR_TRUNCATED, "table"},
        {39, 64, 0x40000001, BASE_ERR_TRUNCATED, "table"},
        {39, 88, 0x20000001, BASE_ERR_TRUNCATED, "table"},
        {39, 96, 0x08000001, BASE_ERR_TRUNCATED, "table"},
        {39, 88, 0, BASE_ERR_MALFORMED, "method 0 of 0"},
        {41, 112, 0xffffffff, BASE_ERR_MALFORMED, "container"},
        {41, 116, 4, BASE_ERR_MALFORMED, "container"},
        {0, 108, 0xffffffff, BASE_ERR_TRUNCATED, "shared data"},
        {0, 104, 0xffffffff, BASE_ERR_TRUNCATED, "shared data"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build_buffer file = one_file(cases[i].version);
        put(&file, cases[i].at, cases[i].value);
        expect_error(&file, cases[i].reason, cases[i].detail);
        free(file.data);
    }
}
END_TEST

// Many classes with the same data would take time in proportion to their product.
START_TEST(shared_class_data)
{
    enum { CLASSES = 2000, METHODS = 2000 };
    static struct dex_method methods[METHODS];
    static struct dex_class many[CLASSES];
    for (size_t i = 0; i < METHODS; i++)
        methods[i] = (struct dex_method){.name = "m", .units = 1};
    for (size_t i = 0; i < CLASSES; i++)
        many[i] = (struct dex_class){"LA;", methods, i ? 0 : METHODS};
    struct build_buffer file = {0};
    uint64_t offset;
    const struct dex_spec spec = {39, many, CLASSES};
    dex_add(&file, &spec, 1, 0, &offset, NULL);
    uint32_t table = get(&file, 100), data = get(&file, table + 24);
    for (size_t i = 0; i < CLASSES; i++)
        put(&file, table + 32 * i + 24, data);
    expect_error(&file, BASE_ERR_LIMIT, "several classes");
    free(file.data);
}
END_TEST

// Code that begins inside other code has two names: neither is given there.
START_TEST(overlapping_code)
{
    struct build_buffer file = {0};
    struct dex_truth truth = {0};
    struct base_error error;
    uint64_t offset;
    const struct dex_spec spec = {39, others, 1};
    dex_add(&file, &spec, 1, 0, &offset, &truth);
    uint64_t hot = truth.code[0].start, osr = truth.code[1].start;
    put(&file, hot - 4, (uint32_t)(osr - hot) / 2 + 5); // the number of its instructions
    struct dex_index *index = index_of(bytes_of(&file), 0, &error);
    ck_assert_ptr_nonnull(index);
    expect_name(index, hot, "Snap.hot");
    expect_name(index, osr - 2, "Snap.hot");
    expect_name(index, osr, NULL);
    expect_name(index, osr + 8, NULL);
    expect_name(index, osr + 10, "Snap.osr");
    dex_index_free(index);
    dex_truth_free(&truth);
    free(file.data);
}
END_TEST

// Whatever the file holds, nothing is read outside it, and names are bounded.
static void ask_everywhere(struct base_bytes file)
{
    struct base_error error;
    struct dex_index *index = index_of(file, 0, &error);
    bool is_right = index || error.reason != BASE_OK;
    for (uint64_t at = 0; index && at < file.size + 8; at += 2) {
        struct dex_found found;
        char *name = dex_index_find(index, at, &found) ? dex_found_name(&found) : NULL;
        is_right &= !name || strlen(name) < file.size * 2 + 16;
        free(name);
    }
    if (!is_right)
        ck_abort_msg("no error, or a name without end");
    dex_index_free(index);
}

START_TEST(truncated)
{
    const unsigned versions[] = {39, 41, 0};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct build_buffer file = one_file(versions[i]);
        for (size_t size = 0; size < file.size; size++) {
            uint8_t *exact = malloc(size + !size); // so that a sanitizer sees the end
            memcpy(exact, file.data, size);
            struct base_error error;
            struct dex_index *index = index_of((struct base_bytes){exact, size}, 0, &error);
            ck_assert_msg(index == NULL, "version %u, %zu bytes", versions[i], size);
            ck_assert(error.reason == BASE_ERR_TRUNCATED || error.reason == BASE_ERR_UNSUPPORTED ||
                      error.reason == BASE_ERR_MALFORMED);
            free(exact);
        }
        free(file.data);
    }
}
END_TEST

START_TEST(spoiled)
{
    const unsigned versions[] = {39, 41, 0};
    uint32_t random = 12345;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct build_buffer file = one_file(versions[i]);
        uint8_t *copy = malloc(file.size);
        for (int round = 0; round < 10000; round++) {
            memcpy(copy, file.data, file.size);
            for (int k = 0; k <= round % 4; k++) {
                random = random * 1664525 + 1013904223;
                uint32_t at = (random >> 8) % (uint32_t)file.size;
                copy[at] = round & 1 ? (uint8_t)(random >> 3) : (uint8_t)(copy[at] ^ 1u << (random & 7));
            }
            ask_everywhere((struct base_bytes){copy, file.size});
        }
        free(copy);
        free(file.data);
    }
}
END_TEST

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Eight times the methods take about eight times as long, not 64 times; the larger is one of 10 MB.
START_TEST(linear)
{
    enum { METHODS = 100000 };
    static struct dex_method methods[METHODS];
    for (size_t i = 0; i < METHODS; i++)
        methods[i] = (struct dex_method){.name = "aMethodOfSomeLength", .units = 16 + i % 16};
    struct build_buffer files[2] = {{0}, {0}};
    double best[2] = {1e9, 1e9};
    for (size_t i = 0; i < 2; i++) {
        const struct dex_class one = {"LBig;", methods, i ? METHODS : METHODS / 8};
        const struct dex_spec spec = {39, &one, 1};
        uint64_t offset;
        dex_add(&files[i], &spec, 1, 0, &offset, NULL);
    }
    for (int round = 0; round < 10; round++) {
        size_t which = round & 1;
        struct base_error error;
        double start = seconds();
        struct dex_index *index = index_of(bytes_of(&files[which]), 0, &error);
        double took = seconds() - start;
        best[which] = took < best[which] ? took : best[which];
        ck_assert_ptr_nonnull(index);
        ck_assert_uint_eq(dex_index_count(index), which ? METHODS : METHODS / 8);
        dex_index_free(index);
    }
    printf("%d methods, %zu bytes: %.1f ms; an eighth: %.1f ms\n", METHODS, files[1].size, best[1] * 1e3,
           best[0] * 1e3);
    ck_assert_uint_gt(files[1].size, 9000000);
    ck_assert_msg(best[1] < 24 * best[0], "%f s, an eighth took %f s", best[1], best[0]);
    free(files[0].data);
    free(files[1].data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dex");
    TCase *tests = tcase_create("dex");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, every_version);
    tcase_add_test(tests, two_in_one);
    tcase_add_test(tests, extents);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, shared_class_data);
    tcase_add_test(tests, overlapping_code);
    tcase_add_test(tests, truncated);
    tcase_add_test(tests, spoiled);
    tcase_add_test(tests, linear);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
