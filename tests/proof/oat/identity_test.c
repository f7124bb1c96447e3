// SPDX-License-Identifier: Apache-2.0
// The identity of OAT files without build-id: the same of a file and of what is mapped of it, and of nothing else.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "libqut/art/oat_identity.h"
#include "libqut/elf/elf_head.h"
#include "qutc/qutc.h"
#include "qutc/table_file.h"
#include "tests/support/oat_writer.h"
#include "tests/support/run_suite.h"

enum { VERSIONS = 5, READ_BYTES_MAX = 100 << 10 };
static const uint32_t versions[VERSIONS] = {64, 131, 183, 230, 265};

// An image as a loader has it, between bytes that are not its own.
struct world {
    struct elf_head head;
    struct elf_art_memory memory;
    uint64_t load_bias;
    uint8_t *bytes; // from load_bias on
    uint64_t size;
    uint64_t unreadable; // address of one byte
    uint64_t read_bytes;
};

static size_t read_file(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct build_buffer *file = context;
    size_t left = offset < file->size ? file->size - (size_t)offset : 0;
    size = size < left ? size : left;
    memcpy(bytes, file->data + (size < 1 ? 0 : offset), size);
    return size;
}

static size_t read_world(void *context, uint64_t address, void *bytes, size_t size)
{
    struct world *world = context;
    uint64_t into = address - world->load_bias;
    if (into >= world->size || world->size - into < size || world->unreadable - address < size)
        return 0;
    memcpy(bytes, world->bytes + into, size);
    world->read_bytes += size;
    return size;
}

static void map(struct world *world, struct build_buffer *file)
{
    *world = (struct world){.load_bias = 0x20000000};
    ck_assert(elf_head_read(&world->head, read_file, file));
    for (unsigned i = 0; i < world->head.load_count; i++) {
        const struct elf_segment *load = &world->head.loads[i];
        uint64_t end = load->vaddr + load->memory_size + 4096;
        world->size = world->size > end ? world->size : end;
    }
    world->bytes = malloc(world->size);
    memset(world->bytes, 0xa5, world->size);
    for (unsigned i = 0; i < world->head.load_count; i++) {
        const struct elf_segment *load = &world->head.loads[i];
        memcpy(world->bytes + load->vaddr, file->data + load->offset, load->file_size);
    }
    world->memory =
        (struct elf_art_memory){.read = read_world, .context = world, .arch = arch_by_elf_machine(world->head.machine)};
}

static bool identify(struct world *world, uint8_t identity[ART_OAT_IDENTITY_BYTES])
{
    struct art_oat_segment segments[ELF_LOADS_MAX];
    const struct art_oat_image image = {&world->memory, world->load_bias, world->load_bias + world->head.dynamic.vaddr,
                                        segments, world->head.load_count};
    uint64_t header = 0;
    for (unsigned i = 0; i < image.segment_count; i++) {
        const struct elf_segment *load = &world->head.loads[i];
        segments[i] = (struct art_oat_segment){load->vaddr, load->file_size, load->flags & PF_W};
    }
    world->read_bytes = 0;
    memset(identity, 0, ART_OAT_IDENTITY_BYTES);
    bool is_oat = art_oat_identity(&image, identity, &header);
    if (is_oat)
        ck_assert_mem_eq(world->bytes + (header - world->load_bias), "oat\n", 4);
    return is_oat;
}

static bool same_as(struct world *world, const uint8_t *identity)
{
    uint8_t now[ART_OAT_IDENTITY_BYTES];
    return identify(world, now) && memcmp(now, identity, sizeof now) == 0;
}

static enum input_identity_kind identity_of_file(const struct build_buffer *file, uint8_t *identity)
{
    struct input_image *image;
    const struct input_image_options options = {.identity_only = true};
    ck_assert_int_eq(
        input_image_open_memory((struct base_bytes){file->data, file->size}, "oat", &options, &image, NULL), 0);
    enum input_identity_kind kind = image->identity_kind;
    memcpy(identity, image->identity, ART_OAT_IDENTITY_BYTES);
    input_image_close(image);
    return kind;
}

