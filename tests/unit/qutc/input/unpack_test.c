// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "qutc/input/image.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

static const uint8_t code[64] = {0xc3};
static char packed_text[4096];

#define TEXT_SECTION                                                                                                   \
    {                                                                                                                  \
        ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16                                \
    }

static void check_unpacked(const struct input_image *image, enum input_provenance from)
{
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_int_eq(image->frame[0].from, from);
    ck_assert_uint_eq(image->frame[0].bytes.size, sizeof packed_text);
    ck_assert_mem_eq(image->frame[0].bytes.data, packed_text, sizeof packed_text);
    ck_assert_uint_eq(image->debug_frame_bytes, sizeof packed_text);
    ck_assert_uint_ge(image->unpacked_bytes, sizeof packed_text);
}

START_TEST(compressed_sections)
{
    struct build_buffer packed = _i == ELFCOMPRESS_ZLIB ? build_zlib(packed_text, sizeof packed_text)
                                                        : build_zstd(packed_text, sizeof packed_text);
    struct build_buffer section = build_compressed64((uint32_t)_i, sizeof packed_text, &packed);
    struct build_elf spec = {
        .sections = {{".debug_frame", SHT_PROGBITS, SHF_COMPRESSED, 0, section.data, section.size, 8}}};
    struct base_error error;
    struct input_image *image = build_open(&spec, &error);
    ck_assert_ptr_nonnull(image);
    check_unpacked(image, INPUT_FROM_FILE);
    input_image_close(image);

    static const uint64_t lies[] = {sizeof packed_text - 1, sizeof packed_text + 1, 1ULL << 29, 1ULL << 31, UINT64_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        memcpy(section.data + 8, &lies[i], 8);
        ck_assert_ptr_null(build_open(&spec, &error));
        ck_assert_int_eq(error.reason, i < 3 ? BASE_ERR_COMPRESSION : BASE_ERR_LIMIT);
        ck_assert_str_eq(error.section, ".debug_frame");
    }
    free(section.data);
    section = build_compressed64((uint32_t)_i, sizeof packed_text, &packed);
    for (size_t cut = 0; cut < section.size; cut += 7) {
        spec.sections[0].data = section.data;
        spec.sections[0].size = cut;
        image = build_open(&spec, &error);
        ck_assert(image == NULL || image->frame_count == 0);
        input_image_close(image);
    }
    free(section.data);
    free(packed.data);
}
END_TEST

START_TEST(zdebug_section)
{
    struct build_buffer packed = build_zlib(packed_text, sizeof packed_text);
    struct build_buffer section = {0};
    build_add(&section, "ZLIB\0\0\0\0\0\0\x10\0", 12);
    build_add(&section, packed.data, packed.size);
    struct base_error error;
    struct input_image *image = build_open(
        &(struct build_elf){.sections = {{".zdebug_frame", SHT_PROGBITS, 0, 0, section.data, section.size, 1}}},
        &error);
    ck_assert_ptr_nonnull(image);
    check_unpacked(image, INPUT_FROM_FILE);
    input_image_close(image);
    free(section.data);
    free(packed.data);
}
END_TEST

static struct build_buffer inner_elf(void)
{
    return build_elf(
        &(struct build_elf){.sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, NULL, 0x100, 16},
                                         {".debug_frame", SHT_PROGBITS, 0, 0, packed_text, sizeof packed_text, 8}}});
}

START_TEST(gnu_debugdata)
{
    struct build_buffer inner = inner_elf();
    // Two streams, and padding that is no multiple of four.
    size_t half = inner.size / 2;
    struct build_buffer xz = build_xz(inner.data, half);
    struct build_buffer second = build_xz(inner.data + half, inner.size - half);
    build_add(&xz, second.data, second.size);
    build_add(&xz, NULL, 5);
    struct build_elf spec = {.sections = {TEXT_SECTION, {".gnu_debugdata", SHT_PROGBITS, 0, 0, xz.data, xz.size, 1}}};
    struct base_error error;
    struct input_image *image = build_open(&spec, &error);
    ck_assert_ptr_nonnull(image);
    check_unpacked(image, INPUT_FROM_GNU_DEBUGDATA);
    ck_assert_uint_eq(image->unpacked_bytes, inner.size);
    ck_assert_uint_gt(image->xz_time_ns, 0);
    ck_assert_uint_eq(image->xz_time_ns, image->unpack_time_ns);
    input_image_close(image);

    for (size_t i = 0; i < xz.size - 5; i++) { // a flipped bit anywhere is noticed, by a check or by the format
        xz.data[i] ^= 0x10;
        image = build_open(&spec, &error);
        ck_assert_ptr_null(image);
        ck_assert_str_eq(error.section, ".gnu_debugdata");
        ck_assert_int_eq(error.reason, BASE_ERR_COMPRESSION);
        xz.data[i] ^= 0x10;
    }
    free(inner.data);
    free(xz.data);
    free(second.data);
}
END_TEST

START_TEST(unpacking_is_bounded)
{
    static const uint64_t bounds[] = {1, 4096, 1 << 20, 5 << 20};
    size_t size = 20 << 20;
    void *zeros = calloc(1, size);
    struct build_buffer xz = build_xz(zeros, size);
    struct build_buffer file =
        build_elf(&(struct build_elf){.sections = {{".gnu_debugdata", SHT_PROGBITS, 0, 0, xz.data, xz.size, 1}}});
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        struct input_image *image;
        struct base_error error = {0};
        struct input_image_options options = {.unpack_max_bytes = bounds[i]};
        ck_assert_int_eq(
            input_image_open_memory((struct base_bytes){file.data, file.size}, "bomb", &options, &image, &error), -1);
        ck_assert_int_eq(error.reason, BASE_ERR_LIMIT);
    }
    free(file.data);
    free(xz.data);
    free(zeros);
}
END_TEST

int main(void)
{
    for (size_t i = 0; i < sizeof packed_text; i++)
        packed_text[i] = (char)(i * i / 7);
    Suite *suite = suite_create("unpack");
    TCase *tests = tcase_create("unpack");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, compressed_sections, 1, 3); // ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD
    tcase_add_test(tests, zdebug_section);
    tcase_add_test(tests, gnu_debugdata);
    tcase_add_test(tests, unpacking_is_bounded);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
