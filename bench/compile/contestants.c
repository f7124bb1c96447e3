// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/contestants.h"

#include <stdlib.h>
#include <string.h>

#include "bench/compile/checked_decode.h"
#include "bench/measure.h"
#include "qutc/qutc.h"

int bench_run_pure(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    struct pure_decode_counts counts;
    pure_decode(subject->eh_frame->bytes.data, subject->eh_frame->bytes.size, &counts);
    *end_ns = bench_now_ns();
    *rows = counts.rows;
    return counts.checksum == subject->counts.checksum ? 0 : -1;
}

int bench_run_checked(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    struct pure_decode_counts counts;
    bool good = checked_decode(subject->eh_frame->bytes.data, subject->eh_frame->bytes.size, &counts);
    *end_ns = bench_now_ns();
    *rows = counts.rows;
    return good && counts.checksum == subject->counts.checksum ? 0 : -1;
}

int bench_run_qutc(const struct bench_subject *subject, uint64_t *rows, uint64_t *end_ns)
{
    struct input_image *image;
    struct qutc_compile_stats stats = {0};
    uint8_t *table = NULL;
    size_t size;
    if (input_image_open(subject->path, NULL, 0, 0, NULL, &image, NULL) != 0)
        return -1;
    int result = qutc_compile(image, NULL, &table, &size, &stats, NULL);
    *end_ns = bench_now_ns();
    *rows = stats.source_rows;
    free(table);
    input_image_close(image);
    return result;
}

int bench_subject_open(const char *path, struct bench_subject *subject, struct base_error *error)
{
    *subject = (struct bench_subject){.path = path};
    if (input_image_open(path, NULL, 0, 0, NULL, &subject->image, error) != 0)
        return -1;
    for (unsigned i = 0; i < subject->image->frame_count && !subject->eh_frame; i++)
        if (subject->image->frame[i].kind == INPUT_FRAME_EH)
            subject->eh_frame = &subject->image->frame[i];
    if (!subject->eh_frame)
        return base_fail(error, BASE_ERR_NO_UNWIND, ".eh_frame", 0, "nothing to decode");
    if (subject->image->arch->id != QUT_ARCH_X86_64 ||
        !checked_decode(subject->eh_frame->bytes.data, subject->eh_frame->bytes.size, &subject->counts))
        return base_fail(error, BASE_ERR_UNSUPPORTED, ".eh_frame", 0,
                         "the yardstick reads only what gcc and clang write");
    elf_version(EV_CURRENT);
    struct base_bytes file = input_image_elf(subject->image);
    subject->elf = elf_memory((char *)file.data, file.size);
    if (!subject->elf)
        return base_fail(error, BASE_ERR_MALFORMED, "", 0, "libelf: %s", elf_errmsg(-1));
    return 0;
}

void bench_subject_close(struct bench_subject *subject)
{
    elf_end(subject->elf);
    input_image_close(subject->image);
    free(subject->row_starts);
    *subject = (struct bench_subject){0};
}
