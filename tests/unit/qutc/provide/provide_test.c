// SPDX-License-Identifier: Apache-2.0
// The compiler as libqut calls it: which file or memory is taken, what goes into the cache.
#include <check.h>
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>

#include <qutc/provide.h>

#include "formats/qut_table_name_inline.h"
#include "libqut/runtime/table_store.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tests/unit/qutc/provide/mapped.h"

static const char *libc_path; // of this process
static struct base_bytes libc_file;
static uint8_t libc_id[INPUT_IDENTITY_MAX];
static uint32_t libc_id_size;
static struct base_bytes libc_table; // as the command line would make it
static char *directory;

static void set_up(void)
{
    Dl_info info;
    struct input_image *image;
    ck_assert(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
    libc_path = info.dli_fname;
    uint8_t *bytes, *table;
    size_t size;
    ck_assert_int_eq(qutc_read_file(libc_path, SIZE_MAX, &bytes, &size, NULL), 0);
    libc_file = (struct base_bytes){bytes, size};
    ck_assert_int_eq(input_image_open(libc_path, NULL, 0, 0, NULL, &image, NULL), 0);
    ck_assert_int_eq(image->identity_kind, INPUT_BUILD_ID);
    libc_id_size = image->identity_size;
    memcpy(libc_id, image->identity, libc_id_size);
    const struct qutc_compile_options options = {.fill = CODE_FILL_IF_MUCH};
    ck_assert_int_eq(qutc_compile(image, &options, &table, &size, NULL, NULL), 0);
    libc_table = (struct base_bytes){table, size};
    input_image_close(image);
    directory = build_directory();
}

static void tear_down(void)
{
    free((void *)(uintptr_t)libc_file.data);
    free((void *)(uintptr_t)libc_table.data);
    build_remove(directory);
}

struct made {
    int result;
    void *table;
    size_t size;
    char reason[256];
};

static struct made make(const struct qutc_provide_options *options, const struct qut_compile_request *request)
{
    struct made made = {0};
    made.result = qutc_compile_for_qut((void *)(uintptr_t)options, request, &made.table, &made.size, made.reason,
                                       sizeof made.reason);
    ck_assert_int_eq(made.result == 0, made.table != NULL);
    ck_assert_int_eq(made.result == 0, made.reason[0] == '\0');
    return made;
}

static void is_libc(struct made made)
{
    ck_assert_msg(made.result == 0, "%s", made.reason);
    ck_assert_uint_eq(made.size, libc_table.size);
    ck_assert_mem_eq(made.table, libc_table.data, made.size);
    free(made.table);
}

static void fails(struct made made, const char *reason)
{
    ck_assert_int_eq(made.result, -1);
    ck_assert_msg(strstr(made.reason, reason) != NULL, "\"%s\" says nothing of \"%s\"", made.reason, reason);
}

static struct qut_compile_request of_libc(const char *path)
{
    return (struct qut_compile_request){.path = path, .build_id = libc_id, .build_id_size = libc_id_size};
}

START_TEST(the_file_with_the_build_id_is_taken)
{
    struct qut_compile_request request = of_libc(libc_path);
    is_libc(make(NULL, &request));
    request.memory = "no ELF file";
    request.memory_size = 11;
    is_libc(make(NULL, &request));
}
END_TEST

START_TEST(a_file_with_another_build_id_is_not)
{
    struct qut_compile_request request = of_libc(libc_path);
    libc_id[3] ^= 1;
    fails(make(NULL, &request), "build-id");
    libc_id[3] ^= 1;
    request.build_id_size--;
    fails(make(NULL, &request), "build-id");
    request.build_id_size = 0;
    fails(make(NULL, &request), "build-id");
}
END_TEST

START_TEST(memory_is_taken_where_the_file_is_not_the_one)
{
    struct base_bytes memory = mapped_image(libc_file, MAPPED_CUT);
    char *other = build_file(directory, "other.so", "\177ELF", 4);
    const char *const paths[] = {"", NULL, "/nonexistent", other, "/dev/zero"};
    struct qut_compile_request request = of_libc(NULL);
    request.memory = memory.data;
    request.memory_size = memory.size;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        request.path = paths[i];
        struct made made = make(NULL, &request);
        ck_assert_msg(made.result == 0, "%s: %s", paths[i], made.reason);
        free(made.table);
    }
    libc_id[3] ^= 1; // the memory is another module's as well
    fails(make(NULL, &request), "build-id");
    free(other);
    free((void *)(uintptr_t)memory.data);
}
END_TEST

