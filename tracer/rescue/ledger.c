// SPDX-License-Identifier: Apache-2.0
#include "tracer/rescue/ledger.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tracer/inject/code_pages.h"

static_assert((int)QUT_CALLS_BLOCK_LEDGER_AT + sizeof(struct qut_calls_ledger) <= (int)INJECT_PAGE_HEAD_BYTES,
              "read with the page's head");

uint64_t rescue_ledger_bytes(size_t sites)
{
    return sizeof(struct qut_calls_ledger_stub) + sites * sizeof(struct qut_calls_ledger_site);
}

// ---- written

static bool make_row(const struct patch_site *site, uint64_t block, struct qut_calls_ledger_site *row)
{
    if (site->size > QUT_CALLS_LEDGER_PATCH_BYTES || site->boundary_count > QUT_CALLS_ORIGIN_BOUNDARIES ||
        (site->thunk && site->thunk <= block))
        return false;
    *row = (struct qut_calls_ledger_site){
        .address = site->address, .size = site->size, .boundary_count = site->boundary_count};
    if (site->thunk) {
        row->thunk_at = (uint32_t)(site->thunk - block);
        row->moved_at = (uint16_t)(site->moved - site->thunk);
        row->restart_bytes = (uint16_t)(site->restart_end - site->thunk);
        row->thunk_bytes = (uint16_t)(site->thunk_end - site->thunk);
    }
    for (unsigned i = 0; i < site->boundary_count; i++) {
        row->boundaries[i].from = site->boundaries[i].offset;
        row->boundaries[i].to = site->boundaries[i].moved_offset;
    }
    memcpy(row->original, site->original, site->size);
    memcpy(row->patched, site->patched, site->size);
    return qut_calls_ledger_site_is_sound(row);
}

void rescue_ledger_write(uint8_t *block, uint64_t address, uint64_t ledger_at, size_t room,
                         const struct patch_site *sites, size_t count, const struct qut_calls_ledger_stub *stub)
{
    const struct inject_owner self = inject_owner_self();
    struct qut_calls_ledger ledger = {.mark = QUT_CALLS_LEDGER_MARK ^ address,
                                      .sites_at = ledger_at,
                                      .owner_pid = self.pid,
                                      .owner_namespace = self.pid_namespace,
                                      .owner_start_low = (uint32_t)self.start_ticks,
                                      .owner_start_high = (uint32_t)(self.start_ticks >> 32)};
    uint8_t *at = block + ledger_at;
    memcpy(at, stub, sizeof *stub);
    at += sizeof *stub;
    for (size_t i = 0; i < count && ledger.site_count < room; i++) {
        struct qut_calls_ledger_site row;
        if (!make_row(&sites[i], address, &row))
            continue;
        memcpy(at, &row, sizeof row);
        at += sizeof row;
        ledger.site_count++;
    }
    memcpy(block + QUT_CALLS_BLOCK_LEDGER_AT, &ledger, sizeof ledger);
}

// ---- read

struct reader {
    pid_t pid;
    struct rescue_ledgers *ledgers;
    bool is_short; // of memory
};

static bool read_bytes(pid_t pid, uint64_t address, void *bytes, size_t size)
{
    const struct iovec here = {bytes, size}, there = {(void *)(uintptr_t)address, size};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static void add_site(struct rescue_ledgers *ledgers, uint64_t block, const struct qut_calls_ledger_site *row)
{
    const uint64_t thunk = row->thunk_at ? block + row->thunk_at : 0;
    struct patch_site *site = &ledgers->sites[ledgers->count++];
    *site = (struct patch_site){.address = row->address,
                                .moved = thunk + row->moved_at,
                                .thunk = thunk,
                                .restart_end = thunk + row->restart_bytes,
                                .thunk_end = thunk + row->thunk_bytes,
                                .size = row->size,
                                .boundary_count = row->boundary_count};
    for (unsigned i = 0; i < row->boundary_count; i++)
        site->boundaries[i] = (struct patch_boundary){row->boundaries[i].from, row->boundaries[i].to};
    memcpy(site->original, row->original, row->size);
    memcpy(site->patched, row->patched, row->size);
}

static bool make_room(struct rescue_ledgers *ledgers, size_t more)
{
    const size_t room = ledgers->count + more;
    if (room <= ledgers->room)
        return true;
    struct patch_site *sites = realloc(ledgers->sites, room * sizeof *sites);
    if (!sites)
        return false;
    ledgers->sites = sites;
    ledgers->room = room;
    return true;
}

// A process may write into its blocks what it likes: what makes no sense is left out.
static void read_sites(struct reader *reader, uint64_t block, const struct qut_calls_ledger *head)
{
    enum { AT_ONCE = 512 };
    struct qut_calls_ledger_stub stub;
    struct qut_calls_ledger_site rows[AT_ONCE];
    uint64_t at = block + head->sites_at;
    if (!read_bytes(reader->pid, at, &stub, sizeof stub))
        return;
    reader->ledgers->stub = (struct patch_stub){.start = stub.stub_begin,
                                                .end = stub.stub_end,
                                                .exit_return = stub.exit_return,
                                                .exit_end = stub.exit_end,
                                                .shadow_distance = stub.shadow_distance,
                                                .words_distance = stub.words_distance,
                                                .granules_address = stub.granules_address};
    at += sizeof stub;
    for (uint32_t first = 0; first < head->site_count && !reader->is_short; first += AT_ONCE) {
        const uint32_t left = head->site_count - first, count = left < AT_ONCE ? left : AT_ONCE;
        if (!read_bytes(reader->pid, at + first * sizeof *rows, rows, count * sizeof *rows))
            return;
        reader->is_short = !make_room(reader->ledgers, count);
        for (uint32_t i = 0; i < count && !reader->is_short; i++)
            if (qut_calls_ledger_site_is_sound(&rows[i]))
                add_site(reader->ledgers, block, &rows[i]);
    }
}

static bool look(void *context, uint64_t address, const uint8_t head[INJECT_PAGE_HEAD_BYTES])
{
    struct reader *reader = context;
    struct qut_calls_ledger ledger;
    memcpy(&ledger, head + QUT_CALLS_BLOCK_LEDGER_AT, sizeof ledger);
    if (!qut_calls_ledger_is_of(&ledger, address))
        return false;
    const struct inject_owner owner = {ledger.owner_pid, ledger.owner_namespace, qut_calls_ledger_owner_start(&ledger)};
    const bool is_gone = inject_owner_is_gone(&owner);
    if (!is_gone || !reader->ledgers->living)
        reader->ledgers->owner = owner;
    reader->ledgers->blocks += is_gone;
    reader->ledgers->living += !is_gone;
    if (is_gone)
        read_sites(reader, address, &ledger);
    return reader->is_short;
}

int rescue_ledgers_read(pid_t pid, struct rescue_ledgers *ledgers, struct base_error *error)
{
    struct reader reader = {pid, ledgers, false};
    *ledgers = (struct rescue_ledgers){.count = 0};
    inject_each_code_page(pid, look, &reader); // one that has gone has none
    return reader.is_short ? base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory") : 0;
}

void rescue_ledgers_free(struct rescue_ledgers *ledgers)
{
    free(ledgers->sites);
    *ledgers = (struct rescue_ledgers){.count = 0};
}
