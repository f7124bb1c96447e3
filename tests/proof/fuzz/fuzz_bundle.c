// SPDX-License-Identifier: Apache-2.0
// A bundle. Where the first byte is odd, its directory's checksum is made right first.
#include "qutc/bundle.h"
#include "tests/proof/fuzz/fuzz.h"

static void make_plausible(uint8_t *bytes, size_t size)
{
    struct qut_bundle_header *header = (void *)bytes;
    if (size < sizeof *header)
        return;
    memcpy(header->magic, QUT_BUNDLE_MAGIC, sizeof header->magic);
    header->version = QUT_BUNDLE_VERSION;
    header->file_size = size;
    uint64_t directory_bytes =
        sizeof *header + (uint64_t)header->entry_count * sizeof(struct qut_bundle_entry) + header->names_bytes;
    const size_t summed_at = offsetof(struct qut_bundle_header, checksum) + sizeof header->checksum;
    if (directory_bytes <= size)
        header->checksum = qut_table_checksum(bytes + summed_at, (size_t)directory_bytes - summed_at);
}

// What was unpacked is packed again, and opens.
static void pack_again(struct qutc_bundle_item *items, size_t count)
{
    uint8_t *packed = NULL;
    size_t size;
    struct qutc_bundle again;
    struct base_error error = {0};
    if (qutc_bundle_pack(items, count, &packed, &size, &error) == 0)
        fuzz_require(qutc_bundle_open(&again, packed, size, &error) == 0 && again.entry_count == count);
    else
        fuzz_require(error.reason != BASE_OK);
    free(packed);
}

int fuzz_bundle(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool plausible = data[0] & 1;
    data++;
    size--;
    void *bytes = NULL;
    fuzz_require(posix_memalign(&bytes, 64, size + 1) == 0);
    memcpy(bytes, data, size);
    if (plausible)
        make_plausible(bytes, size);
    struct qutc_bundle bundle;
    struct base_error error = {0};
    if (qutc_bundle_open(&bundle, bytes, size, &error) == 0) {
        enum { ITEMS_MAX = 8 };
        static char names[ITEMS_MAX][QUT_BUNDLE_NAME_MAX_BYTES + 1];
        struct qutc_bundle_item items[ITEMS_MAX];
        size_t unpacked = 0;
        for (uint32_t i = 0; i < bundle.entry_count && i < ITEMS_MAX; i++) {
            uint8_t *table;
            size_t table_size;
            struct base_error unpack_error = {0};
            qutc_bundle_name(&bundle, i, names[unpacked]);
            // A few bytes may claim a gigabyte; the reader's bound is the format's, this one is the fuzzer's.
            if (bundle.entries[i].unpacked_bytes > 16 << 20)
                continue;
            if (qutc_bundle_unpack(&bundle, i, &table, &table_size, &unpack_error) == 0)
                items[unpacked] = (struct qutc_bundle_item){names[unpacked], table, table_size}, unpacked++;
            else
                fuzz_require(unpack_error.reason != BASE_OK);
        }
        if (unpacked)
            pack_again(items, unpacked);
        for (size_t i = 0; i < unpacked; i++)
            free((void *)(uintptr_t)items[i].table);
    } else {
        fuzz_require(error.reason != BASE_OK);
    }
    free(bytes);
    return 0;
}