START_TEST(nothing_to_compile_is_said)
{
    struct qut_compile_request request = of_libc("");
    fails(make(NULL, &request), "neither a file nor memory");
    void *table = &request;
    size_t size = 1;
    ck_assert_int_eq(qutc_compile_for_qut(NULL, &request, &table, &size, NULL, 0), -1);
    ck_assert_ptr_null(table);
    ck_assert_uint_eq(size, 0);
    request.path = "/nonexistent";
    fails(make(NULL, &request), "No such file");
}
END_TEST

// Somebody who has tables.
struct taker {
    unsigned asked;
    uint32_t flags;        // of the last question
    struct base_bytes has; // none: "not here"
};

static int take(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                char *reason, size_t reason_size)
{
    struct taker *taker = context;
    taker->asked++;
    taker->flags = request->flags;
    ck_assert_uint_eq(request->build_id_size, libc_id_size);
    if (!taker->has.size) {
        snprintf(reason, reason_size, "not here");
        return -1;
    }
    *table = malloc(taker->has.size);
    memcpy(*table, taker->has.data, taker->has.size);
    *table_size = taker->has.size;
    return 0;
}

START_TEST(others_are_asked_for_what_is_not_at_hand)
{
    struct taker taker = {.has = libc_table};
    struct qutc_provide_options options = {.size = sizeof options, .take = take, .take_context = &taker};
    struct qut_compile_request request = of_libc(libc_path);
    is_libc(make(&options, &request));
    ck_assert_uint_eq(taker.asked, 0);
    request.path = "/nonexistent";
    is_libc(make(&options, &request));
    ck_assert_uint_eq(taker.asked, 1);
    // Before memory, which has less.
    struct base_bytes memory = mapped_image(libc_file, MAPPED_CUT);
    request.memory = memory.data;
    request.memory_size = memory.size;
    is_libc(make(&options, &request));
    ck_assert_uint_eq(taker.asked, 2);
    ck_assert_uint_eq(taker.flags, 0);
    // Callers of an older version said nothing of it.
    options.size = offsetof(struct qutc_provide_options, take);
    struct made made = make(&options, &request);
    ck_assert_int_eq(made.result, 0);
    ck_assert_uint_eq(taker.asked, 2);
    free(made.table);
    free((void *)(uintptr_t)memory.data);
}
END_TEST

START_TEST(what_others_give_is_proven)
{
    uint8_t *bytes = malloc(libc_table.size);
    memcpy(bytes, libc_table.data, libc_table.size);
    struct taker taker = {.has = {bytes, libc_table.size}};
    const struct qutc_provide_options options = {.size = sizeof options, .take = take, .take_context = &taker};
    struct qut_compile_request request = of_libc("/nonexistent");
    bytes[libc_table.size / 2] ^= 1;
    fails(make(&options, &request), "No such file");
    fails(make(&options, &request), "; ");
    bytes[libc_table.size / 2] ^= 1;
    libc_id[3] ^= 1;
    fails(make(&options, &request), "it is of another file");
    libc_id[3] ^= 1;
    taker.has.size = 100;
    fails(make(&options, &request), "; ");
    taker.has.size = 0;
    fails(make(&options, &request), "not here; ");
    request.path = "";
    fails(make(&options, &request), "not here");
    // Memory makes up for it. What never had a file is in memory, whole, unless it is another process's.
    const unsigned asked = taker.asked;
    struct base_bytes memory = mapped_image(libc_file, MAPPED_CUT);
    request.memory = memory.data;
    request.memory_size = memory.size;
    struct made made = make(&options, &request);
    ck_assert_int_eq(made.result, 0);
    ck_assert_uint_eq(taker.asked, asked);
    free(made.table);
    request.flags = QUT_COMPILE_OF_ANOTHER;
    made = make(&options, &request);
    ck_assert_int_eq(made.result, 0);
    ck_assert_uint_eq(taker.asked, asked + 1);
    free(made.table);
    free((void *)(uintptr_t)memory.data);
    free(bytes);
}
END_TEST