// glibc does so, bionic does not.
static void relocate_dynamic(struct world *world)
{
    unsigned word = world->memory.arch->word_bytes;
    for (uint8_t *at = world->bytes + world->head.dynamic.vaddr;; at += 2 * word) {
        uint64_t value = 0;
        memcpy(&value, at + word, word);
        value += world->load_bias;
        if (*at == DT_NULL)
            break;
        if (*at != DT_STRSZ)
            memcpy(at + word, &value, word);
    }
}

START_TEST(file_and_memory_agree)
{
    for (unsigned arch = 1; arch < QUT_ARCH_END; arch++)
        for (unsigned v = 0; v < VERSIONS; v++) {
            struct oat_spec spec;
            struct world world;
            uint8_t identity[ART_OAT_IDENTITY_BYTES];
            oat_spec_init(&spec, arch_by_id(arch), versions[v]);
            spec.frames = v % 2 ? OAT_XZ : OAT_NO_FRAMES;
            spec.no_section_headers = v == 2;
            struct build_buffer file = oat_write(&spec);
            map(&world, &file);
            ck_assert_int_eq(identity_of_file(&file, identity), INPUT_OAT_IDENTITY);
            ck_assert(same_as(&world, identity));
            relocate_dynamic(&world);
            ck_assert(same_as(&world, identity));
            free(world.bytes);
            free(file.data);
        }
}
END_TEST

START_TEST(what_differs_is_another)
{
    struct oat_spec spec;
    struct world world;
    uint8_t identity[ART_OAT_IDENTITY_BYTES], other[ART_OAT_IDENTITY_BYTES];
    oat_spec_init(&spec, &arch_aarch64, 183);
    struct build_buffer file = oat_write(&spec);
    map(&world, &file);
    ck_assert_int_eq(identity_of_file(&file, identity), INPUT_OAT_IDENTITY);
    for (uint64_t at = OAT_DATA_VADDR + 4; at < OAT_DATA_VADDR + spec.data_bytes; at++) {
        world.bytes[at] ^= 1;
        ck_assert(!same_as(&world, identity));
        world.bytes[at] ^= 1;
    }
    for (uint64_t at = spec.text_vaddr; at < spec.text_end; at++) {
        world.bytes[at] ^= 0x80;
        ck_assert(!same_as(&world, identity));
        world.bytes[at] ^= 0x80;
    }
    world.bytes[spec.text_end] ^= 1;
    world.bytes[OAT_DATA_VADDR - 1] ^= 1;
    ck_assert(same_as(&world, identity));
    free(world.bytes);
    free(file.data);

    spec.method_count--;
    file = oat_write(&spec);
    ck_assert_int_eq(identity_of_file(&file, other), INPUT_OAT_IDENTITY);
    ck_assert_mem_ne(other, identity, sizeof other);
    free(file.data);
}
END_TEST

START_TEST(what_cannot_be_told_has_none)
{
    struct oat_spec spec;
    struct world world;
    uint8_t identity[ART_OAT_IDENTITY_BYTES];
    oat_spec_init(&spec, &arch_arm, 230);
    struct build_buffer file = oat_write(&spec);
    map(&world, &file);
    ck_assert(identify(&world, identity));
    world.unreadable = world.load_bias + spec.text_end - 1;
    ck_assert(!identify(&world, identity));
    world.unreadable = world.load_bias + OAT_DATA_VADDR + 40;
    ck_assert(!identify(&world, identity));
    world.unreadable = 0;
    for (unsigned i = 0; i < 2; i++) { // data, code
        world.head.loads[i].flags |= PF_W;
        ck_assert(!identify(&world, identity));
        world.head.loads[i].flags &= ~(uint32_t)PF_W;
        world.head.loads[i].file_size -= spec.text_end - spec.text_vaddr;
        ck_assert(i == 0 || !identify(&world, identity));
        world.head.loads[i].file_size += spec.text_end - spec.text_vaddr;
    }
    uint8_t *name = memmem(world.bytes, world.size, "oatlastword", 11);
    ck_assert_ptr_nonnull(name);
    *name = 'O';
    ck_assert(!identify(&world, identity));
    *name = 'o';
    ck_assert(identify(&world, identity));
    memset(world.bytes + OAT_DATA_VADDR, 0, 4);
    ck_assert(!identify(&world, identity));
    memset(file.data + spec.data_offset, 0, spec.data_bytes);
    ck_assert_int_eq(identity_of_file(&file, identity), INPUT_CONTENT_HASH);
    free(world.bytes);
    free(file.data);
}
END_TEST

