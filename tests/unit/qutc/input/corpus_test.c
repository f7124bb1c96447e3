// SPDX-License-Identifier: Apache-2.0
// Real files of other people's making. What readelf lists of their sections, an image must have.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "qutc/input/inputs.h"
#include "qutc/input/unpack.h"
#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"

struct listing {
    uint64_t eh_frame, debug_frame, exidx; // sizes; 0: absent
    bool debugdata;
};

static void list_line(const char *line, struct listing *listing)
{
    char name[64];
    char type[32];
    uint64_t size;
    const char *bracket = strchr(line, ']');
    if (!bracket || sscanf(bracket + 1, " %63s %31s %*x %*x %" SCNx64, name, type, &size) != 3)
        return;
    if (strcmp(type, "NOBITS") == 0)
        return;
    if (strcmp(name, ".eh_frame") == 0)
        listing->eh_frame = size;
    else if (strcmp(name, ".debug_frame") == 0)
        listing->debug_frame = size;
    else if (strcmp(name, ".ARM.exidx") == 0)
        listing->exidx = size;
    else if (strcmp(name, ".gnu_debugdata") == 0)
        listing->debugdata = true;
}

static bool run_readelf(const char *path, struct listing *listing)
{
    char command[4200];
    char line[512];
    snprintf(command, sizeof command, "readelf -SW '%s' 2>/dev/null", path);
    FILE *output = popen(command, "re");
    *listing = (struct listing){0};
    if (!output)
        return false;
    while (fgets(line, sizeof line, output))
        list_line(line, listing);
    return pclose(output) == 0;
}

static uint64_t size_of(const struct input_image *image, enum input_frame_kind kind, enum input_provenance from)
{
    for (unsigned i = 0; i < image->frame_count; i++)
        if (image->frame[i].kind == kind && image->frame[i].from == from)
            return image->frame[i].bytes.size;
    return 0;
}

static void check_against_listing(const struct input *input)
{
    struct listing listing;
    struct input_image *image;
    struct base_error error = {0};
    ck_assert_msg(input_open(input, NULL, &image, &error) == 0, "%s: %s", input->name, error.detail);
    ck_assert_msg(image->damage_count == 0, "%s: %s: %s", input->name, image->damage.section, image->damage.detail);
    ck_assert_msg(image->exec_count > 0, "%s: no code", input->name);
    ck_assert_msg(run_readelf(input->path, &listing), "readelf %s", input->path);
    ck_assert_msg(size_of(image, INPUT_FRAME_EH, INPUT_FROM_FILE) == listing.eh_frame, "%s", input->name);
    ck_assert_msg(size_of(image, INPUT_FRAME_DEBUG, INPUT_FROM_FILE) == listing.debug_frame, "%s", input->name);
    ck_assert_msg(size_of(image, INPUT_FRAME_EXIDX, INPUT_FROM_FILE) == listing.exidx, "%s", input->name);
    // Some hold nothing but symbols.
    bool symbols_only = strstr(input->name, "trampolines-only") || strstr(input->name, "libart-dexlayout64");
    ck_assert_msg((size_of(image, INPUT_FRAME_DEBUG, INPUT_FROM_GNU_DEBUGDATA) > 0) ==
                      (listing.debugdata && !symbols_only),
                  "%s", input->name);
    ck_assert_msg((image->xz_time_ns > 0) == listing.debugdata, "%s", input->name);
    input_image_close(image);
}

START_TEST(frame_sections_are_those_readelf_lists)
{
    static const struct {
        const char *name;
        size_t at_least;
    } folders[] = {{"oat", 25}, {"native", 7}, {"jit", 15}};
    struct input_inputs inputs;
    struct base_error error = {0};
    char *path = corpus_path(folders[_i].name);
    if (!path)
        return;
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, path, &error), 0);
    ck_assert_uint_ge(inputs.count, folders[_i].at_least);
    for (size_t i = 0; i < inputs.count; i++)
        check_against_listing(&inputs.items[i]);
    input_inputs_free(&inputs);
    free(path);
}
END_TEST

static bool read_whole(const char *path, struct build_buffer *buffer)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, file)) > 0;)
        build_add(buffer, chunk, got);
    return fclose(file) == 0;
}

START_TEST(every_shape_of_xz)
{
    static const char *const suffixes[] = {"", ".one-block", ".odd-sizes", ".non-power"};
    struct input_unpacker unpacker = {.left_bytes = 64 << 20};
    struct base_bytes first = {0};
    struct base_error error = {0};
    char *directory = corpus_path("xz");
    if (!directory)
        return;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char path[4096];
        struct base_bytes bytes;
        struct build_buffer packed = {0};
        snprintf(path, sizeof path, "%s/boot_arm.oat.gnu_debugdata.xz%s", directory, suffixes[i]);
        ck_assert_msg(read_whole(path, &packed), "%s", path);
        ck_assert_int_eq(
            input_unpack_xz(&unpacker, (struct base_bytes){packed.data, packed.size}, "xz", &bytes, &error), 0);
        if (i == 0)
            first = bytes;
        ck_assert_uint_eq(bytes.size, first.size);
        ck_assert_mem_eq(bytes.data, first.data, first.size);
        free(packed.data);
    }
    input_unpack_free(&unpacker);
    free(directory);
}
END_TEST

START_TEST(a_library_in_an_apk)
{
    char *path = corpus_path("snapshots/shared_lib_in_apk_arm64/ANGLEPrebuilt.apk");
    if (!path)
        return;
    struct input_inputs inputs;
    struct input_image *image;
    struct base_error error = {0};
    input_inputs_init(&inputs);
    ck_assert_int_eq(input_inputs_add_path(&inputs, path, &error), 0);
    ck_assert_uint_eq(inputs.count, 1);
    ck_assert_uint_eq(inputs.items[0].offset_bytes, 0x4000);
    ck_assert_ptr_nonnull(strstr(inputs.items[0].name, "ANGLEPrebuilt.apk!libfeature_support_angle.so"));
    ck_assert_int_eq(input_open(&inputs.items[0], NULL, &image, &error), 0);
    ck_assert_uint_eq(image->frame_count, 1);
    ck_assert_str_eq(image->arch->name, "aarch64");
    input_image_close(image);
    input_inputs_free(&inputs);
    free(path);
}
END_TEST

START_TEST(an_image_inside_a_file_that_is_no_archive)
{
    char *path = corpus_path("snapshots/apk_rorx_arm64/fake.apk");
    if (!path)
        return;
    struct input_image *image;
    struct base_error error = {0};
    ck_assert_msg(input_image_open(path, NULL, 0x4000, 0, NULL, &image, &error) == 0, "%s", error.detail);
    ck_assert_uint_ge(image->frame_count, 1);
    ck_assert_uint_eq(image->exec_count, 1);
    input_image_close(image);
    free(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("corpus");
    TCase *tests = tcase_create("corpus");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, frame_sections_are_those_readelf_lists, 0, 3);
    tcase_add_test(tests, every_shape_of_xz);
    tcase_add_test(tests, a_library_in_an_apk);
    tcase_add_test(tests, an_image_inside_a_file_that_is_no_archive);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