START_TEST(others_are_asked_for_a_file_that_says_nothing)
{
    static const uint8_t code[16] = {0xff, 0xe0}; // jmp *%rax
    uint8_t note[16 + INPUT_IDENTITY_MAX] = {4, 0, 0, 0, (uint8_t)libc_id_size, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U'};
    memcpy(note + 16, libc_id, libc_id_size);
    const struct build_elf spec = {
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16},
                     {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x2000, note, 16 + libc_id_size, 4}}};
    struct build_buffer file = build_elf(&spec);
    char *path = build_file(directory, "silent.so", file.data, file.size);
    struct taker taker = {0};
    const struct qutc_provide_options options = {.size = sizeof options, .take = take, .take_context = &taker};
    struct qut_compile_request request = of_libc(path);
    fails(make(&options, &request), "not here; no unwind information");
    ck_assert_uint_eq(taker.asked, 1);
    ck_assert_uint_eq(taker.flags, QUT_COMPILE_FILE_IS_HERE);
    taker.has = libc_table;
    is_libc(make(&options, &request));
    ck_assert_uint_eq(taker.asked, 2);
    free(file.data);
    free(path);
}
END_TEST

START_TEST(without_build_id_memory_comes_first)
{
    // Two versions of one library, neither with a build-id.
    static const uint8_t code[64] = {0xc3};
    uint8_t frames[] = {
        20, 0, 0, 0, 0,  0, 0, 0, 1, 'z',  'R', 0, 1,  0x78, 16, 1, 3, 0xc, 7, 8, 0x90, 1, 0, 0, // CIE: cfa = sp + 8
        20, 0, 0, 0, 28, 0, 0, 0, 0, 0x10, 0,   0, 64, 0,    0,  0, 0, 0,   0, 0, 0,    0, 0, 0, // [0x1000, 0x1040)
    };
    const struct build_elf spec = {
        .sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16},
                     {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x3000, frames, sizeof frames, 8}}};
    struct build_buffer file = build_elf(&spec);
    frames[19] = 16; // cfa = sp + 16
    struct build_buffer memory = build_elf(&spec);
    char *path = build_file(directory, "anonymous.so", file.data, file.size);
    struct qut_compile_request request = {.path = path, .memory = memory.data, .memory_size = memory.size};
    struct qutc_provide_options options = {.size = sizeof options, .cache_directory = directory};
    struct qut_table table;
    struct qut_rule rule;
    for (int with_memory = 1; with_memory >= 0; with_memory--) {
        struct made made = make(&options, &request);
        ck_assert_msg(made.result == 0, "%s", made.reason);
        ck_assert_int_eq(runtime_table_attach(&table, made.table, made.size, NULL), QUT_TABLE_OK);
        ck_assert(!(table.header->flags & QUT_TABLE_BUILD_ID));
        runtime_table_rule(&table, 0x1010, &rule);
        ck_assert_int_eq(rule.cfa.offset_bytes, with_memory ? 16 : 8);
        free(made.table);
        request.memory = NULL;
    }
    // A file that has none cannot be the one that is wanted by build-id.
    request.build_id = libc_id;
    request.build_id_size = libc_id_size;
    fails(make(NULL, &request), "build-id");
    free(file.data);
    free(memory.data);
    free(path);
}
END_TEST