// Spoiled files, at each byte: an answer in bounded time, inside the bytes (the sanitizers look).
START_TEST(spoiled_files)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0xff};
    for (unsigned arch = 1; arch < QUT_ARCH_END; arch++) {
        struct oat_spec spec;
        uint8_t identity[ART_OAT_IDENTITY_BYTES];
        oat_spec_init(&spec, arch_by_id(arch), 183);
        struct build_buffer file = oat_write(&spec);
        for (size_t at = 0; at < file.size; at++)
            for (unsigned v = 0; v < sizeof values; v++) {
                struct input_image *image;
                uint8_t was = file.data[at];
                const struct input_image_options options = {.identity_only = true};
                file.data[at] = values[v];
                if (input_image_open_memory((struct base_bytes){file.data, file.size}, "oat", &options, &image, NULL) ==
                    0)
                    input_image_close(image);
                file.data[at] = was;
            }
        ck_assert_int_eq(identity_of_file(&file, identity), INPUT_OAT_IDENTITY);
        free(file.data);
    }
}
END_TEST

static const char *const real_files[] = {
    "oat/android8.1_arm/boot-okhttp.oat",
    "oat/android8.1_arm64/boot-apache-xml.oat",
    "oat/android10_arm/boot.oat",
    "oat/android14_arm/boot.oat",
    "oat/android14_arm64/boot.oat",
    "oat/art_137/137-cfi_arm.odex",
    "oat/art_137/137-cfi_x86.odex",
    "oat/art11_own/app_arm_none.odex",
    "oat/art11_own/app_arm64_none.odex",
    "oat/art11_own/app_arm64_mini.odex",
    "oat/art11_own/app_x86_full.odex",
    "oat/art11_own/app_x86_64_mini.odex",
    "oat/art11_boot_x86/boot-hello.oat",
    "oat/art11_boot_x86_64/boot-hello.oat",
    "art11/x86_64_aot/boot-snap.oat",
    "art11/arm64_aot/boot-snap.oat",
    "oat/android8.1_arm/trampolines-only-boot.oat",
};
enum { REAL_FILES = sizeof real_files / sizeof *real_files };

START_TEST(real_files_differ)
{
    static uint8_t identities[REAL_FILES][ART_OAT_IDENTITY_BYTES];
    unsigned count = 0;
    for (unsigned i = 0; i < REAL_FILES; i++) {
        char *path = corpus_path(real_files[i]);
        struct build_buffer file = {0};
        struct world world;
        uint8_t of_file[ART_OAT_IDENTITY_BYTES], *identity = identities[count];
        if (!path)
            continue;
        ck_assert_int_eq(qutc_read_file(path, SIZE_MAX, &file.data, &file.size, NULL), 0);
        map(&world, &file);
        ck_assert_msg(identify(&world, identity), "%s", path);
        ck_assert_uint_le(world.read_bytes, READ_BYTES_MAX);
        if (identity_of_file(&file, of_file) == INPUT_OAT_IDENTITY) // the others have a build-id
            ck_assert_mem_eq(of_file, identity, sizeof of_file);
        for (unsigned k = 0; k < count; k++)
            ck_assert_msg(memcmp(identities[k], identity, sizeof of_file) != 0, "%s", path);
        printf("%s: %ju bytes read\n", real_files[i], (uintmax_t)world.read_bytes);
        count++;
        free(world.bytes);
        free(file.data);
        free(path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_identity");
    TCase *tcase = tcase_create("oat_identity");
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, file_and_memory_agree);
    tcase_add_test(tcase, what_differs_is_another);
    tcase_add_test(tcase, what_cannot_be_told_has_none);
    tcase_add_test(tcase, spoiled_files);
    tcase_add_test(tcase, real_files_differ);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
