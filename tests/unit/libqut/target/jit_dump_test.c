// SPDX-License-Identifier: Apache-2.0
// Names by the jitdump that a process writes and maps: a child of ours maps one, and we write on.
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/run_suite.h"
#include "tests/unit/libqut/target/named_code.h"

enum { LOAD = 0, MOVE = 1, DEBUG_INFO = 2, CLOSE = 3 };

static pid_t child;
static char path[64];
static uint64_t written_ns; // as records say
static uint32_t header[] = {0x4a695444, 1, 40, 62, 0, 0, 0, 0, 0, 0};
static uint32_t pid_error; // of the process that the header names

// What a compiler does first.
static void write_header(void)
{
    snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0644);
    header[5] = (uint32_t)getpid() + pid_error;
    if (fd < 0 || write(fd, header, sizeof header) != sizeof header ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        _exit(1);
}

static void begin(void)
{
    child = named_code_begin(write_header);
    snprintf(path, sizeof path, "/tmp/jit-%d.dump", (int)child);
}

static void tear_down(void)
{
    named_code_end();
    unlink(path);
    header[0] = 0x4a695444;
    pid_error = 0;
    written_ns = 0;
}

static void append(const void *bytes, size_t size)
{
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

struct record {
    uint8_t bytes[4096];
    uint32_t size;
};

static void put(struct record *record, const void *bytes, size_t size)
{
    memcpy(record->bytes + record->size, bytes, size);
    record->size += (uint32_t)size;
    memcpy(record->bytes + 4, &record->size, 4);
}

static struct record begun(uint32_t kind)
{
    struct record record = {.size = 0};
    put(&record, &(uint32_t[2]){kind, 0}, 8);
    put(&record, &written_ns, 8);
    return record;
}

static struct record load(uint64_t start, uint64_t bytes, uint64_t number, const char *name)
{
    static const uint8_t code[64];
    struct record record = begun(LOAD);
    put(&record, &(uint32_t[2]){(uint32_t)child, (uint32_t)child}, 8);
    put(&record, &(uint64_t[4]){start, start, bytes, number}, 32);
    put(&record, name, strlen(name) + 1);
    put(&record, code, bytes < sizeof code ? bytes : sizeof code);
    return record;
}

static struct record move(uint64_t from, uint64_t to, uint64_t bytes, uint64_t number)
{
    struct record record = begun(MOVE);
    put(&record, &(uint32_t[2]){(uint32_t)child, (uint32_t)child}, 8);
    put(&record, &(uint64_t[5]){to, from, to, bytes, number}, 40);
    return record;
}

static void add(struct record record)
{
    append(record.bytes, record.size);
}

START_TEST(names_by_address)
{
    begin();
    add(load(0x7f0000001000, 0x20, 0, "LazyCompile:*rec /app/main.js:3:1"));
    add(begun(DEBUG_INFO));
    add(load(0x7f0000002000, 0x10, 1, "Builtin:Call"));
    ck_assert_str_eq(named_code_at(0x7f000000101f), "LazyCompile:*rec /app/main.js:3:1");
    ck_assert_str_eq(named_code_at(0x7f0000001020), "");
    ck_assert_str_eq(named_code_at(0x7f0000000fff), "");
    ck_assert_str_eq(named_code_at(0x7f0000002000), "Builtin:Call");
}
END_TEST

START_TEST(later_records_hold)
{
    begin();
    add(load(0x1000, 0x100, 7, "older"));
    add(load(0x1040, 0x20, 8, "newer"));
    add(move(0x1000, 0x3000, 0x100, 7));
    add(move(0x1000, 0x4000, 0x100, 6)); // of no code that we know
    ck_assert_str_eq(named_code_at(0x1000), "older");
    ck_assert_str_eq(named_code_at(0x1050), "newer");
    ck_assert_str_eq(named_code_at(0x3050), "older");
    ck_assert_str_eq(named_code_at(0x4000), "");
}
END_TEST

// Its code is in no memory: whether there is more to come decides.
START_TEST(reading_goes_on)
{
    begin();
    struct record half = load(0x5000, 0x40, 2, "whole in the end");
    add(load(0x1000, 0x10, 1, "first"));
    append(half.bytes, half.size - 8);
    ck_assert_str_eq(named_code_at(0x1000), ""); // what follows may be about this address
    append(half.bytes + half.size - 8, 8);
    add(load(0x1008, 0x40, 3, "over it"));
    add(move(0x1000, 0x9000, 0x10, 1));
    ck_assert_str_eq(named_code_soon_at(0x5000), "whole in the end");
    ck_assert_str_eq(named_code_at(0x1008), "over it");
    ck_assert_str_eq(named_code_at(0x9008), "first");
}
END_TEST

START_TEST(names_of_the_past)
{
    begin();
    written_ns = 1000;
    add(load(0x1000, 0x10, 1, "first"));
    written_ns = 2000;
    add(load(0x1000, 0x10, 2, "second"));
    written_ns = 3000;
    add(begun(DEBUG_INFO));
    struct record half = load(0x5000, 0x40, 3, "half");
    append(half.bytes, half.size - 8);
    ck_assert_str_eq(named_code_of(0x1008, 999), "");
    ck_assert_str_eq(named_code_of(0x1008, 1000), "first");
    ck_assert_str_eq(named_code_of(0x1008, 1999), "first");
    ck_assert_str_eq(named_code_of(0x1008, 3000), "second");
    ck_assert_str_eq(named_code_of(0x1008, 3001), ""); // the file does not say what came then
    append(half.bytes + half.size - 8, 8);
    ck_assert_str_eq(named_code_of(0x1008, 3001), "second");
    named_code_kill();
    written_ns = 4000;
    add(load(0x6000, 0x10, 4, "behind the end"));
    ck_assert_str_eq(named_code_of(0x6000, 4001), "behind the end");
}
END_TEST

// The child has our memory.
static uint8_t code_there[256];

START_TEST(code_in_memory_decides)
{
    for (size_t i = 0; i < sizeof code_there; i++)
        code_there[i] = (uint8_t)(i * 7);
    uint64_t start = (uintptr_t)code_there;
    begin();
    struct record record = load(start, 0, 1, "the very code");
    uint64_t bytes = sizeof code_there;
    memcpy(record.bytes + 40, &bytes, 8);
    put(&record, code_there, sizeof code_there);
    add(record);
    append("more", 4);
    ck_assert_str_eq(named_code_at(start + 5), "the very code");
}
END_TEST

START_TEST(other_code_in_memory_decides)
{
    uint64_t start = (uintptr_t)code_there;
    memset(code_there, 0, sizeof code_there);
    begin();
    struct record record = load(start, 0, 1, "gone");
    uint64_t bytes = sizeof code_there;
    memcpy(record.bytes + 40, &bytes, 8);
    for (size_t i = 0; i < sizeof code_there; i++)
        put(&record, &(uint8_t){(uint8_t)(i * 7)}, 1);
    add(record);
    ck_assert_str_eq(named_code_at(start + 5), ""); // whole as the file is
}
END_TEST

START_TEST(records_that_are_none)
{
    begin();
    add(load(0x1000, 0x10, 1, "first"));
    add(load(UINT64_MAX - 4, 0x10, 2, "wraps"));
    add(load(0x2000, 0, 3, "empty"));
    struct record cut = begun(LOAD);
    put(&cut, &(uint64_t){0x3000}, 8);
    add(cut);
    struct record unending = load(0x4000, 0x10, 4, "");
    memset(unending.bytes + unending.size - 17, 'x', 17); // a name without its end
    add(unending);
    add(load(0x5000, 0x10, 4, "a number again"));
    struct record stuck = begun(CLOSE);
    memset(stuck.bytes + 4, 0, 4); // of no bytes: nothing behind it can be found
    ck_assert_str_eq(named_code_at(0x1000), "first");
    ck_assert_str_eq(named_code_at(UINT64_MAX - 2), "");
    ck_assert_str_eq(named_code_at(0x2000), "");
    ck_assert_str_eq(named_code_at(0x3000), "");
    ck_assert_str_eq(named_code_at(0x4000), "xxxxxxxxxxxxxxxxx");
    ck_assert_str_eq(named_code_at(0x5000), "a number again");
    add(stuck);
    add(load(0x6000, 0x10, 5, "behind"));
    // It is read as often as its reader may spend time on it: on a busy machine later.
    for (int i = 0; i < 100 && *named_code_at(0x1000); i++)
        usleep(300000);
    ck_assert_str_eq(named_code_at(0x1000), ""); // who knows what the rest says
    ck_assert_str_eq(named_code_at(0x6000), "");
}
END_TEST

START_TEST(long_names_are_cut)
{
    char name[2000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    begin();
    add(load(0x1000, 0x10, 1, name));
    ck_assert_uint_eq(strlen(named_code_at(0x1000)), 511);
}
END_TEST

START_TEST(other_files_are_not_believed)
{
    header[0] = 0x4454694a; // of a machine of the other byte order
    begin();
    add(load(0x1000, 0x10, 1, "swapped"));
    ck_assert_str_eq(named_code_at(0x1000), "");
}
END_TEST

START_TEST(file_of_a_parent_is_not_believed)
{
    pid_error = 1;
    begin();
    add(load(0x1000, 0x10, 1, "another's"));
    ck_assert_str_eq(named_code_at(0x1000), "");
}
END_TEST

START_TEST(file_of_anybody_is_not_believed)
{
    begin();
    add(load(0x1000, 0x10, 1, "planted"));
    ck_assert_int_eq(chmod(path, 0666), 0);
    ck_assert_str_eq(named_code_at(0x1000), "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jit_dump");
    TCase *tcase = tcase_create("jit_dump");
    tcase_add_checked_fixture(tcase, NULL, tear_down);
    tcase_add_test(tcase, names_by_address);
    tcase_add_test(tcase, later_records_hold);
    tcase_add_test(tcase, reading_goes_on);
    tcase_add_test(tcase, names_of_the_past);
    tcase_add_test(tcase, code_in_memory_decides);
    tcase_add_test(tcase, other_code_in_memory_decides);
    tcase_add_test(tcase, records_that_are_none);
    tcase_add_test(tcase, long_names_are_cut);
    tcase_add_test(tcase, other_files_are_not_believed);
    tcase_add_test(tcase, file_of_a_parent_is_not_believed);
    tcase_add_test(tcase, file_of_anybody_is_not_believed);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