START_TEST(an_image_inside_a_file)
{
    enum { BEFORE = 4096, AFTER = 1000 };
    uint8_t *archive = calloc(1, BEFORE + libc_file.size + AFTER);
    memcpy(archive + BEFORE, libc_file.data, libc_file.size);
    char *path = build_file(directory, "an.apk", archive, BEFORE + libc_file.size + AFTER);
    struct qut_compile_request request = of_libc(path);
    request.offset_bytes = BEFORE;
    is_libc(make(NULL, &request));
    request.offset_bytes = 0;
    fails(make(NULL, &request), "not an ELF file");
    request.offset_bytes = UINT64_MAX;
    fails(make(NULL, &request), "truncated");
    free(archive);
    free(path);
}
END_TEST

START_TEST(the_next_process_finds_it)
{
    char cache[512];
    snprintf(cache, sizeof cache, "%s/deep/cache", directory);
    struct qutc_provide_options options = {.size = sizeof options, .cache_directory = cache};
    struct qut_compile_request request = of_libc(libc_path);
    struct runtime_stored_table stored;
    const struct qut_table_header *header = (const void *)libc_table.data;
    const struct arch *arch = arch_by_id((enum qut_arch_id)header->arch);
    ck_assert_int_eq(runtime_table_store_read(cache, arch, QUT_TABLE_BUILD_ID, libc_id, libc_id_size, &stored), -1);
    is_libc(make(&options, &request));
    ck_assert_int_eq(runtime_table_store_read(cache, arch, QUT_TABLE_BUILD_ID, libc_id, libc_id_size, &stored), 0);
    ck_assert_uint_eq(stored.size, libc_table.size);
    ck_assert_mem_eq(stored.bytes, libc_table.data, stored.size);
    runtime_stored_table_free(&stored);
    is_libc(make(&options, &request)); // over the one that is there
    build_remove(strdup(cache));
}
END_TEST

START_TEST(a_cache_that_cannot_be_written_is_no_failure)
{
    char *file = build_file(directory, "file", "", 0);
    struct qutc_provide_options options = {.size = sizeof options, .cache_directory = file};
    struct qut_compile_request request = of_libc(libc_path);
    is_libc(make(&options, &request));
    options.cache_directory = "/proc/no/such";
    is_libc(make(&options, &request));
    free(file);
}
END_TEST

START_TEST(options_of_older_callers)
{
    struct qutc_provide_options options = {
        .size = offsetof(struct qutc_provide_options, cache_directory), .cache_directory = (char *)1, .small = true};
    struct qut_compile_request request = of_libc(libc_path);
    is_libc(make(&options, &request)); // the pointer lies beyond what the caller knows
    options.size = sizeof options;
    options.cache_directory = NULL;
    struct made made = make(&options, &request);
    ck_assert_int_eq(made.result, 0);
    ck_assert_uint_lt(made.size, libc_table.size);
    free(made.table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("provide");
    TCase *tests = tcase_create("provide");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_file_with_the_build_id_is_taken);
    tcase_add_test(tests, a_file_with_another_build_id_is_not);
    tcase_add_test(tests, memory_is_taken_where_the_file_is_not_the_one);
    tcase_add_test(tests, nothing_to_compile_is_said);
    tcase_add_test(tests, others_are_asked_for_what_is_not_at_hand);
    tcase_add_test(tests, what_others_give_is_proven);
    tcase_add_test(tests, others_are_asked_for_a_file_that_says_nothing);
    tcase_add_test(tests, without_build_id_memory_comes_first);
    tcase_add_test(tests, an_image_inside_a_file);
    tcase_add_test(tests, the_next_process_finds_it);
    tcase_add_test(tests, a_cache_that_cannot_be_written_is_no_failure);
    tcase_add_test(tests, options_of_older_callers);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
