// SPDX-License-Identifier: Apache-2.0
// Where exports go: numbers and strings as they are to be, and files that are whole or not there.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/utf8_inline.h"
#include "tests/support/run_suite.h"
#include "tracer/export/clean.h"
#include "tracer/export/sink/sink.h"

static char folder[] = "/tmp/qut-sink-XXXXXX";
static char path[128];

static void make_folder(void)
{
    strcpy(folder, "/tmp/qut-sink-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out", folder);
}

// Nothing else than `path` is left: no half file beside it.
static void remove_folder(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void expect_file(const char *wanted)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    ck_assert_str_eq(text, wanted);
}

static void put_file(const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void expect_memory(struct sink *sink, const char *wanted)
{
    size_t size;
    const uint8_t *bytes = sink_memory(sink, &size);
    ck_assert_uint_eq(size, strlen(wanted));
    ck_assert_mem_eq(bytes, wanted, size);
    ck_assert_int_eq(sink_close(sink, true, NULL), 0);
}

START_TEST(numbers)
{
    struct sink *sink = sink_in_memory();
    sink_number(sink, 0);
    sink_text(sink, " ");
    sink_number(sink, UINT64_MAX);
    sink_text(sink, " ");
    sink_fixed(sink, 1234567, 3);
    sink_text(sink, " ");
    sink_fixed(sink, -5, 3);
    sink_text(sink, " ");
    sink_fixed(sink, INT64_MIN, 0);
    sink_text(sink, " ");
    sink_fixed(sink, INT64_MIN, 18);
    sink_text(sink, " ");
    sink_fixed(sink, 0, 6);
    expect_memory(sink, "0 18446744073709551615 1234.567 -0.005 -9223372036854775808 -9.223372036854775808 0.000000");
}
END_TEST

START_TEST(json_strings)
{
    struct sink *sink = sink_in_memory();
    sink_json_string(sink, "");
    sink_json_string(sink, "a\"\\\n</script>\x7f\x01");
    sink_json_string(sink, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"); // two, three and four bytes
    expect_memory(sink, "\"\"\"a\\\"\\\\\\u000a\\u003c/script>\\u007f\\u0001\""
                        "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}
END_TEST

#define R UTF8_REPLACEMENT

START_TEST(no_utf8)
{
    static const char *const cases[][2] = {
        {"\x80", R},                             // begins in the middle
        {"\xc0\xaf", R R},                       // '/' in two bytes
        {"\xe0\x80\xaf", R R R},                 // in three
        {"\xf0\x80\x80\xaf", R R R R},           // in four
        {"\xed\xa0\x80", R R R},                 // a surrogate
        {"\xf4\x90\x80\x80", R R R R},           // behind the last character
        {"\xff", R},                             //
        {"\xe2\x82", R R},                       // cut off
        {"\xf0\x9f\x98", R R R},                 //
        {"x\xc3", "x" R},                        //
        {"\xed\x9f\xbf", "\xed\x9f\xbf"},        // the last before the surrogates
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"} // the last of all
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[64];
        struct sink *sink = sink_in_memory();
        sink_json_string(sink, cases[i][0]);
        snprintf(wanted, sizeof wanted, "\"%s\"", cases[i][1]);
        expect_memory(sink, wanted);
    }
}
END_TEST

START_TEST(clean_names)
{
    struct sink *sink = sink_in_memory();
    export_clean_text(sink, "a;b\nc\xff", ';', ':');
    export_clean_text(sink, "", ';', ':');
    export_clean_text(sink, "x y\tz", ' ', '_');
    export_clean_text(sink, "\xc3\xa4", ' ', '_');
    expect_memory(sink, "a:b c" R "[no name]x_y_z\xc3\xa4");
}
END_TEST

START_TEST(large)
{
    // More than any buffer, in pieces that do not fit into them.
    struct sink *file = sink_file(path, NULL), *memory = sink_in_memory();
    char piece[70001];
    memset(piece, 'x', sizeof piece);
    for (unsigned i = 0; i < 20; i++) {
        sink_bytes(file, piece, sizeof piece);
        sink_bytes(memory, piece, sizeof piece);
    }
    size_t size;
    sink_memory(memory, &size);
    ck_assert_uint_eq(size, 20 * sizeof piece);
    sink_close(memory, true, NULL);
    ck_assert_int_eq(sink_close(file, true, NULL), 0);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 20 * sizeof piece);
}
END_TEST

START_TEST(replaces_when_whole)
{
    put_file("old");
    struct sink *sink = sink_file(path, NULL);
    sink_text(sink, "new");
    expect_file("old");
    ck_assert_int_eq(sink_close(sink, true, NULL), 0);
    expect_file("new");
    sink = sink_file(path, NULL);
    sink_text(sink, "newer");
    ck_assert_int_eq(sink_close(sink, false, NULL), 0);
    expect_file("new");
}
END_TEST

// However the process ends, what is not whole has no name.
START_TEST(nothing_is_left)
{
    int fd = open(folder, O_WRONLY | O_TMPFILE, 0600);
    if (fd < 0 || access("/proc/self/fd", F_OK) != 0)
        return; // not on this file system
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        struct sink *sink = sink_file(path, NULL);
        for (int i = 0; sink && i < 100000; i++)
            sink_text(sink, "half a file");
        raise(SIGKILL);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    // remove_folder asserts that nothing else is there.
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(follows_links)
{
    char target[160];
    snprintf(target, sizeof target, "%s/target", folder);
    ck_assert_int_eq(symlink("target", path), 0);
    FILE *file = fopen(target, "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
    struct sink *sink = sink_file(path, NULL);
    sink_text(sink, "new");
    ck_assert_int_eq(sink_close(sink, true, NULL), 0);
    struct stat status;
    ck_assert_int_eq(lstat(path, &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    expect_file("new");
    unlink(target);
}
END_TEST

START_TEST(gzip)
{
    struct sink *sink = sink_gzip(sink_file(path, NULL));
    for (unsigned i = 0; i < 100000; i++)
        sink_number(sink, i);
    ck_assert_int_eq(sink_close(sink, true, NULL), 0);
    gzFile file = gzopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert(!gzdirect(file)); // it is compressed
    for (unsigned i = 0; i < 100000; i++) {
        char wanted[16], got[16] = "";
        snprintf(wanted, sizeof wanted, "%u", i);
        ck_assert_int_eq(gzread(file, got, (unsigned)strlen(wanted)), (int)strlen(wanted));
        ck_assert_str_eq(got, wanted);
    }
    ck_assert_int_eq(gzgetc(file), -1);
    ck_assert_int_eq(gzclose(file), Z_OK);
}
END_TEST

static void fill(struct sink *sink)
{
    for (unsigned i = 0; i < 100000; i++)
        sink_text(sink, "not too little\n");
}

static void expect_error(struct sink *sink, const char *why)
{
    struct base_error error = {0};
    fill(sink);
    ck_assert_int_eq(sink_close(sink, true, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    ck_assert_msg(strstr(error.detail, why), "%s", error.detail);
}

START_TEST(no_room)
{
    expect_error(sink_file("/dev/full", NULL), strerror(ENOSPC));
    expect_error(sink_gzip(sink_file("/dev/full", NULL)), strerror(ENOSPC));
    // Little: only the end tells.
    struct base_error error = {0};
    struct sink *sink = sink_file("/dev/full", NULL);
    sink_text(sink, "little");
    ck_assert(!sink_failed(sink));
    ck_assert_int_eq(sink_close(sink, true, &error), -1);
}
END_TEST

START_TEST(file_limit)
{
    put_file("old");
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){100000, 100000}), 0);
    expect_error(sink_file(path, NULL), strerror(EFBIG));
    expect_file("old");
}
END_TEST

START_TEST(closed_pipe)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDOUT_FILENO), STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    signal(SIGPIPE, SIG_IGN);
    expect_error(sink_file("-", NULL), strerror(EPIPE));
}
END_TEST

START_TEST(cannot_be_made)
{
    struct base_error error = {0};
    char there[200];
    snprintf(there, sizeof there, "%s/none/out", folder);
    ck_assert_ptr_null(sink_file(there, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    error = (struct base_error){0};
    ck_assert_ptr_null(sink_file(folder, &error)); // a directory
    ck_assert_msg(strstr(error.detail, strerror(EISDIR)), "%s", error.detail);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("sink");
    tcase_add_checked_fixture(tests, make_folder, remove_folder);
    tcase_add_test(tests, numbers);
    tcase_add_test(tests, json_strings);
    tcase_add_test(tests, no_utf8);
    tcase_add_test(tests, clean_names);
    tcase_add_test(tests, large);
    tcase_add_test(tests, replaces_when_whole);
    tcase_add_test(tests, nothing_is_left);
    tcase_add_test(tests, follows_links);
    tcase_add_test(tests, gzip);
    tcase_add_test(tests, no_room);
    tcase_add_test(tests, file_limit);
    tcase_add_test(tests, closed_pipe);
    tcase_add_test(tests, cannot_be_made);
    Suite *suite = suite_create("export");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
