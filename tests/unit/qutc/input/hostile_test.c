// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdlib.h>

#include "qutc/input/image.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

// Damaged and made-up files: a part of the image, or an error with its reason; never more.
static const uint8_t eh_frame[] = {12, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0, 0, 0, 0, 0, 0, 0};
static const uint8_t code[64] = {0xc3};

#define TEXT_SECTION                                                                                                   \
    {                                                                                                                  \
        ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof code, 16                                \
    }
#define EH_SECTION                                                                                                     \
    {                                                                                                                  \
        ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x3000, eh_frame, sizeof eh_frame, 8                                     \
    }

// version 1, eh_frame_ptr pcrel sdata4, no table; .eh_frame_hdr at 0x2000, .eh_frame at 0x3000.
static uint8_t good_header[] = {1, 0x1b, 0xff, 0xff, 0xfc, 0x0f, 0, 0};

static struct build_elf without_sections(const uint8_t *header, size_t size)
{
    return (struct build_elf){
        .no_section_headers = true,
        .sections = {TEXT_SECTION, EH_SECTION, {".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 0x2000, header, size, 4}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0},
                     {PT_LOAD, PF_R, ".eh_frame", 8},
                     {PT_LOAD, PF_R, ".eh_frame_hdr", 0},
                     {PT_GNU_EH_FRAME, PF_R, ".eh_frame_hdr", 0}},
    };
}

static struct build_buffer inner_elf(void)
{
    return build_elf(
        &(struct build_elf){.sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, NULL, 0x100, 16},
                                         {".debug_frame", SHT_PROGBITS, 0, 0, code, sizeof code, 8}}});
}

START_TEST(a_bad_part_does_not_hide_a_good_one)
{
    struct base_error error;
    struct build_buffer file =
        build_elf(&(struct build_elf){.sections = {TEXT_SECTION,
                                                   EH_SECTION,
                                                   {".gnu_debugdata", SHT_PROGBITS, 0, 0, "not xz", 6, 1},
                                                   {".debug_frame", SHT_PROGBITS, 0, 0, code, sizeof code, 1}}});
    Elf64_Ehdr header;
    memcpy(&header, file.data, sizeof header);
    uint64_t huge = UINT64_MAX - 8;
    memcpy(file.data + header.e_shoff + 4 * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_size), &huge, sizeof huge);
    struct input_image *image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_int_eq(image->frame[0].kind, INPUT_FRAME_EH);
    ck_assert_uint_eq(image->damage_count, 2);
    ck_assert_int_eq(image->damage.reason, BASE_ERR_TRUNCATED);
    ck_assert_str_eq(image->damage.section, ".debug_frame");
    input_image_close(image);
    free(file.data);
}
END_TEST

START_TEST(bad_section_headers_leave_the_segments)
{
    struct base_error error;
    struct build_elf spec = without_sections(good_header, sizeof good_header);
    spec.no_section_headers = false;
    struct build_buffer file = build_elf(&spec);
    Elf64_Ehdr header;
    memcpy(&header, file.data, sizeof header);
    file.size = header.e_shoff + 100; // cut inside the section headers
    struct input_image *image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_uint_eq(image->damage_count, 1);
    ck_assert_str_eq(image->damage.section, "section headers");
    input_image_close(image);

    header.e_shnum = 0xffff;
    memcpy(file.data, &header, sizeof header);
    image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame_count, 1);
    input_image_close(image);
    free(file.data);
}
END_TEST

START_TEST(section_count_in_the_first_header)
{
    struct base_error error;
    struct build_buffer file = build_elf(&(struct build_elf){.sections = {TEXT_SECTION, EH_SECTION}});
    Elf64_Ehdr header;
    memcpy(&header, file.data, sizeof header);
    uint64_t count = header.e_shnum;
    uint32_t names = header.e_shstrndx;
    header.e_shnum = 0;
    header.e_shstrndx = SHN_XINDEX;
    memcpy(file.data, &header, sizeof header);
    memcpy(file.data + header.e_shoff + offsetof(Elf64_Shdr, sh_size), &count, sizeof count);
    memcpy(file.data + header.e_shoff + offsetof(Elf64_Shdr, sh_link), &names, sizeof names);
    struct input_image *image = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame_count, 1);
    input_image_close(image);
    count = 1ULL << 58;
    memcpy(file.data + header.e_shoff + offsetof(Elf64_Shdr, sh_size), &count, sizeof count);
    ck_assert_ptr_null(build_open_bytes(&file, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_TRUNCATED);
    free(file.data);
}
END_TEST

static uint64_t random_state = 88172645463325252ULL;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

// Every cut, and many files with a few bytes changed: each opens, or fails with a reason; sanitizers watch.
static void damage_everywhere(const struct build_elf *spec)
{
    struct build_buffer file = build_elf(spec);
    struct base_error error;
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    for (size_t size = 0; size < file.size; size++) {
        struct build_buffer cut = {malloc(size + 1), size}; // of its own, so that reading past it is seen
        memcpy(cut.data, file.data, size);
        struct input_image *image = build_open_bytes(&cut, &error);
        ck_assert(image != NULL || error.reason != BASE_OK);
        input_image_close(image);
        free(cut.data);
    }
    for (unsigned round = 0; round < 10000; round++) {
        uint8_t *copy = malloc(file.size);
        memcpy(copy, file.data, file.size);
        for (uint64_t changes = next_random() % 4 + 1; changes; changes--) {
            // Headers, at both ends of the file, are worth more changes than contents.
            uint64_t where = next_random() % 3;
            size_t at = where == 0 ? next_random() % 256 : file.size - 1 - next_random() % 640;
            copy[(where == 2 ? next_random() : at) % file.size] = values[next_random() % sizeof values];
        }
        struct input_image *image = build_open_bytes(&(struct build_buffer){copy, file.size}, &error);
        ck_assert(image != NULL || error.reason != BASE_OK);
        for (unsigned i = 0; image && i < image->exec_count; i++)
            input_image_at(image, image->exec[i].start);
        input_image_close(image);
        free(copy);
    }
    free(file.data);
}

START_TEST(hostile_files)
{
    struct build_buffer inner = inner_elf();
    struct build_buffer xz = build_xz(inner.data, inner.size);
    struct build_elf spec = without_sections(good_header, sizeof good_header);
    spec.no_section_headers = _i & 1;
    spec.is_32 = _i & 2;
    spec.sections[3] = (struct build_section){".gnu_debugdata", SHT_PROGBITS, 0, 0, xz.data, xz.size, 1};
    spec.sections[4] = (struct build_section){".ARM.exidx", SHT_ARM_EXIDX, SHF_ALLOC, 0x5000, code, 32, 4};
    spec.segments[4] = (struct build_segment){PT_ARM_EXIDX, PF_R, ".ARM.exidx", 0};
    damage_everywhere(&spec);
    free(inner.data);
    free(xz.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hostile");
    TCase *tests = tcase_create("hostile");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_bad_part_does_not_hide_a_good_one);
    tcase_add_test(tests, bad_section_headers_leave_the_segments);
    tcase_add_test(tests, section_count_in_the_first_header);
    tcase_add_loop_test(tests, hostile_files, 0, 4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
