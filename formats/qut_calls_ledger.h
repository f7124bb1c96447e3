// SPDX-License-Identifier: Apache-2.0
// What a block of thunks says of itself (formats/qut_calls.md): which bytes of code are exchanged because of it, and
// who exchanged them. Whoever may stop the process can put them back by that alone, should that tool be gone.
#ifndef QUT_FORMATS_QUT_CALLS_LEDGER_H
#define QUT_FORMATS_QUT_CALLS_LEDGER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_calls.h"

#define QUT_CALLS_LEDGER_MARK UINT64_C(0x7267646c54554351)

enum {
    QUT_CALLS_BLOCK_LEDGER_AT = 16, // struct qut_calls_ledger, in each block
    QUT_CALLS_LEDGER_PATCH_BYTES = 8,
    QUT_CALLS_LEDGER_SITES_MAX = 2 << QUT_CALLS_ID_BITS,
};

struct qut_calls_ledger {
    uint64_t mark;                              // QUT_CALLS_LEDGER_MARK ^ the block's address
    uint64_t sites_at;                          // from the block's start: struct qut_calls_ledger_stub, then the sites
    uint32_t site_count;                        // some of them may never have been exchanged, or have been put back
    uint32_t owner_pid;                         // of the tool, in its own namespace; 0: it could not be told
    uint32_t owner_namespace;                   // inode of /proc/PID/ns/pid
    uint32_t owner_start_low, owner_start_high; // /proc/PID/stat's starttime
    uint32_t zero;
};
static_assert(sizeof(struct qut_calls_ledger) == 40, "shared");
static_assert((int)QUT_CALLS_BLOCK_LEDGER_AT + sizeof(struct qut_calls_ledger) <= (int)QUT_CALLS_BLOCK_CODE_AT,
              "in front of the thunks");

// The same in each block of a process: as in its header (struct qut_calls_header).
struct qut_calls_ledger_stub {
    uint64_t stub_begin, stub_end, exit_return, exit_end;
    uint64_t shadow_distance, words_distance, granules_address, zero;
};
static_assert(sizeof(struct qut_calls_ledger_stub) == 64, "shared");

struct qut_calls_ledger_site {
    uint64_t address;  // of the first byte that was exchanged
    uint32_t thunk_at; // from the block's start; 0: nothing leads to it, another site answers for it
    uint16_t moved_at; // from the thunk's start: the copy
    // From the thunk's start: up to there nothing has happened that is not undone by beginning anew at the address.
    uint16_t restart_bytes;
    uint16_t thunk_bytes;
    uint8_t size; // of the bytes
    uint8_t boundary_count;
    struct {
        uint8_t from, to; // of an instruction, from the address; of its copy, from `moved_at`
    } boundaries[QUT_CALLS_ORIGIN_BOUNDARIES];
    uint8_t original[QUT_CALLS_LEDGER_PATCH_BYTES], patched[QUT_CALLS_LEDGER_PATCH_BYTES];
};
static_assert(sizeof(struct qut_calls_ledger_site) == 48, "shared");

static inline uint64_t qut_calls_ledger_owner_start(const struct qut_calls_ledger *ledger)
{
    return (uint64_t)ledger->owner_start_high << 32 | ledger->owner_start_low;
}

static inline bool qut_calls_ledger_is_of(const struct qut_calls_ledger *ledger, uint64_t block)
{
    return ledger->mark == (QUT_CALLS_LEDGER_MARK ^ block) && ledger->site_count <= QUT_CALLS_LEDGER_SITES_MAX &&
           ledger->sites_at >= QUT_CALLS_BLOCK_CODE_AT && ledger->sites_at % sizeof(uint64_t) == 0 &&
           ledger->sites_at <= UINT32_MAX;
}

static inline bool qut_calls_ledger_site_is_sound(const struct qut_calls_ledger_site *site)
{
    return site->size > 0 && site->size <= QUT_CALLS_LEDGER_PATCH_BYTES && site->boundary_count > 0 &&
           site->boundary_count <= QUT_CALLS_ORIGIN_BOUNDARIES && site->moved_at <= QUT_CALLS_THUNK_BYTES_MAX &&
           site->restart_bytes <= site->thunk_bytes && site->thunk_bytes <= QUT_CALLS_THUNK_BYTES_MAX;
}

#endif
