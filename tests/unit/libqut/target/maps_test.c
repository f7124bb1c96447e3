// SPDX-License-Identifier: Apache-2.0
// Maps as text, and where an image's segments lie.
#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/elf/elf_head.h"
#include "libqut/target/mappings.h"
#include "tests/support/run_suite.h"

static struct target_maps parse(const char *text)
{
    struct target_maps maps;
    ck_assert_int_eq(target_maps_parse(&maps, strdup(text), strlen(text)), 0);
    return maps;
}

START_TEST(a_line_as_the_kernel_writes_it)
{
    struct target_maps maps = parse("7f0000001000-7f0000003000 r-xp 00002000 fe:01 1234567   /usr/lib/libc.so.6\n"
                                    "7ffe00000000-7ffe00002000 rw-p 00000000 00:00 0          [stack]\n");
    ck_assert_uint_eq(maps.count, 2);
    ck_assert_uint_eq(maps.items[0].start, 0x7f0000001000);
    ck_assert_uint_eq(maps.items[0].end, 0x7f0000003000);
    ck_assert_uint_eq(maps.items[0].offset, 0x2000);
    ck_assert_uint_eq(maps.items[0].inode, 1234567);
    ck_assert_uint_eq(maps.items[0].device, (uint64_t)0xfe << 32 | 1);
    ck_assert(maps.items[0].readable && !maps.items[0].writable && maps.items[0].executable);
    ck_assert_str_eq(maps.items[0].path, "/usr/lib/libc.so.6");
    ck_assert_str_eq(maps.items[1].path, "[stack]");
    ck_assert_ptr_eq(target_maps_find(&maps, 0x7f0000001000), &maps.items[0]);
    ck_assert_ptr_eq(target_maps_find(&maps, 0x7f0000002fff), &maps.items[0]);
    ck_assert_ptr_null(target_maps_find(&maps, 0x7f0000003000));
    ck_assert_ptr_null(target_maps_find(&maps, 0));
    ck_assert_ptr_null(target_maps_find(&maps, UINT64_MAX));
    target_maps_free(&maps);
}
END_TEST

START_TEST(a_line_feed_in_a_name)
{
    struct target_maps maps = parse("1000-2000 r-xp 00000000 fe:01 12   /a\\012b\\01\\0123 (deleted)\n");
    ck_assert_uint_eq(maps.count, 1);
    ck_assert_str_eq(maps.items[0].path, "/a\nb\\01\n3");
    ck_assert(maps.items[0].deleted);
    target_maps_free(&maps);
}
END_TEST

START_TEST(columns_can_be_missing)
{
    struct target_maps maps = parse("1000-2000 r-xp 0 00:00 0 jit map0.so\n"
                                    "3000-4000 r-xp 10\n"
                                    "5000-6000 r--p /a b (deleted)\n"
                                    "7000-8000 rw-p 0 00:00 0\n"
                                    "c7ee8000-c8c52fff r-xp  12e4000    00:00 0  invalid.apk");
    ck_assert_uint_eq(maps.count, 5);
    ck_assert_str_eq(maps.items[0].path, "jit map0.so");
    ck_assert_uint_eq(maps.items[1].offset, 0x10);
    ck_assert_str_eq(maps.items[2].path, "/a b");
    ck_assert(maps.items[2].deleted && !maps.items[0].deleted);
    ck_assert_str_eq(maps.items[3].path, "");
    ck_assert_uint_eq(maps.items[4].end, 0xc8c53000);
    ck_assert_uint_eq(maps.items[4].offset, 0x12e4000);
    target_maps_free(&maps);
}
END_TEST

START_TEST(hostile_lines_are_skipped_and_counted)
{
    struct target_maps maps = parse("\n\n"
                                    "nonsense\n"
                                    "1000\n"
                                    "1000-\n"
                                    "-2000 r-xp\n"
                                    "2000-1000 r-xp 0 00:00 0\n"
                                    "1000-1000 r-xp 0 00:00 0\n"
                                    "11112222333344445-2 r-xp\n"
                                    "9000-a000 rw\n"
                                    "3000-5000 r-xp 0 00:00 0 later\n"
                                    "1000-4000 r-xp 0 00:00 0 first\n"
                                    "6000-7000 ---p fffffffffffffffff 00:00 99999999999999999999999 x\n");
    ck_assert_uint_eq(maps.count, 2); // of the two that overlap, the lower one
    ck_assert_str_eq(maps.items[0].path, "first");
    ck_assert_uint_eq(maps.items[1].start, 0x6000);
    ck_assert_uint_eq(maps.skipped_lines, 9);
    target_maps_free(&maps);
    maps = parse("");
    ck_assert_uint_eq(maps.count, 0);
    ck_assert_ptr_null(target_maps_find(&maps, 0x1000));
    target_maps_free(&maps);
}
END_TEST

