// SPDX-License-Identifier: Apache-2.0
// The reader of JITs' lists over a memory that is not there in places and that changes between reads.
#include <stdlib.h>

#include "tests/support/fake_jit_list.h"
#include "tests/support/tap.h"

static const struct arch *const arches[] = {&arch_x86_64, &arch_aarch64, &arch_arm, &arch_x86, &arch_riscv64};
enum { ARCHES = sizeof arches / sizeof *arches, LAYOUTS = 3 };

#define EACH_FORM(a, l)                                                                                                \
    for (unsigned a = 0; a < ARCHES; a++)                                                                              \
        for (unsigned l = 0; l < LAYOUTS; l++)

// Which entries are there, as bits.
static uint64_t entries_of(const struct art_jit_list *read)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < read->count; i++)
        bits |= (uint64_t)1 << (read->entries[i].address - FAKE_ENTRIES) / FAKE_ENTRY_STRIDE;
    return bits;
}

static struct fake_list list;

// Entries 0 to 4, the newest first; 2 is a sentinel.
static void five_entries(unsigned a, unsigned l)
{
    fake_init(&list, arches[a], (enum art_jit_layout)l);
    for (unsigned i = 0; i < 5; i++)
        fake_add(&list, i, i == 2 ? 0 : fake_symfile_at(i), i == 2 ? 0 : 40 + i);
}
enum { FIVE_ENTRIES = 1 | 2 | 8 | 16 };

TEST(reads_every_layout)
{
    EACH_FORM(a, l)
    {
        five_entries(a, l);
        struct art_jit_list read;
        enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
        CHECK(fault == ART_JIT_FINE && read.count == 4 && read.descriptor.layout == l, "%s, layout %u: %d, %zu entries",
              arches[a]->name, l, fault, read.count);
        static const unsigned expected[] = {4, 3, 1, 0};
        for (unsigned i = 0; i < 4 && i < read.count; i++) {
            const struct art_jit_entry *entry = &read.entries[i];
            unsigned index = expected[i];
            bool right = entry->address == fake_entry_at(index) && entry->symfile_address == fake_symfile_at(index) &&
                         entry->symfile_bytes == 40 + index && entry->timestamp == (l ? 1000 + index : 0) &&
                         entry->seqlock == (l == ART_JIT_ANDROID2 ? 2 : 0);
            CHECK(right, "%s, layout %u, entry %u", arches[a]->name, l, index);
            CHECK(art_jit_entry_holds(&list.memory, &read.descriptor, entry), "%s, layout %u, entry %u",
                  arches[a]->name, l, index);
        }
        CHECK(art_jit_is_unchanged(&list.memory, &read.descriptor), "%s, layout %u", arches[a]->name, l);
        art_jit_list_free(&read);
    }
}

TEST(other_versions_are_refused)
{
    struct art_jit_list read;
    five_entries(0, ART_JIT_ANDROID2);
    list.bytes[FAKE_DESCRIPTOR - FAKE_BASE] = 2;
    enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_BAD_VERSION && read.count == 0, "%d", fault);
    five_entries(0, ART_JIT_ANDROID2);
    list.bytes[fake_extension(&list) - FAKE_BASE + 7] = '3';
    fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_BAD_VERSION && read.count == 0, "Android3: %d", fault);
    five_entries(0, ART_JIT_ANDROID2);
    fake_put(&list, fake_extension(&list) + 16, 40, 4); // entries without room for their locks
    fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_BAD_VERSION && read.count == 0, "small entries: %d", fault);
    // The descriptor of another program ends where the Android part would begin, and so may what can be read.
    five_entries(0, ART_JIT_GDB);
    list.hole = FAKE_DESCRIPTOR + 24;
    fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_FINE && entries_of(&read) == FIVE_ENTRIES, "%d", fault);
    art_jit_list_free(&read);
}

TEST(tags_of_pointers_are_no_part_of_them)
{
    five_entries(1, ART_JIT_ANDROID2);
    uint64_t tag = (uint64_t)0xb4 << 56, entry = fake_entry_at(4);
    fake_put(&list, fake_first_link(&list), entry | tag, 8);
    fake_set(&list, entry, FAKE_NEXT, fake_entry_at(3) | tag);
    fake_set(&list, entry, FAKE_ADDRESS, fake_symfile_at(4) | tag);
    struct art_jit_list read;
    enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_FINE && entries_of(&read) == FIVE_ENTRIES, "%d", fault);
    CHECK(read.count && read.entries[0].symfile_address == fake_symfile_at(4), "the symbol file's");
    art_jit_list_free(&read);
}

