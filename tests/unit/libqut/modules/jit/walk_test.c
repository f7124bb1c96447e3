// SPDX-License-Identifier: Apache-2.0
// Code made at run time in walks of this process, step by step: there is no thread that looks after it, so that nothing
// becomes known but by qut_refresh. A walk may be told to wait; it must never be given a rule of other code.
//
// Usage: walk_test [ENTRIES]
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/discipline.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/modules/jit/player.h"

enum { LAYOUTS = 3 };

static struct owner owner;
static struct player player;
static uint8_t symfiles[CODE_SLOTS][CODE_SYMFILE_BYTES_MAX];
static size_t symfile_bytes[CODE_SLOTS];

static struct code_method make(unsigned slot, unsigned size)
{
    struct code_method method = code_emit(slot, size);
    symfile_bytes[slot] = code_symfile(&method, 1, symfiles[slot]);
    return method;
}

static struct jit_entry *add(unsigned slot, unsigned size)
{
    make(slot, size);
    return owner_add(&owner, symfiles[slot], symfile_bytes[slot]);
}

static const char *const verdicts[] = {"crossed", "pending", "unknown", "wrong"};

static void expect(unsigned slot, enum verdict wanted, const char *when, int line)
{
    enum verdict found = player_walk(&player, slot);
    tap_check(found == wanted, __FILE__, line, when, "layout %d: %s; %s", owner.layout, verdicts[found],
              player_text(&player));
}
#define EXPECT(slot, wanted, when) expect(slot, wanted, when, __LINE__)

static struct qut_stats stats(void)
{
    struct qut_stats now;
    qut_get_stats(&now, sizeof now);
    return now;
}

TEST(registered_code_is_crossed)
{
    add(0, 5);
    EXPECT(0, PENDING, "before qut_refresh");
    CHECK(qut_wait(0) != 0, "there is something to wait for");
    qut_refresh();
    CHECK(qut_wait(0) == 0, "nothing is left to wait for");
    EXPECT(0, CROSSED, "after it");
    uint32_t expected = owner.layout == ART_JIT_GDB ? QUT_FRAME_JIT : QUT_FRAME_JIT | QUT_FRAME_MANAGED;
    CHECK((player.jit_frame_flags & (QUT_FRAME_JIT | QUT_FRAME_MANAGED)) == expected, "flags %#x",
          player.jit_frame_flags);
    for (unsigned slot = 1; slot < 20; slot++)
        add(slot, 3 * slot);
    qut_refresh();
    for (unsigned slot = 0; slot < 20; slot++)
        EXPECT(slot, CROSSED, "one of many");
    struct qut_stats now = stats();
    CHECK(now.jit_entries == 20 && now.jit_pending == 0 && now.jit_no_table == 0, "%llu entries",
          (unsigned long long)now.jit_entries);
}

TEST(unregistered_code_is_unknown)
{
    add(0, 5);
    qut_refresh();
    make(1, 6);
    EXPECT(1, UNKNOWN, "not registered");
    struct jit_entry *entry = add(2, 7);
    owner_remove(&owner, entry);
    qut_refresh();
    EXPECT(2, UNKNOWN, "no longer registered");
}

// Whatever happens to the entry before, the frame is another one.
TEST(other_code_in_the_same_place)
{
    for (unsigned size = 1; size < 12; size++) {
        struct jit_entry *entry = add(3, size);
        qut_refresh();
        EXPECT(3, CROSSED, "at first");
        owner_remove(&owner, entry);
        EXPECT(3, PENDING, "removed");
        entry = add(3, size * 5 + 3);
        EXPECT(3, PENDING, "another one");
        qut_refresh();
        EXPECT(3, CROSSED, "the other one");
        owner_remove(&owner, entry);
        qut_refresh();
    }
}

// Android's runtime removes entries long after their code has gone.
TEST(the_newest_entry_answers)
{
    struct jit_entry *old = add(4, 2);
    static uint8_t old_symfile[CODE_SYMFILE_BYTES_MAX];
    memcpy(old_symfile, symfiles[4], sizeof old_symfile);
    old->symfile = old_symfile;
    qut_refresh();
    EXPECT(4, CROSSED, "the old one");
    add(4, 9);
    enum verdict found = player_walk(&player, 4);
    // Nothing in GDB's list says that there is more than one; the runtimes that use it remove before they add.
    if (owner.layout != ART_JIT_GDB)
        CHECK(found == PENDING, "layout %d: %s; %s", owner.layout, verdicts[found], player_text(&player));
    qut_refresh();
    EXPECT(4, CROSSED, "the new one");
    owner_remove(&owner, old);
    qut_refresh();
    EXPECT(4, CROSSED, "the only one");
}

