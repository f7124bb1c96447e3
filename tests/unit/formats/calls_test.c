// SPDX-License-Identifier: Apache-2.0
// What is written into a word of an event is read out of it; a header that names what is not there is refused.
#include "formats/qut_calls.h"
#include "formats/qut_calls_ledger.h"

#include <check.h>
#include <string.h>

#include "tests/support/run_suite.h"

START_TEST(words)
{
    static const uint64_t slots[] = {0x400000000000, 0x7ffffffffff8, 0x7ffd12345678, 0x400000000008};
    static const uint32_t ids[] = {0, 1, 0x5a5a5, QUT_CALLS_ID_MAX};
    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++)
            for (int is_exit = 0; is_exit < 2; is_exit++) {
                uint64_t word = qut_calls_word(slots[i], is_exit, ids[j]);
                ck_assert_uint_eq(qut_calls_word_slot(word), slots[i]);
                ck_assert_uint_eq(qut_calls_word_id(word), ids[j]);
                ck_assert_int_eq(qut_calls_word_is_exit(word), is_exit);
            }
    ck_assert_uint_eq(qut_calls_word(0x7ffffffffff8, true, QUT_CALLS_ID_MAX) | QUT_CALLS_EVENT_TAIL, UINT64_MAX);
    const uint64_t entry = qut_calls_word(0x7ffd12345678, false, 0x5a5a5);
    ck_assert(qut_calls_word_is_tail(entry | QUT_CALLS_EVENT_TAIL) && !qut_calls_word_is_tail(entry));
    ck_assert(!qut_calls_word_is_tail(qut_calls_exit_word(0x7ffd12345678, 0x5a5a5) | QUT_CALLS_EVENT_TAIL));
    ck_assert_uint_eq(qut_calls_word_id(entry | QUT_CALLS_EVENT_TAIL), 0x5a5a5);
    ck_assert_uint_eq(qut_calls_word_slot(entry | QUT_CALLS_EVENT_TAIL), 0x7ffd12345678);
}
END_TEST

START_TEST(taken_once)
{
    struct qut_calls_event place = {.time_ticks = 7, .word = qut_calls_word(0x400000000018, false, 3)}, event = {0, 0};
    ck_assert(qut_calls_event_take(&place, &event));
    ck_assert(event.time_ticks == 7 && qut_calls_word_slot(event.word) == 0x400000000018 &&
              qut_calls_word_id(event.word) == 3);
    ck_assert(!qut_calls_event_take(&place, &event));
}
END_TEST

START_TEST(ledgers)
{
    const uint64_t block = 0x7f0000001000;
    const struct qut_calls_ledger good = {
        .mark = QUT_CALLS_LEDGER_MARK ^ block, .sites_at = 128, .owner_start_low = 1, .owner_start_high = 2};
    struct qut_calls_ledger ledger = good;
    ck_assert(qut_calls_ledger_is_of(&ledger, block) && !qut_calls_ledger_is_of(&ledger, block + 4096));
    ck_assert_uint_eq(qut_calls_ledger_owner_start(&ledger), 0x200000001);
    ledger.sites_at = 8; // in front of the thunks
    ck_assert(!qut_calls_ledger_is_of(&ledger, block));
    ledger = good;
    ledger.site_count = QUT_CALLS_LEDGER_SITES_MAX + 1;
    ck_assert(!qut_calls_ledger_is_of(&ledger, block));
    const struct qut_calls_ledger_site sound = {
        .size = 5, .boundary_count = 6, .thunk_bytes = 208, .restart_bytes = 208};
    struct qut_calls_ledger_site site = sound;
    ck_assert(qut_calls_ledger_site_is_sound(&site));
    site.size = QUT_CALLS_LEDGER_PATCH_BYTES + 1;
    ck_assert(!qut_calls_ledger_site_is_sound(&site));
    site = sound;
    site.boundary_count = QUT_CALLS_ORIGIN_BOUNDARIES + 1;
    ck_assert(!qut_calls_ledger_site_is_sound(&site));
    site = sound;
    site.thunk_bytes = 100; // shorter than what may be begun anew
    ck_assert(!qut_calls_ledger_site_is_sound(&site));
}
END_TEST

static struct qut_calls_header sound_header(void)
{
    struct qut_calls_header header = {.magic = QUT_CALLS_MAGIC, .version = QUT_CALLS_VERSION, .ring_count = 2};
    header.granule_shift = QUT_CALLS_GRANULE_LOG2;
    header.cell_count = 16;
    header.ring_bytes = 4096;
    header.directory_offset_bytes = QUT_CALLS_HEADER_BYTES;
    header.rings_offset_bytes = 8192;
    header.counts_offset_bytes = 8192 + 2 * 4096;
    header.total_bytes = 8192 + 2 * 4096 + 2 * 16 * 8;
    return header;
}

#define REFUSED(CHANGE)                                                                                                \
    do {                                                                                                               \
        struct qut_calls_header header = sound_header();                                                               \
        CHANGE;                                                                                                        \
        ck_assert(!qut_calls_header_is_sound(&header, size));                                                          \
    } while (0)

START_TEST(headers)
{
    struct qut_calls_header whole = sound_header();
    const uint64_t size = whole.total_bytes;
    ck_assert(qut_calls_header_is_sound(&whole, size));
    ck_assert(!qut_calls_header_is_sound(&whole, size - 1));
    REFUSED(header.magic[7] = 2);
    REFUSED(header.version = QUT_CALLS_VERSION + 1);
    REFUSED(header.ring_count = 0);
    REFUSED(header.ring_count = 3);
    REFUSED(header.ring_count = UINT32_MAX);
    REFUSED(header.ring_bytes = 4097);
    REFUSED(header.ring_bytes = 2048);
    REFUSED(header.ring_bytes = (uint64_t)1 << 63);
    REFUSED(header.cell_count = 17);
    REFUSED(header.cell_count = UINT32_MAX);
    REFUSED(header.granule_shift = 64);
    REFUSED(header.directory_offset_bytes = 0);
    REFUSED(header.directory_offset_bytes = UINT64_MAX - 63);
    REFUSED(header.rings_offset_bytes = size);
    REFUSED(header.rings_offset_bytes += 8);
    REFUSED(header.counts_offset_bytes += 64);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calls");
    TCase *tests = tcase_create("calls");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, words);
    tcase_add_test(tests, taken_once);
    tcase_add_test(tests, ledgers);
    tcase_add_test(tests, headers);
    return run_suite(suite);
}
