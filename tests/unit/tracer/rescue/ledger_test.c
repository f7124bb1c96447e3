// SPDX-License-Identifier: Apache-2.0
// What is written into a block is read from it, in another process as well; rows and heads that make no sense are left
// out, and what a living tool has made is left alone.
#include "tracer/rescue/ledger.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/run_suite.h"

enum { BLOCK_BYTES = 8192, LEDGER_AT = 1024, ROOM = 3 };
static const struct qut_calls_ledger_stub stub = {
    .stub_begin = 1, .stub_end = 2, .exit_return = 3, .exit_end = 4, .shadow_distance = 5, .granules_address = 6};

static struct patch_site make_site(uint64_t block, uint64_t address)
{
    struct patch_site site = {.address = address,
                              .thunk = block + 64,
                              .moved = block + 64 + 30,
                              .restart_end = block + 64 + 30,
                              .thunk_end = block + 64 + 96,
                              .size = 5,
                              .boundary_count = 2,
                              .boundaries = {{0, 0}, {5, 9}}};
    memcpy(site.original, "12345", 5);
    memcpy(site.patched, "abcde", 5);
    return site;
}

// A block as it is in a process; from there on it is not written.
static uint8_t *make_block(const struct patch_site *sites, size_t count)
{
    uint8_t *block = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(block != MAP_FAILED);
    rescue_ledger_write(block, (uint64_t)(uintptr_t)block, LEDGER_AT, ROOM, sites, count, &stub);
    ck_assert_int_eq(mprotect(block, BLOCK_BYTES, PROT_READ | PROT_EXEC), 0);
    return block;
}

// Of a child whose tool, a process in between, has ended.
static void read_orphan(void (*make)(void), struct rescue_ledgers *ledgers)
{
    int ends[2];
    pid_t pid = 0;
    struct base_error error = {0};
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t tool = fork();
    if (tool == 0) {
        make();
        pid = fork();
        if (pid == 0) {
            pause();
            _exit(0);
        }
        _exit(write(ends[1], &pid, sizeof pid) != (ssize_t)sizeof pid);
    }
    ck_assert_int_eq(waitpid(tool, NULL, 0), tool);
    ck_assert_int_eq(read(ends[0], &pid, sizeof pid), (ssize_t)sizeof pid);
    ck_assert_int_eq(rescue_ledgers_read(pid, ledgers, &error), 0);
    kill(pid, SIGKILL);
    close(ends[0]);
    close(ends[1]);
}

static void make_good(void)
{
    struct patch_site sites[2];
    uint8_t *at = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t block = (uint64_t)(uintptr_t)at;
    sites[0] = make_site(block, 0x1000);
    sites[1] = make_site(block, 0x2000);
    sites[1].thunk = sites[1].thunk_end = sites[1].restart_end = 0; // in padding
    sites[1].boundary_count = 1;
    rescue_ledger_write(at, block, LEDGER_AT, ROOM, sites, 2, &stub);
    mprotect(at, BLOCK_BYTES, PROT_READ | PROT_EXEC);
}

START_TEST(read_as_written)
{
    struct rescue_ledgers ledgers;
    read_orphan(make_good, &ledgers);
    ck_assert(ledgers.blocks == 1 && ledgers.living == 0 && ledgers.count == 2);
    ck_assert(ledgers.stub.start == 1 && ledgers.stub.exit_end == 4 && ledgers.stub.granules_address == 6);
    const struct patch_site *first = &ledgers.sites[0], *second = &ledgers.sites[1];
    ck_assert(first->address == 0x1000 && first->size == 5 && first->moved == first->thunk + 30);
    ck_assert(first->restart_end == first->thunk + 30 && first->thunk_end == first->thunk + 96);
    ck_assert(first->boundary_count == 2 && first->boundaries[1].offset == 5 && first->boundaries[1].moved_offset == 9);
    ck_assert(memcmp(first->original, "12345", 5) == 0 && memcmp(first->patched, "abcde", 5) == 0);
    ck_assert(second->address == 0x2000 && second->thunk == 0 && second->thunk_end == 0);
    rescue_ledgers_free(&ledgers);
}
END_TEST

START_TEST(living_tools)
{
    struct rescue_ledgers ledgers;
    struct base_error error = {0};
    const struct patch_site site = make_site(0, 0x1000);
    uint8_t *block = make_block(&site, 0);
    ck_assert_int_eq(rescue_ledgers_read(getpid(), &ledgers, &error), 0);
    ck_assert(ledgers.living == 1 && ledgers.blocks == 0 && ledgers.count == 0);
    const struct inject_owner self = inject_owner_self();
    ck_assert(inject_owner_is(&ledgers.owner, &self) && !inject_owner_is_gone(&self));
    rescue_ledgers_free(&ledgers);
    munmap(block, BLOCK_BYTES);
}
END_TEST

static void make_spoilt(void)
{
    make_good();
    // Another block: rows of nonsense, and more of them than the block has.
    uint8_t *at = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t block = (uint64_t)(uintptr_t)at;
    const struct patch_site site = make_site(block, 0x3000);
    struct qut_calls_ledger head;
    rescue_ledger_write(at, block, LEDGER_AT, ROOM, &site, 1, &stub);
    memcpy(&head, at + QUT_CALLS_BLOCK_LEDGER_AT, sizeof head);
    memset(at + LEDGER_AT + sizeof stub, 0xff, ROOM * sizeof(struct qut_calls_ledger_site));
    head.site_count = ROOM;
    memcpy(at + QUT_CALLS_BLOCK_LEDGER_AT, &head, sizeof head);
    mprotect(at, BLOCK_BYTES, PROT_READ | PROT_EXEC);
    at = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    head.mark = QUT_CALLS_LEDGER_MARK ^ (uint64_t)(uintptr_t)at;
    head.site_count = QUT_CALLS_LEDGER_SITES_MAX;
    head.sites_at = UINT32_MAX - 7;
    memcpy(at + QUT_CALLS_BLOCK_LEDGER_AT, &head, sizeof head);
    mprotect(at, BLOCK_BYTES, PROT_READ | PROT_EXEC);
}

START_TEST(nonsense_is_left_out)
{
    struct rescue_ledgers ledgers;
    read_orphan(make_spoilt, &ledgers);
    ck_assert(ledgers.blocks == 3 && ledgers.count == 2);
    rescue_ledgers_free(&ledgers);
}
END_TEST

// A row that has no room, and a site that does not fit the form.
START_TEST(written_as_far_as_it_fits)
{
    struct qut_calls_ledger head;
    uint8_t block[4096] = {0};
    struct patch_site sites[ROOM + 2];
    for (unsigned i = 0; i < ROOM + 2; i++)
        sites[i] = make_site(0x10000, 0x1000 + i);
    sites[0].size = QUT_CALLS_LEDGER_PATCH_BYTES + 1;
    rescue_ledger_write(block, 0x10000, LEDGER_AT, ROOM, sites, ROOM + 2, &stub);
    memcpy(&head, block + QUT_CALLS_BLOCK_LEDGER_AT, sizeof head);
    ck_assert(qut_calls_ledger_is_of(&head, 0x10000) && head.site_count == ROOM);
    ck_assert_uint_eq(block[LEDGER_AT + rescue_ledger_bytes(ROOM)], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rescue");
    TCase *tests = tcase_create("ledger");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, read_as_written);
    tcase_add_test(tests, living_tools);
    tcase_add_test(tests, nonsense_is_left_out);
    tcase_add_test(tests, written_as_far_as_it_fits);
    return run_suite(suite);
}
