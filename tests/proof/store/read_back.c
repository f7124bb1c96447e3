// SPDX-License-Identifier: Apache-2.0
// Prints what is in a segment, a line a record, innermost frame first:
//
//   sample COUNT KIND FLAGS FRAME;FRAME;...       (labels by name, others as hexadecimal, `end REASON`)
//   mark KIND ID NAME
//   balance HITS STORED MERGED THROTTLED LOST
//
// Usage: read_back SEGMENT
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/proof/store/decoder.h"

static void print(void *context, const struct decoded_record *record)
{
    struct decoder *decoder = context;
    struct decoded_frame frames[256];
    char text[256];
    if (record->is_mark) {
        bool has_name = decoder_string(decoder, record->string, text, sizeof text);
        printf("mark %u %llu %s\n", record->mark_kind, (unsigned long long)record->id, has_name ? text : "?");
        return;
    }
    int count = decoder_stack(decoder, record->node, frames, 256);
    printf("sample %u %u %u ", record->count, record->kind, record->flags);
    for (int i = 0; i < count && i < 256; i++) {
        if (frames[i].class_ == QUT_TRACE_CLASS_LABEL && decoder_string(decoder, (uint32_t)frames[i].code, text, 256))
            printf("%s", text);
        else if (frames[i].class_ == QUT_TRACE_CLASS_END)
            printf("end %llu", (unsigned long long)(frames[i].code & 0xff) - 1);
        else
            printf("%#llx", (unsigned long long)frames[i].code);
        printf("%s", i + 1 < count ? ";" : "\n");
    }
}

int main(int argc, char **argv)
{
    struct stat status;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &status) != 0)
        return 2;
    void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return 2;
    struct decoder decoder;
    struct decoded_totals totals;
    bool is_fine = decoder_open(&decoder, memory, (size_t)status.st_size);
    if (is_fine) {
        is_fine = decoder_all(&decoder, 0, print, &decoder, &totals) && decoder.fault_count == 0;
        char text[256];
        for (uint32_t i = 0; i < QUT_TRACE_OWN_KIND_COUNT; i++)
            if (decoder.header.kind_names[i] && decoder_string(&decoder, decoder.header.kind_names[i], text, 256))
                printf("kind %u %s\n", QUT_TRACE_OWN_KIND_FIRST + i, text);
        printf("balance %llu %llu %llu %llu %llu\n", (unsigned long long)totals.sum.hits,
               (unsigned long long)totals.sum.stored, (unsigned long long)totals.sum.merged,
               (unsigned long long)totals.sum.throttled, (unsigned long long)totals.sum.lost);
    }
    if (!is_fine)
        printf("fault %s\n", decoder.fault);
    return is_fine ? 0 : 1;
}
