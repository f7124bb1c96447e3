// SPDX-License-Identifier: Apache-2.0
// Finding what an image exports, and what a symbol file says of itself: against this process's loader, and with bytes
// that are missing or wrong.
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/arch/native.h"
#include "libqut/art/jit_list.h"
#include "libqut/elf/dynamic_symbol.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/modules/jit/code.h"

// ---- symbols

static size_t read_count, fails_from, fails_at = SIZE_MAX; // from a read on; one alone

static size_t read_own(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    const size_t number = read_count++;
    if (number >= fails_from || number == fails_at)
        return 0;
    memcpy(bytes, (const void *)(uintptr_t)address, size);
    return size;
}

static const struct elf_art_memory own = {.read = read_own, .arch = &arch_native_arch};

struct image {
    uintptr_t load_bias, dynamic;
    const void *inside; // of it
};

static int find_image(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct image *image = argument;
    bool is_it = false;
    uintptr_t dynamic = 0;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        is_it = is_it || (header->p_type == PT_LOAD && (uintptr_t)image->inside - start < header->p_memsz);
        if (header->p_type == PT_DYNAMIC)
            dynamic = start;
    }
    if (!is_it)
        return 0;
    image->load_bias = info->dlpi_addr;
    image->dynamic = dynamic;
    return 1;
}

TEST(symbols_are_where_the_loader_finds_them)
{
    static const char *const names[] = {"getpid", "qsort", "environ", "stdout", "abort", "strtol", "no_such_symbol"};
    void *self = dlopen(NULL, RTLD_NOW);
    struct image image = {.inside = dlsym(self, "getpid")};
    if (!image.inside || !dl_iterate_phdr(find_image, &image) || !image.dynamic)
        SKIP("the C library is no image of its own");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        // Not from the program, which has copies of variables.
        Dl_info info;
        uintptr_t expected = (uintptr_t)dlsym(RTLD_NEXT, names[i]);
        if (expected && (!dladdr((void *)expected, &info) || (uintptr_t)info.dli_fbase != image.load_bias))
            continue;
        fails_from = SIZE_MAX;
        read_count = 0;
        uint64_t found = elf_art_find_symbol(&own, image.load_bias, image.dynamic, names[i]);
        CHECK(found == expected, "%s: %#llx, and not %#llx", names[i], (unsigned long long)found,
              (unsigned long long)expected);
        size_t reads = read_count;
        CHECK(reads < 200, "%s: %zu reads", names[i], reads);
        for (fails_from = 0; fails_from < reads; fails_from++) {
            read_count = 0;
            found = elf_art_find_symbol(&own, image.load_bias, image.dynamic, names[i]);
            CHECK(found == 0, "%s without read %zu: %#llx", names[i], fails_from, (unsigned long long)found);
        }
    }
}

// What is not there is known by few reads; one read that fails loses names, and makes none.
TEST(several_symbols_are_looked_for_at_once)
{
    enum { NAMES = 5, THERE = 3 };
    static const char *const names[NAMES] = {"getpid", "no_such_symbol", "qsort", "nor_this_one", "strtol"};
    uint64_t expected[NAMES], found[NAMES];
    void *self = dlopen(NULL, RTLD_NOW);
    struct image image = {.inside = dlsym(self, "getpid")};
    if (!image.inside || !dl_iterate_phdr(find_image, &image) || !image.dynamic)
        SKIP("the C library is no image of its own");
    fails_from = SIZE_MAX;
    size_t alone = read_count = 0, there = 0;
    for (size_t i = 0; i < NAMES; i++)
        there += (expected[i] = elf_art_find_symbol(&own, image.load_bias, image.dynamic, names[i])) != 0;
    alone = read_count;
    CHECK(there == THERE, "%zu of them", there);
    read_count = 0;
    elf_art_find_symbols(&own, image.load_bias, image.dynamic, names, NAMES, found, NULL);
    const size_t together = read_count;
    CHECK(memcmp(found, expected, sizeof found) == 0, "the same as one by one");
    CHECK(together < alone, "%zu reads, one by one %zu", together, alone);
    for (fails_at = 0; fails_at < together; fails_at++) {
        read_count = 0;
        elf_art_find_symbols(&own, image.load_bias, image.dynamic, names, NAMES, found, NULL);
        for (size_t i = 0; i < NAMES; i++)
            CHECK(found[i] == 0 || found[i] == expected[i], "%s without read %zu: %#llx", names[i], fails_at,
                  (unsigned long long)found[i]);
    }
    fails_at = SIZE_MAX;
}

