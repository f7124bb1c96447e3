// SPDX-License-Identifier: Apache-2.0
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "qutc/input/image.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

static const uint8_t frame_bytes[24] = {20, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1};
static const uint8_t note_a[] = {4,   0,   0,   0, 4,    0,    0,    0, NT_GNU_BUILD_ID, 0, 0, 0,
                                 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 1};
static const uint8_t note_b[] = {4,   0,   0,   0, 4,    0,    0,    0, NT_GNU_BUILD_ID, 0, 0, 0,
                                 'G', 'N', 'U', 0, 0xab, 0xcd, 0xef, 2};

#define TEXT_SECTION                                                                                                   \
    {                                                                                                                  \
        ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, frame_bytes, 24, 16                                  \
    }
#define EH_SECTION                                                                                                     \
    {                                                                                                                  \
        ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x3000, frame_bytes, 24, 8                                               \
    }
#define DEBUG_SECTION                                                                                                  \
    {                                                                                                                  \
        ".debug_frame", SHT_PROGBITS, 0, 0, frame_bytes, 24, 8                                                         \
    }
#define NOTE(BYTES)                                                                                                    \
    {                                                                                                                  \
        ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x200, BYTES, sizeof BYTES, 4                                       \
    }

static struct build_buffer debug_elf(const uint8_t *note, uint16_t machine)
{
    return build_elf(
        &(struct build_elf){.machine = machine,
                            .sections = {DEBUG_SECTION,
                                         {".eh_frame", SHT_NOBITS, SHF_ALLOC, 0x3000, NULL, 24, 8},
                                         {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x200, note, sizeof note_a, 4}}});
}

static struct input_image *open_in(const char *directory, const char *path)
{
    struct input_image *image = NULL;
    struct base_error error = {0};
    struct input_image_options options = {.debug_root = directory};
    input_image_open(path, NULL, 0, 0, &options, &image, &error);
    ck_assert_ptr_nonnull(image);
    return image;
}

static void check_found(const struct input_image *image)
{
    ck_assert_uint_eq(image->damage_count, 0);
    ck_assert_uint_eq(image->frame_count, 2);
    ck_assert_int_eq(image->frame[0].kind, INPUT_FRAME_DEBUG);
    ck_assert_int_eq(image->frame[0].from, INPUT_FROM_DEBUG_FILE);
    ck_assert_int_eq(image->frame[1].kind, INPUT_FRAME_EH);
    ck_assert_int_eq(image->frame[1].from, INPUT_FROM_FILE);
    ck_assert_uint_eq(image->debug_frame_bytes, 0);
}

START_TEST(by_build_id)
{
    char *directory = build_directory();
    struct build_buffer main_file =
        build_elf(&(struct build_elf){.sections = {TEXT_SECTION, EH_SECTION, NOTE(note_a)}});
    char *path = build_file(directory, "lib.so", main_file.data, main_file.size);
    struct input_image *image = open_in(directory, path);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_uint_eq(image->damage_count, 0); // no debug file is no damage
    input_image_close(image);

    struct build_buffer debug = debug_elf(note_a, 0);
    free(build_file(directory, ".build-id/ab/cdef01.debug", debug.data, debug.size));
    image = open_in(directory, path);
    check_found(image);
    input_image_close(image);
    free(debug.data);

    for (int i = 0; i < 2; i++) { // another build's, another machine's
        debug = i ? debug_elf(note_a, EM_AARCH64) : debug_elf(note_b, 0);
        free(build_file(directory, ".build-id/ab/cdef01.debug", debug.data, debug.size));
        image = open_in(directory, path);
        ck_assert_uint_eq(image->frame_count, 1);
        ck_assert_uint_eq(image->damage_count, 1);
        ck_assert_str_eq(image->damage.section, "");
        ck_assert_ptr_nonnull(strstr(image->damage.detail, "debug file "));
        input_image_close(image);
        free(debug.data);
    }
    free(main_file.data);
    free(path);
    build_remove(directory);
}
END_TEST

static struct build_buffer linked_elf(const char *name, uint32_t crc)
{
    struct build_buffer link = {0};
    build_add(&link, name, strlen(name) + 1);
    build_align(&link, 4);
    build_add(&link, &crc, sizeof crc);
    struct build_buffer file = build_elf(&(struct build_elf){
        .sections = {TEXT_SECTION, EH_SECTION, {".gnu_debuglink", SHT_PROGBITS, 0, 0, link.data, link.size, 4}}});
    free(link.data);
    return file;
}

START_TEST(by_link)
{
    char *directory = build_directory();
    struct build_buffer debug = debug_elf(note_a, 0);
    uint32_t crc = (uint32_t)crc32(0, debug.data, (uInt)debug.size);
    struct build_buffer main_file = linked_elf("lib.debug", crc);
    char *path = build_file(directory, "lib/lib.so", main_file.data, main_file.size);
    char *own_directory = realpath(directory, NULL);
    char rooted[4096];
    snprintf(rooted, sizeof rooted, "root%s/lib/lib.debug", own_directory);
    char root[4096];
    snprintf(root, sizeof root, "%s/root", directory);
    const char *const places[] = {"lib/lib.debug", "lib/.debug/lib.debug", rooted};
    for (size_t i = 0; i < 3; i++) {
        char *debug_path = build_file(directory, places[i], debug.data, debug.size);
        struct input_image *image = open_in(root, path);
        check_found(image);
        input_image_close(image);
        unlink(debug_path);
        free(debug_path);
    }
    free(build_file(directory, "lib/lib.debug", debug.data, debug.size));
    free(main_file.data);
    main_file = linked_elf("lib.debug", crc ^ 1);
    free(build_file(directory, "lib/lib.so", main_file.data, main_file.size));
    struct input_image *image = open_in(root, path);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_uint_eq(image->damage_count, 1);
    input_image_close(image);

    free(main_file.data);
    main_file = linked_elf("../lib/lib.debug", crc); // a name may not choose another directory
    free(build_file(directory, "lib/lib.so", main_file.data, main_file.size));
    image = open_in(root, path);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_uint_eq(image->damage_count, 0);
    input_image_close(image);
    free(main_file.data);
    free(debug.data);
    free(own_directory);
    free(path);
    build_remove(directory);
}
END_TEST

START_TEST(a_debug_file_itself_has_no_frames_but_is_no_damage)
{
    static const uint8_t header[8] = {1, 0x1b, 0xff, 0xff, 0xfc, 0x0f, 0, 0};
    // As split by tools that leave the program headers as they were.
    struct build_buffer file = build_elf(&(struct build_elf){
        .sections = {TEXT_SECTION,
                     {".eh_frame", SHT_NOBITS, SHF_ALLOC, 0x3000, NULL, 24, 8},
                     {".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 0x2000, header, sizeof header, 4}},
        .segments = {{PT_LOAD, PF_R | PF_X, ".text", 0}, {PT_GNU_EH_FRAME, PF_R, ".eh_frame_hdr", 0}}});
    struct input_image *image;
    struct base_error error = {0};
    ck_assert_int_eq(input_image_open_memory((struct base_bytes){file.data, file.size}, "split", NULL, &image, &error),
                     0);
    ck_assert_uint_eq(image->frame_count, 0);
    ck_assert_uint_eq(image->damage_count, 0);
    input_image_close(image);
    free(file.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("debug_file");
    TCase *tests = tcase_create("debug_file");
    tcase_add_test(tests, by_build_id);
    tcase_add_test(tests, by_link);
    tcase_add_test(tests, a_debug_file_itself_has_no_frames_but_is_no_damage);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