// An allocator gave all of it back: the same entry, the same file's address, the same size.
TEST(an_entry_that_looks_the_same)
{
    struct jit_entry *entry = add(5, 20);
    struct jit_entry copy = *entry;
    qut_refresh();
    EXPECT(5, CROSSED, "the first");
    owner_remove(&owner, entry);
    size_t size = symfile_bytes[5];
    struct jit_entry *again = add(5, 21);
    CHECK(symfile_bytes[5] == size, "the files have one size");
    if (again != entry) // malloc thought otherwise
        return;
    (void)copy;
    EXPECT(5, PENDING, "the second");
    qut_refresh();
    EXPECT(5, CROSSED, "the second");
}

TEST(many_methods_in_one_file)
{
    struct jit_entry *entries[16];
    struct code_method methods[16];
    for (unsigned i = 0; i < 16; i++) {
        entries[i] = add(10 + i, 2 + i);
        methods[i] = code_emit(10 + i, 2 + i);
    }
    qut_refresh();
    size_t size = code_symfile(methods, 16, symfiles[9]);
    struct jit_entry *group = owner_add(&owner, symfiles[9], size);
    for (unsigned i = 0; i < 16; i++)
        owner_remove(&owner, entries[i]);
    for (unsigned i = 0; i < 16; i++)
        EXPECT(10 + i, PENDING, "packed");
    qut_refresh();
    for (unsigned i = 0; i < 16; i++)
        EXPECT(10 + i, CROSSED, "packed and known");
    // One of them goes, and another takes its place before the group is packed anew.
    add(12, 50);
    qut_refresh();
    for (unsigned i = 0; i < 16; i++)
        if (owner.layout != ART_JIT_GDB || i != 2)
            EXPECT(10 + i, CROSSED, "one of them is newer");
    owner_remove(&owner, group);
}

TEST(what_is_no_symbol_file)
{
    static const char other[] = "BEAM: something else";
    add(0, 5);
    owner_add(&owner, other, sizeof other);
    owner_add(&owner, NULL, 0);
    owner_add(&owner, (const void *)(uintptr_t)64, 1000);
    owner_add(&owner, symfiles[0], (size_t)ART_JIT_SYMFILE_BYTES_MAX + 1);
    size_t size = symfile_bytes[0];
    memcpy(symfiles[1], symfiles[0], size);
    memset(symfiles[1] + 64, 0, 8);
    symfiles[1][sizeof(uintptr_t) == 8 ? 64 : 52] = 0; // no method: the compiler refuses it
    add(2, 6);
    owner_add(&owner, symfiles[1], size);
    qut_refresh();
    EXPECT(2, CROSSED, "behind what is no symbol file");
    struct qut_stats now = stats();
    CHECK(now.jit_entries == 6 && now.jit_not_elf == 1 && now.jit_not_read == 2 && now.jit_no_table == 1,
          "%llu entries, %llu not ELF, %llu not read, %llu without table", (unsigned long long)now.jit_entries,
          (unsigned long long)now.jit_not_elf, (unsigned long long)now.jit_not_read,
          (unsigned long long)now.jit_no_table);
    uint64_t compiled = now.jit_tables_compiled;
    qut_refresh();
    now = stats();
    CHECK(now.jit_tables_compiled == compiled && now.jit_entries == 6, "nothing is made twice");
}

TEST(a_list_that_goes_round)
{
    struct jit_entry *first = add(0, 5), *second = add(1, 6);
    qut_refresh();
    EXPECT(0, CROSSED, "before");
    first->next = second;
    owner_add(&owner, NULL, 0);
    qut_refresh();
    CHECK(stats().jit_list_faults == 1, "it is said");
    EXPECT(0, CROSSED, "what is known is kept, and holds");
    first->next = NULL;
    owner_add(&owner, NULL, 0);
    qut_refresh();
    EXPECT(0, CROSSED, "mended");
    CHECK(stats().jit_list_faults == 0, "and forgotten");
}

TEST(a_lock_that_stays_odd)
{
    if (owner.layout == ART_JIT_GDB)
        return;
    add(0, 5);
    qut_refresh();
    owner.descriptor->seqlock++;
    EXPECT(0, PENDING, "odd");
    qut_refresh();
    EXPECT(0, PENDING, "still odd");
    owner.descriptor->seqlock++;
    qut_refresh();
    EXPECT(0, CROSSED, "even");
}

