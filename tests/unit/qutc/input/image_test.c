// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "qutc/input/image.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

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

START_TEST(sections_of_a_plain_file)
{
    struct base_error error;
    struct input_image *image = build_open(
        &(struct build_elf){
            .sections = {TEXT_SECTION,
                         EH_SECTION,
                         {".got", SHT_PROGBITS, SHF_ALLOC, 0x4000, code, 16, 8},
                         {".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1800, code, 32, 16},
                         {".debug_frame", SHT_PROGBITS, 0, 0, eh_frame, sizeof eh_frame, 8}},
            .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0},
                         {PT_LOAD, PF_R | PF_X, ".plt", 0},
                         {PT_LOAD, PF_R, ".eh_frame", 0}},
        },
        &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame_count, 2);
    ck_assert_int_eq(image->frame[0].kind, INPUT_FRAME_DEBUG);
    ck_assert_int_eq(image->frame[1].kind, INPUT_FRAME_EH);
    ck_assert_uint_eq(image->frame[1].vaddr, 0x3000);
    ck_assert_uint_eq(image->frame[1].text_base_vaddr, 0x1000);
    ck_assert_uint_eq(image->frame[1].data_base_vaddr, 0x4000);
    ck_assert_uint_eq(image->frame[1].bytes.size, sizeof eh_frame);
    ck_assert_uint_eq(image->exec_count, 2);
    ck_assert_uint_eq(image->exec[0].start, 0x1000);
    ck_assert_uint_eq(image->exec[0].end, 0x1040);
    ck_assert_uint_eq(image->plt_count, 1);
    ck_assert_uint_eq(image->plt[0].start, 0x1800);
    ck_assert_uint_eq(image->eh_frame_bytes, sizeof eh_frame);
    ck_assert_int_eq(image->identity_kind, INPUT_CONTENT_HASH);
    ck_assert_uint_eq(image->identity_size, 32);
    ck_assert_uint_eq(image->damage_count, 0);
    ck_assert_uint_eq(input_image_at(image, 0x1010).size, 0x30);
    ck_assert_uint_eq(input_image_at(image, 0x1040).size, 0);
    ck_assert_uint_eq(input_image_at(image, 0xfff).size, 0);
    input_image_close(image);
}
END_TEST