static const unsigned listed[] = {4, 3, 1, 0}; // of the five
enum { LISTED = sizeof listed / sizeof *listed };

// Whether it is the newest of them, each once.
static bool are_newest(const struct art_jit_list *read)
{
    for (size_t i = 0; i < read->count; i++)
        if (i == LISTED || read->entries[i].address != fake_entry_at(listed[i]))
            return false;
    return true;
}

// All of the list, or what stands before what is missing, and a reason.
TEST(every_byte_missing_in_turn)
{
    EACH_FORM(a, l)
    {
        five_entries(a, l);
        unsigned unreadable = 0;
        for (uint64_t hole = FAKE_DESCRIPTOR - 16; hole < fake_entry_at(6); hole++) {
            list.hole = hole;
            list.read_count = 0;
            struct art_jit_list read;
            enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
            bool all = fault == ART_JIT_FINE && entries_of(&read) == FIVE_ENTRIES;
            bool some = fault == ART_JIT_UNREADABLE && read.count < LISTED && are_newest(&read);
            // Without the part that says so, a list of Android's is one of GDB's.
            CHECK(all || some, "%s, layout %u, without %#llx: %d, entries %#llx", arches[a]->name, l,
                  (unsigned long long)hole, fault, (unsigned long long)entries_of(&read));
            CHECK(list.read_count < 100, "%zu reads", list.read_count);
            unreadable += some;
            art_jit_list_free(&read);
        }
        CHECK(unreadable > 100, "%s, layout %u: only %u", arches[a]->name, l, unreadable);
    }
}

// A core of a process whose writer was at work: nobody will say that the list stands still.
TEST(memory_that_never_changes)
{
    for (unsigned l = 0; l < LAYOUTS; l++) {
        five_entries(0, l);
        list.memory.never_changes = true;
        fake_change_begins(&list);
        fake_set(&list, fake_entry_at(3), FAKE_PREVIOUS, 0x1234); // a link that the reader did not follow
        fake_set(&list, fake_entry_at(1), FAKE_NEXT, 0x10);       // and one that leads nowhere
        struct art_jit_list read;
        enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
        CHECK(fault == ART_JIT_UNREADABLE && read.count == 3 && are_newest(&read), "layout %u: %d, %zu entries", l,
              fault, read.count);
        for (size_t i = 0; i < read.count; i++) {
            uint8_t *bytes;
            size_t size;
            fault = art_jit_copy_symfile(&list.memory, &read.descriptor, &read.entries[i], &bytes, &size);
            CHECK(fault == ART_JIT_FINE, "layout %u, entry %zu: %d", l, i, fault);
            free(bytes);
        }
        art_jit_list_free(&read);
    }
}

TEST(cycles_end)
{
    for (unsigned l = 0; l < LAYOUTS; l++)
        for (unsigned from = 0; from < 5; from++)
            for (unsigned to = from; to < 5; to++) {
                five_entries(0, l);
                fake_set(&list, fake_entry_at(from), FAKE_NEXT, fake_entry_at(to));
                struct art_jit_list read;
                enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
                size_t wanted = 0;
                while (wanted < LISTED && listed[wanted] >= from)
                    wanted++;
                CHECK(fault == ART_JIT_CYCLE && read.count == wanted && are_newest(&read),
                      "layout %u, %u to %u: %d, %zu entries", l, from, to, fault, read.count);
                CHECK(list.read_count < 1000, "%zu reads", list.read_count);
                art_jit_list_free(&read);
            }
}

// ---- long lists

static size_t long_count;

static size_t read_long(void *context, uint64_t address, void *bytes, size_t size)
{
    enum { START = 0x10000000, STRIDE = 48 };
    (void)context;
    list.read_count++;
    uint8_t *out = bytes;
    for (size_t i = 0; i < size; i++) {
        uint64_t at = address + i;
        if (at >= FAKE_BASE && at < FAKE_BASE + FAKE_BYTES) {
            out[i] = list.bytes[at - FAKE_BASE];
            continue;
        }
        if (at < START || (at - START) / STRIDE >= long_count)
            return i;
        uint64_t index = (at - START) / STRIDE, field = (at - START) % STRIDE / 8, byte = at % 8;
        uint64_t words[] = {index + 1 == long_count ? 0 : START + (index + 1) * STRIDE, 0, 0x1000, 64, index, 2};
        out[i] = (uint8_t)(words[field] >> 8 * byte);
    }
    return size;
}

