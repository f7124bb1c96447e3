// SPDX-License-Identifier: Apache-2.0
// Build-ids among notes: where they begin, whatever stands before them, and never past the end.
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "libqut/elf/build_id.h"
#include "tests/support/tap.h"

struct notes {
    uint8_t bytes[512];
    size_t size;
};

static void pad(struct notes *notes, size_t alignment)
{
    while (notes->size % alignment)
        notes->bytes[notes->size++] = 0xee;
}

static size_t add(struct notes *notes, const char *name, uint32_t type, uint32_t value_size, size_t alignment)
{
    pad(notes, alignment);
    const Elf32_Nhdr header = {(uint32_t)strlen(name) + 1, value_size, type};
    memcpy(notes->bytes + notes->size, &header, sizeof header);
    notes->size += sizeof header;
    memcpy(notes->bytes + notes->size, name, header.n_namesz);
    notes->size += header.n_namesz;
    pad(notes, alignment);
    size_t at = notes->size;
    memset(notes->bytes + at, 0xab, value_size);
    notes->size += value_size;
    return at;
}

// From a block of exactly that size, so that a sanitizer sees a read behind it.
static uint32_t find(const struct notes *notes, size_t size, uint64_t alignment, size_t *at)
{
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact)
        return 0;
    memcpy(exact, notes->bytes, size);
    uint32_t found = elf_find_build_id(exact, size, alignment, at);
    free(exact);
    return found;
}

static void check_behind_others(size_t alignment)
{
    struct notes notes = {0};
    size_t at = 0;
    add(&notes, "GNU", 5, 16, alignment); // NT_GNU_PROPERTY_TYPE_0
    add(&notes, "stapsdt", 3, 13, alignment);
    add(&notes, "odd", NT_GNU_BUILD_ID, 7, alignment);
    size_t expected = add(&notes, "GNU", NT_GNU_BUILD_ID, 20, alignment);
    uint32_t size = find(&notes, notes.size, alignment, &at);
    CHECK(size == 20 && at == expected, "aligned to %zu: %u bytes at %zu, not at %zu", alignment, size, at, expected);
    for (size_t cut = 0; cut < notes.size; cut++)
        if (!CHECK(find(&notes, cut, alignment, &at) == 0, "cut off after %zu bytes", cut))
            return;
}

TEST(found_behind_other_notes)
{
    check_behind_others(4);
    check_behind_others(8);
}

TEST(an_unusual_alignment_counts_as_4)
{
    struct notes notes = {0};
    size_t at = 0;
    add(&notes, "stapsdt", 3, 5, 4);
    size_t expected = add(&notes, "GNU", NT_GNU_BUILD_ID, 8, 4);
    const uint64_t stated[] = {0, 1, 3, 4, 16, UINT64_MAX};
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++)
        CHECK(find(&notes, notes.size, stated[i], &at) == 8 && at == expected, "%zu", at);
}

TEST(sizes_are_not_believed)
{
    const uint32_t hostile[] = {UINT32_MAX, UINT32_MAX - 3, UINT32_MAX - 11, 0x80000000, 512};
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++)
        for (int field = 0; field < 2; field++) {
            struct notes notes = {0};
            size_t at = 0;
            add(&notes, "GNU", NT_GNU_BUILD_ID, 20, 4);
            memcpy(notes.bytes + 4 * field, &hostile[i], sizeof hostile[i]);
            CHECK(find(&notes, notes.size, 4, &at) == 0, "0x%x in field %d", (unsigned)hostile[i], field);
        }
}

TEST(empty_and_too_long_ones_are_none)
{
    struct notes notes = {0};
    size_t at = 0;
    add(&notes, "GNU", NT_GNU_BUILD_ID, 0, 4);
    add(&notes, "GNU", NT_GNU_BUILD_ID, ELF_BUILD_ID_MAX + 1, 4);
    CHECK(find(&notes, notes.size, 4, &at) == 0, "at %zu", at);
    size_t expected = add(&notes, "GNU", NT_GNU_BUILD_ID, ELF_BUILD_ID_MAX, 4);
    CHECK(find(&notes, notes.size, 4, &at) == ELF_BUILD_ID_MAX && at == expected, "at %zu", at);
}

int main(void)
{
    RUN(found_behind_other_notes);
    RUN(an_unusual_alignment_counts_as_4);
    RUN(sizes_are_not_believed);
    RUN(empty_and_too_long_ones_are_none);
    return tap_finish();
}