// ---- symbol files

static uint8_t file[CODE_SYMFILE_BYTES_MAX];
static const struct code_method method = {.address = 0x10000, .frame_bytes = 64};

TEST(a_symbol_file_says_where_its_code_is)
{
    struct art_jit_range ranges[2], frames[2];
    size_t size = code_symfile(&method, 1, file);
    size_t count = art_jit_code_ranges(&arch_native_arch, file, size, ranges, 2);
    CHECK(count == 1 && ranges[0].start == method.address && ranges[0].end == method.address + MACHINE_BYTES,
          "%zu ranges", count);
    count = art_jit_frame_sections(&arch_native_arch, file, size, frames, 2);
    CHECK(count == 1 && frames[0].end <= size && frames[0].start < frames[0].end, "%zu sections", count);
    const struct arch *other = arch_native_arch.id == QUT_ARCH_ARM ? &arch_x86 : &arch_arm;
    CHECK(art_jit_code_ranges(other, file, size, ranges, 2) == 0, "another machine's");
    fails_from = 0;
    CHECK(art_jit_complete_symfile(&own, file, size), "nothing is missing where nothing is loaded elsewhere");
}

TEST(a_relocatable_file_gets_what_was_loaded)
{
    static uint8_t loaded[64];
    memset(loaded, 0x77, sizeof loaded);
    size_t size = code_symfile(&method, 1, file);
    ElfW(Ehdr) header;
    memcpy(&header, file, sizeof header);
    header.e_type = ET_REL;
    memcpy(file, &header, sizeof header);
    uint8_t *at = file + header.e_shoff + 2u * header.e_shentsize;
    ElfW(Shdr) section;
    memcpy(&section, at, sizeof section);
    section.sh_flags = SHF_ALLOC;
    section.sh_addr = (uintptr_t)loaded;
    section.sh_size = sizeof loaded;
    memcpy(at, &section, sizeof section);
    fails_from = SIZE_MAX;
    CHECK(art_jit_complete_symfile(&own, file, size), "it can be read");
    CHECK(file[section.sh_offset] == 0x77 && file[section.sh_offset + sizeof loaded - 1] == 0x77 &&
              file[section.sh_offset - 1] != 0x77,
          "the section's bytes, and no others");
    read_count = fails_from = 0;
    CHECK(!art_jit_complete_symfile(&own, file, size), "it cannot be read");
    fails_from = SIZE_MAX;
    section.sh_size = size;
    memcpy(at, &section, sizeof section);
    CHECK(!art_jit_complete_symfile(&own, file, size), "it reaches beyond the file");
}

// Exactly as long as it says, so that a sanitizer sees each step beyond.
TEST(spoiled_files_are_survived)
{
    size_t size = code_symfile(&method, 1, file);
    struct art_jit_range ranges[2];
    fails_from = 0;
    for (size_t length = 0; length <= size; length++) {
        uint8_t *copy = malloc(length + 1);
        memcpy(copy, file, length);
        size_t count = art_jit_code_ranges(&arch_native_arch, copy, length, ranges, 2);
        CHECK(length == size || count == 0, "%zu ranges in %zu of %zu bytes", count, length, size);
        art_jit_frame_sections(&arch_native_arch, copy, length, ranges, 2);
        art_jit_complete_symfile(&own, copy, length);
        free(copy);
    }
    uint8_t *copy = malloc(size);
    memcpy(copy, file, size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        art_jit_code_ranges(&arch_native_arch, copy, size, ranges, 2);
        size_t count = art_jit_frame_sections(&arch_native_arch, copy, size, ranges, 2);
        for (size_t i = 0; i < count; i++)
            CHECK(ranges[i].start <= ranges[i].end && ranges[i].end <= size, "bit %zu", bit);
        art_jit_complete_symfile(&own, copy, size);
        memcpy(copy, file, size);
    }
    free(copy);
}

int main(void)
{
    RUN(symbols_are_where_the_loader_finds_them);
    RUN(several_symbols_are_looked_for_at_once);
    RUN(a_symbol_file_says_where_its_code_is);
    RUN(a_relocatable_file_gets_what_was_loaded);
    RUN(spoiled_files_are_survived);
    return tap_finish();
}
