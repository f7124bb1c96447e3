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
        for (uint32_t i = 0; i < bundle.entry_count && i < 8; i++) {
            char name[QUT_BUNDLE_NAME_MAX_BYTES + 1];
            uint8_t *table;
            size_t table_size;
            struct base_error unpack_error = {0};
            qutc_bundle_name(&bundle, i, name);
            // A few bytes may claim a gigabyte; the reader's bound is the format's, this one is the fuzzer's.
            if (bundle.entries[i].unpacked_bytes > 16 << 20)
                continue;
            if (qutc_bundle_unpack(&bundle, i, &table, &table_size, &unpack_error) == 0)
                free(table);
            else
                fuzz_require(unpack_error.reason != BASE_OK);
        }
    } else {
        fuzz_require(error.reason != BASE_OK);
    }
    free(bytes);
    return 0;
}