TEST(a_child_walks_too)
{
    struct jit_entry *entry = add(0, 5);
    add(1, 6);
    qut_refresh();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        bool good = player_walk(&player, 0) == CROSSED;
        owner_remove(&owner, entry);
        add(0, 17);
        good = good && player_walk(&player, 0) == PENDING;
        qut_refresh();
        good = good && player_walk(&player, 0) == CROSSED && player_walk(&player, 1) == CROSSED;
        good = good && qut_wait(0) == 0;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
    EXPECT(0, CROSSED, "in the parent");
}

// LLVM's objects are registered before they have their addresses.
TEST(a_file_that_is_not_complete)
{
    enum { METHODS_OFFSET = sizeof(ElfW(Ehdr)) + 8 };
    make(0, 5);
    uint64_t address, elsewhere = (uintptr_t)code_of(9);
    memcpy(&address, symfiles[0] + METHODS_OFFSET, sizeof address);
    memcpy(symfiles[0] + METHODS_OFFSET, &elsewhere, sizeof elsewhere);
    owner_add(&owner, symfiles[0], symfile_bytes[0]);
    for (unsigned i = 0; i < 3; i++) {
        qut_refresh();
        EXPECT(0, PENDING, "not complete");
    }
    memcpy(symfiles[0] + METHODS_OFFSET, &address, sizeof address);
    qut_refresh();
    EXPECT(0, CROSSED, "complete");
}

static unsigned many = 100000;

// One file for all: what counts here is the list.
TEST(very_many_entries)
{
    add(0, 5);
    struct jit_entry *entries = calloc(many, sizeof *entries), *first = owner.descriptor->first;
    for (unsigned i = 0; i < many; i++) {
        entries[i] = (struct jit_entry){.next = i + 1 < many ? &entries[i + 1] : first,
                                        .previous = i ? &entries[i - 1] : NULL,
                                        .symfile = symfiles[0],
                                        .symfile_bytes = 20,
                                        .timestamp = 1,
                                        .seqlock = 2};
    }
    first->previous = &entries[many - 1];
    owner.descriptor->first = entries;
    owner_add(&owner, NULL, 0);
    qut_refresh();
    EXPECT(0, CROSSED, "the last of many");
    struct qut_stats now = stats();
    CHECK(now.jit_entries == many + 1, "%llu entries", (unsigned long long)now.jit_entries);
    owner_clear(&owner);
    qut_refresh();
    free(entries);
    EXPECT(0, UNKNOWN, "none is left");
}

TEST(without_any_list_there_is_nothing_to_wait_for)
{
    CHECK(qut_wait(0) == 0, "at first");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(qut_wait(0) == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "in a child: status %#x", (unsigned)status);
    owner_load(&owner, ART_JIT_ANDROID2);
    qut_refresh();
    add(0, 5);
    CHECK(qut_wait(0) != 0, "for the table");
    owner_unload(&owner);
    qut_refresh();
    CHECK(qut_wait(0) == 0, "when the library has gone");
}

static void in_each_layout(void (*test)(void), const char *name)
{
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        owner_load(&owner, (enum art_jit_layout)layout);
        if (!owner.descriptor) {
            tap_check(false, __FILE__, __LINE__, name, "layout %u: no library", layout);
            tap.failed++;
            continue;
        }
        qut_refresh();
        tap_run(name, test);
        owner_unload(&owner);
        qut_refresh();
    }
}
#define RUN_EACH(test) in_each_layout(test, #test)

int main(int argc, char **argv)
{
    if (argc > 1)
        many = (unsigned)strtoul(argv[1], NULL, 10);
    struct qut_options options = {.size = sizeof options, .compile = player_compile, .flags = QUT_START_NO_THREAD};
    if (!discipline_has_compiler()) {
        puts("SKIP: no qutc for the program's own table\n0 passed, 0 failed, 1 skipped");
        return 77;
    }
    if (!code_start() || qut_start(&options) != 0)
        return 1;
    qut_refresh();
    RUN(without_any_list_there_is_nothing_to_wait_for);
    RUN_EACH(registered_code_is_crossed);
    RUN_EACH(unregistered_code_is_unknown);
    RUN_EACH(other_code_in_the_same_place);
    RUN_EACH(the_newest_entry_answers);
    RUN_EACH(an_entry_that_looks_the_same);
    RUN_EACH(many_methods_in_one_file);
    RUN_EACH(what_is_no_symbol_file);
    RUN_EACH(a_list_that_goes_round);
    RUN_EACH(a_lock_that_stays_odd);
    RUN_EACH(a_child_walks_too);
    RUN_EACH(a_file_that_is_not_complete);
    RUN_EACH(very_many_entries);
    qut_stop();
    return tap_finish();
}
