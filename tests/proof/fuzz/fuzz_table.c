// SPDX-License-Identifier: Apache-2.0
// The table checker, and lookups in whatever passes it. Where the first byte is odd, magic, size and checksum are made
// right first: a mutation would hardly ever get past them.
#include "tests/proof/fuzz/fuzz.h"

enum { LOOKUPS = 64, STRIDE = 977 };

int fuzz_table(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool make_plausible = data[0] & 1;
    data++;
    size--;
    void *bytes = NULL;
    fuzz_require(posix_memalign(&bytes, 64, size + 1) == 0);
    memcpy(bytes, data, size);
    struct qut_table_header *header = bytes;
    if (make_plausible && size >= sizeof *header) {
        const size_t summed_at = offsetof(struct qut_table_header, checksum) + sizeof header->checksum;
        memcpy(header->magic, QUT_TABLE_MAGIC, sizeof header->magic);
        header->version = QUT_TABLE_VERSION;
        header->file_size = (uint32_t)size;
        header->checksum = qut_table_checksum((const uint8_t *)bytes + summed_at, size - summed_at);
    }
    struct qut_table table;
    uint64_t fault_offset = 0;
    if (runtime_table_attach(&table, bytes, size, &fault_offset) == QUT_TABLE_OK) {
        struct qut_rule rule;
        uint64_t pc = table.text_start, end;
        for (int i = 0; i < FUZZ_ROWS_MAX && runtime_table_next_row(&table, &pc, &end, &rule); i++) {
            fuzz_require(end > pc);
            if (i < FUZZ_STARTS_MAX)
                runtime_table_row_start(&table, pc);
            pc = end;
        }
        for (uint64_t i = 0; i < LOOKUPS; i++)
            runtime_table_rule(&table, table.text_start + i * STRIDE, &rule);
    } else {
        fuzz_require(fault_offset <= size);
    }
    free(bytes);
    return 0;
}