TEST(long_lists_are_read_in_linear_time)
{
    fake_init(&list, &arch_x86_64, ART_JIT_ANDROID2);
    list.memory.read = read_long;
    fake_put(&list, fake_first_link(&list), 0x10000000, 8);
    for (long_count = 1000; long_count <= 100000; long_count *= 10) {
        list.read_count = 0;
        struct art_jit_list read;
        enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
        CHECK(fault == ART_JIT_FINE && read.count == long_count, "%d, %zu of %zu", fault, read.count, long_count);
        CHECK(list.read_count < 10 + long_count / 25, "%zu entries in %zu reads", long_count, list.read_count);
        art_jit_list_free(&read);
    }
    long_count = ART_JIT_ENTRIES_MAX + 1;
    struct art_jit_list read;
    enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_TOO_MANY && read.count == ART_JIT_ENTRIES_MAX, "%d, %zu entries", fault, read.count);
    art_jit_list_free(&read);
}

// ---- changes

static size_t change_at;
static unsigned change_kind;
enum { ADD, REMOVE_FIRST, REMOVE_MIDDLE, REMOVE_LAST, REPLACE, REPACK, CHANGES };

static void change_once(struct fake_list *changed, size_t read)
{
    if (read != change_at)
        return;
    switch (change_kind) {
    case ADD: fake_add(changed, 5, fake_symfile_at(5), 45); break;
    case REMOVE_FIRST: fake_remove(changed, 4); break;
    case REMOVE_MIDDLE: fake_remove(changed, 3); break;
    case REMOVE_LAST: fake_remove(changed, 0); break;
    case REPLACE:
        fake_remove(changed, 4);
        fake_add(changed, 4, fake_symfile_at(6), 46);
        break;
    case REPACK:
        fake_add(changed, 6, fake_symfile_at(6), 46);
        fake_remove(changed, 4);
        fake_remove(changed, 3);
        break;
    }
}

// The list as it was before, or as it is after; never some of both.
TEST(a_change_between_any_two_reads)
{
    static const uint64_t after[CHANGES] = {FIVE_ENTRIES | 32,  FIVE_ENTRIES & ~16u, FIVE_ENTRIES & ~8u,
                                            FIVE_ENTRIES & ~1u, FIVE_ENTRIES,        1 | 2 | 64};
    EACH_FORM(a, l)
    for (change_kind = 0; change_kind < CHANGES; change_kind++)
        for (change_at = 0; change_at < 12; change_at++) {
            five_entries(a, l);
            list.before_read = change_once;
            struct art_jit_list read;
            enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
            uint64_t bits = entries_of(&read);
            CHECK(fault == ART_JIT_FINE && (bits == FIVE_ENTRIES || bits == after[change_kind]),
                  "%s, layout %u, change %u before read %zu: %d, %#llx", arches[a]->name, l, change_kind, change_at,
                  fault, (unsigned long long)bits);
            bool changed = list.read_count > change_at;
            list.before_read = NULL;
            if (changed && bits != after[change_kind])
                CHECK(!art_jit_is_unchanged(&list.memory, &read.descriptor), "change %u, read %zu", change_kind,
                      change_at);
            art_jit_list_free(&read);
        }
}

// Another entry comes and goes all the time.
static void never_rest(struct fake_list *changed, size_t read)
{
    unsigned pace = *(unsigned *)changed->data;
    if (read % pace == 0)
        fake_add(changed, 5, fake_symfile_at(5), 45);
    else if (read % pace == pace / 2)
        fake_remove(changed, 5);
}

TEST(a_list_that_never_rests)
{
    for (unsigned l = ART_JIT_ANDROID1; l <= ART_JIT_ANDROID2; l++)
        for (unsigned pace = 2; pace < 40; pace++) {
            five_entries(0, l);
            list.before_read = never_rest;
            list.data = &pace;
            struct art_jit_list read;
            enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
            CHECK(list.read_count < 1000, "%zu reads", list.read_count);
            if (fault == ART_JIT_FINE)
                CHECK((entries_of(&read) & ~(uint64_t)32) == FIVE_ENTRIES, "layout %u, pace %u: %#llx", l, pace,
                      (unsigned long long)entries_of(&read));
            else
                CHECK(fault == ART_JIT_BUSY && read.count == 0, "layout %u, pace %u: %d", l, pace, fault);
            // The entries' own locks help where the list's does not.
            if (l == ART_JIT_ANDROID2 && pace >= 16)
                CHECK(fault == ART_JIT_FINE, "pace %u: %d", pace, fault);
            art_jit_list_free(&read);
        }
}