START_TEST(build_id_is_the_identity_and_is_cut_at_32)
{
    uint8_t note[12 + 4 + 40] = {4, 0, 0, 0, 40, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0};
    for (unsigned i = 0; i < 40; i++)
        note[16 + i] = (uint8_t)(i + 1);
    struct base_error error;
    struct input_image *image = build_open(
        &(struct build_elf){.sections = {EH_SECTION, {".note", SHT_NOTE, SHF_ALLOC, 0, note, sizeof note, 4}}}, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_int_eq(image->identity_kind, INPUT_BUILD_ID);
    ck_assert_uint_eq(image->identity_size, 32);
    ck_assert_mem_eq(image->identity, note + 16, 32);
    input_image_close(image);
}
END_TEST

START_TEST(hashes_tell_any_changed_byte)
{
    struct base_error error;
    struct build_buffer file = build_elf(&(struct build_elf){.sections = {TEXT_SECTION, EH_SECTION}});
    struct input_image *first = build_open_bytes(&file, &error);
    ck_assert_ptr_nonnull(first);
    for (size_t at = 64; at < 200; at++) {
        file.data[at] ^= 1;
        struct input_image *other = build_open_bytes(&file, &error);
        ck_assert_ptr_nonnull(other);
        ck_assert_mem_ne(first->identity, other->identity, 32);
        ck_assert_mem_ne(first->identity, other->identity, 8);
        input_image_close(other);
        file.data[at] ^= 1;
    }
    input_image_close(first);
    free(file.data);
}
END_TEST

START_TEST(refuses_what_is_not_linked_or_not_known)
{
    struct base_error error;
    ck_assert_ptr_null(build_open(&(struct build_elf){.type = ET_REL, .sections = {EH_SECTION}}, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    ck_assert_str_eq(error.detail, "relocatable object: not linked");
    ck_assert_ptr_null(build_open(&(struct build_elf){.type = ET_CORE}, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    ck_assert_ptr_null(build_open(&(struct build_elf){.machine = EM_S390}, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    ck_assert_ptr_null(build_open(&(struct build_elf){.is_32 = true, .machine = EM_X86_64}, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    struct build_buffer file = build_elf(&(struct build_elf){.sections = {EH_SECTION}});
    file.data[EI_DATA] = ELFDATA2MSB;
    ck_assert_ptr_null(build_open_bytes(&file, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_UNSUPPORTED);
    file.data[0] = 'X';
    ck_assert_ptr_null(build_open_bytes(&file, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_NOT_ELF);
    free(file.data);
}
END_TEST

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

START_TEST(eh_frame_by_its_segment)
{
    struct base_error error;
    struct build_elf spec = without_sections(good_header, sizeof good_header);
    struct input_image *image = build_open(&spec, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_uint_eq(image->frame[0].vaddr, 0x3000);
    ck_assert_uint_eq(image->frame[0].bytes.size, sizeof eh_frame);
    ck_assert_uint_eq(image->eh_frame_hdr_bytes, sizeof good_header);
    ck_assert_uint_eq(image->exec_count, 1);
    input_image_close(image);
}
END_TEST

START_TEST(every_encoding_of_the_pointer)
{
    static const uint8_t headers[][12] = {
        {1, 0x00, 0xff, 0xff, 0x00, 0x30, 0, 0, 0, 0, 0, 0}, // absptr
        {1, 0x01, 0xff, 0xff, 0x80, 0x60},                   // uleb128
        {1, 0x02, 0xff, 0xff, 0x00, 0x30},                   // udata2
        {1, 0x03, 0xff, 0xff, 0x00, 0x30, 0, 0},             // udata4
        {1, 0x04, 0xff, 0xff, 0x00, 0x30, 0, 0, 0, 0, 0, 0}, // udata8
        {1, 0x09, 0xff, 0xff, 0x80, 0xe0, 0},                // sleb128
        {1, 0x0c, 0xff, 0xff, 0x00, 0x30, 0, 0, 0, 0, 0, 0}, // sdata8
        {1, 0x1a, 0xff, 0xff, 0xfc, 0x0f},                   // pcrel sdata2
        {1, 0x3b, 0xff, 0xff, 0x00, 0x10, 0, 0},             // datarel sdata4
    };
    struct base_error error;
    struct build_elf spec = without_sections(headers[_i], sizeof headers[_i]);
    struct input_image *image = build_open(&spec, &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->frame[0].vaddr, 0x3000);
    input_image_close(image);
}
END_TEST

START_TEST(bad_headers_are_named)
{
    static const uint8_t headers[][12] = {
        {2, 0x1b, 0xff, 0xff, 0xfc, 0x0f, 0, 0},          // version
        {1, 0xff, 0xff, 0xff},                            // omitted
        {1, 0x9b, 0xff, 0xff, 0xfc, 0x0f, 0, 0},          // indirect
        {1, 0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},    // far away
        {1, 0x1b, 0xff, 0xff, 0x00, 0x00, 0x00, 0x80},    // before the address space
        {1, 0x0d, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1}, // no such form
    };
    struct base_error error;
    struct build_elf spec = without_sections(headers[_i], sizeof headers[_i]);
    ck_assert_ptr_null(build_open(&spec, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_MALFORMED);
    ck_assert_str_eq(error.section, ".eh_frame_hdr");
    spec.no_section_headers = false;
    struct input_image *image = build_open(&spec, &error);
    ck_assert_ptr_nonnull(image); // the section needs no header to lead to it
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_uint_eq(image->damage_count, 0);
    input_image_close(image);
}
END_TEST

START_TEST(exidx_by_section_and_by_segment)
{
    static const uint8_t exidx[8] = {0, 0xf0, 0xff, 0x7f, 1, 0, 0, 0};
    for (int no_sections = 0; no_sections < 2; no_sections++) {
        struct base_error error;
        struct input_image *image = build_open(
            &(struct build_elf){
                .is_32 = true,
                .no_section_headers = no_sections,
                .sections = {TEXT_SECTION,
                             {".ARM.exidx", SHT_ARM_EXIDX, SHF_ALLOC, 0x2000, exidx, sizeof exidx, 4},
                             {".ARM.extab", SHT_PROGBITS, SHF_ALLOC, 0x2100, code, 12, 4}},
                .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0},
                             {PT_LOAD, PF_R, ".ARM.extab", 0},
                             {PT_ARM_EXIDX, PF_R, ".ARM.exidx", 0}},
            },
            &error);
        ck_assert_ptr_nonnull(image);
        ck_assert_uint_eq(image->frame_count, 1);
        ck_assert_int_eq(image->frame[0].kind, INPUT_FRAME_EXIDX);
        ck_assert_uint_eq(image->frame[0].vaddr, 0x2000);
        ck_assert_uint_eq(image->exidx_bytes, 8);
        ck_assert_uint_eq(image->extab_bytes, no_sections ? 0 : 12);
        ck_assert_uint_eq(input_image_at(image, 0x2104).size, 8);
        input_image_close(image);
    }
}
END_TEST

START_TEST(jit_code_has_an_address_but_no_bytes)
{
    struct base_error error;
    struct input_image *image = build_open(
        &(struct build_elf){.sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0x42340000, NULL, 0x100, 16},
                                         {".debug_frame", SHT_PROGBITS, 0, 0, eh_frame, sizeof eh_frame, 8}}},
        &error);
    ck_assert_ptr_nonnull(image);
    ck_assert_uint_eq(image->exec_count, 1);
    ck_assert_uint_eq(image->exec[0].start, 0x42340000);
    ck_assert_uint_eq(image->exec[0].end, 0x42340100);
    ck_assert_uint_eq(input_image_at(image, 0x42340000).size, 0);
    input_image_close(image);
}
END_TEST

START_TEST(own_executable)
{
    struct input_image *image;
    struct base_error error = {0};
    ck_assert_int_eq(input_image_open("/proc/self/exe", NULL, 0, 0, NULL, &image, &error), 0);
    ck_assert_uint_ge(image->frame_count, 1);
    ck_assert_uint_ge(image->exec_count, 1);
    ck_assert_uint_eq(image->damage_count, 0);
    ck_assert_uint_eq(input_image_elf(image).size, image->size_bytes);
    ck_assert_uint_gt(input_image_at(image, image->exec[0].start).size, 0);
    input_image_close(image);
}
END_TEST

START_TEST(unreadable_files_say_why)
{
    struct input_image *image;
    struct base_error error = {0};
    ck_assert_int_eq(input_image_open("/nonexistent/file", NULL, 0, 0, NULL, &image, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    ck_assert_str_eq(error.detail, "No such file or directory");
    error = (struct base_error){0};
    ck_assert_int_eq(input_image_open("/dev/zero", NULL, 0, 0, NULL, &image, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    error = (struct base_error){0};
    ck_assert_int_eq(input_image_open("/proc/self/exe", NULL, 64, 1ULL << 40, NULL, &image, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_TRUNCATED);
    error = (struct base_error){0};
    ck_assert_int_eq(input_image_open("/proc/self/exe", NULL, 64, 16, NULL, &image, &error), -1);
    ck_assert_int_eq(error.reason, BASE_ERR_NOT_ELF);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("image");
    TCase *tests = tcase_create("image");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, sections_of_a_plain_file);
    tcase_add_test(tests, build_id_is_the_identity_and_is_cut_at_32);
    tcase_add_test(tests, hashes_tell_any_changed_byte);
    tcase_add_test(tests, refuses_what_is_not_linked_or_not_known);
    tcase_add_test(tests, eh_frame_by_its_segment);
    tcase_add_loop_test(tests, every_encoding_of_the_pointer, 0, 9);
    tcase_add_loop_test(tests, bad_headers_are_named, 0, 6);
    tcase_add_test(tests, exidx_by_section_and_by_segment);
    tcase_add_test(tests, jit_code_has_an_address_but_no_bytes);
    tcase_add_test(tests, own_executable);
    tcase_add_test(tests, unreadable_files_say_why);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