static uint64_t bias(const struct elf_head *head, uint64_t start, uint64_t offset, uint64_t size, bool executable)
{
    uint64_t vaddr = 0;
    ck_assert(elf_mapped_vaddr(head, offset, size, executable, &vaddr));
    return start - vaddr;
}

START_TEST(load_bias_of_segments)
{
    // As lld lays libraries out for Android: each segment lies a page further in memory than in the file.
    const struct elf_head head = {
        .load_count = 4,
        .loads = {{.offset = 0, .vaddr = 0, .file_size = 0x29f10, .memory_size = 0x29f10},
                  {.offset = 0x29f10, .vaddr = 0x2af10, .file_size = 0x7f000, .memory_size = 0x7f000, .flags = PF_X},
                  {.offset = 0xa8f10, .vaddr = 0xaaf10, .file_size = 0x3000, .memory_size = 0x3000},
                  {.offset = 0xabf10, .vaddr = 0xaef10, .file_size = 0x100, .memory_size = 0x9000}},
    };
    const uint64_t base = 0x7f0000000000;
    ck_assert_uint_eq(bias(&head, base, 0, 0x2a000, false), base);
    // The pages that hold the end of one segment and the start of the next are mapped for both.
    ck_assert_uint_eq(bias(&head, base + 0x2a000, 0x29000, 0x80000, true), base);
    ck_assert_uint_eq(bias(&head, base + 0xaa000, 0xa8000, 0x4000, false), base);
    // A piece that mprotect cut out of the code, and pages of 16 KiB.
    ck_assert_uint_eq(bias(&head, base + 0x40000, 0x3f000, 0x1000, true), base);
    ck_assert_uint_eq(bias(&head, base + 0x29000, 0x28000, 0x84000, true), base);
    // All of the file as one mapping: the code counts.
    const struct elf_head one = {
        .load_count = 1,
        .loads = {{.offset = 0, .vaddr = 0x8000, .file_size = 0x5000, .memory_size = 0x5000, .flags = PF_X}},
    };
    ck_assert_uint_eq(bias(&one, 0x10000, 0, 0x5000, true), 0x8000);
    uint64_t vaddr;
    ck_assert(!elf_mapped_vaddr(&one, 0x5000, 0x1000, true, &vaddr));
    ck_assert(!elf_mapped_vaddr(&one, UINT64_MAX - 5, UINT64_MAX, true, &vaddr));
}
END_TEST

static size_t read_bytes(void *context, uint64_t position, void *bytes, size_t size)
{
    const char *all = context;
    if (position >= 64)
        return 0;
    size_t left = 64 - (size_t)position;
    memcpy(bytes, all + position, size < left ? size : left);
    return size < left ? size : left;
}

START_TEST(headers_that_are_none)
{
    struct elf_head head;
    char bytes[64] = "\177ELF\2\1\1";
    ck_assert(!elf_head_read(&head, read_bytes, bytes)); // no program headers
    memset(bytes + 16, 0xff, sizeof bytes - 16);
    ck_assert(!elf_head_read(&head, read_bytes, bytes));
    bytes[5] = 2; // big-endian
    ck_assert(!elf_head_read(&head, read_bytes, bytes));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("maps");
    TCase *tests = tcase_create("maps");
    tcase_add_test(tests, a_line_as_the_kernel_writes_it);
    tcase_add_test(tests, a_line_feed_in_a_name);
    tcase_add_test(tests, columns_can_be_missing);
    tcase_add_test(tests, hostile_lines_are_skipped_and_counted);
    tcase_add_test(tests, load_bias_of_segments);
    tcase_add_test(tests, headers_that_are_none);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