TEST(locks_that_stay_odd)
{
    struct art_jit_list read;
    five_entries(0, ART_JIT_ANDROID1);
    fake_change_begins(&list);
    enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_BUSY && read.count == 0, "Android1: %d", fault);

    five_entries(0, ART_JIT_ANDROID2);
    fake_change_begins(&list);
    fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_FINE && entries_of(&read) == FIVE_ENTRIES, "Android2: %d", fault);
    CHECK(!art_jit_is_unchanged(&list.memory, &read.descriptor), "nothing is said of a list with an odd lock");
    art_jit_list_free(&read);

    five_entries(0, ART_JIT_ANDROID2);
    fake_set(&list, fake_entry_at(3), FAKE_SEQLOCK, 3);
    fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
    CHECK(fault == ART_JIT_FINE && entries_of(&read) == (FIVE_ENTRIES & ~8u), "an entry's: %d, %#llx", fault,
          (unsigned long long)entries_of(&read));
    art_jit_list_free(&read);
}

TEST(an_entry_holds_until_it_is_taken_out)
{
    EACH_FORM(a, l)
    for (unsigned index = 0; index < 5; index++) {
        five_entries(a, l);
        struct art_jit_list read;
        if (index == 2 || art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read) != ART_JIT_FINE)
            continue;
        const struct art_jit_entry *entry = read.entries;
        while (entry->address != fake_entry_at(index))
            entry++;
        fake_add(&list, 5, fake_symfile_at(5), 45);
        fake_remove(&list, index == 1 ? 0 : 1);
        CHECK(art_jit_entry_holds(&list.memory, &read.descriptor, entry), "%s, layout %u, entry %u", arches[a]->name, l,
              index);
        if (index != 1) {
            fake_remove(&list, index);
            CHECK(!art_jit_entry_holds(&list.memory, &read.descriptor, entry), "%s, layout %u, entry %u removed",
                  arches[a]->name, l, index);
            fake_add(&list, index, fake_symfile_at(7), 40 + index);
            CHECK(!art_jit_entry_holds(&list.memory, &read.descriptor, entry), "%s, layout %u, entry %u again",
                  arches[a]->name, l, index);
        }
        art_jit_list_free(&read);
    }
}

// ---- symbol files

static void remove_then(struct fake_list *changed, size_t read)
{
    if (read == change_at)
        fake_remove(changed, 3);
}

TEST(a_copy_is_of_one_symbol_file)
{
    for (unsigned l = 0; l < LAYOUTS; l++) {
        struct art_jit_list read;
        five_entries(0, l);
        memset(list.bytes + (fake_symfile_at(3) - FAKE_BASE), 0x33, 43);
        enum art_jit_fault fault = art_jit_list_read(&list.memory, FAKE_DESCRIPTOR, &read);
        uint8_t *bytes = NULL;
        size_t size = 0;
        if (!CHECK(fault == ART_JIT_FINE && read.count == 4, "%d", fault))
            continue;
        struct art_jit_entry entry = read.entries[1];
        fault = art_jit_copy_symfile(&list.memory, &read.descriptor, &entry, &bytes, &size);
        CHECK(fault == ART_JIT_FINE && size == 43 && bytes[0] == 0x33 && bytes[42] == 0x33, "layout %u: %d", l, fault);
        free(bytes);

        list.hole = fake_symfile_at(3) + 42;
        fault = art_jit_copy_symfile(&list.memory, &read.descriptor, &entry, &bytes, &size);
        CHECK(fault == ART_JIT_UNREADABLE && !bytes && size == 0, "layout %u: %d", l, fault);
        list.hole = 0;

        list.before_read = remove_then;
        list.read_count = 0;
        change_at = 1; // the file has been read
        fault = art_jit_copy_symfile(&list.memory, &read.descriptor, &entry, &bytes, &size);
        CHECK(fault == ART_JIT_BUSY && !bytes && size == 0, "layout %u, removed: %d", l, fault);

        entry.symfile_bytes = ART_JIT_SYMFILE_BYTES_MAX + 1;
        fault = art_jit_copy_symfile(&list.memory, &read.descriptor, &entry, &bytes, &size);
        CHECK(fault == ART_JIT_TOO_LARGE && !bytes, "layout %u: %d", l, fault);
        art_jit_list_free(&read);
    }
}

int main(void)
{
    RUN(reads_every_layout);
    RUN(other_versions_are_refused);
    RUN(tags_of_pointers_are_no_part_of_them);
    RUN(every_byte_missing_in_turn);
    RUN(memory_that_never_changes);
    RUN(cycles_end);
    RUN(long_lists_are_read_in_linear_time);
    RUN(a_change_between_any_two_reads);
    RUN(a_list_that_never_rests);
    RUN(locks_that_stay_odd);
    RUN(an_entry_holds_until_it_is_taken_out);
    RUN(a_copy_is_of_one_symbol_file);
    return tap_finish();
}
