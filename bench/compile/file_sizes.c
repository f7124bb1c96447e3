// SPDX-License-Identifier: Apache-2.0
#include "bench/compile/file_sizes.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "qutc/qutc.h"
#include "qutc/table_file.h"

static uint64_t section_bytes(struct base_bytes file, const char *wanted)
{
    uint64_t bytes = 0;
    size_t names;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)file.data, file.size);
    if (elf && elf_getshdrstrndx(elf, &names) == 0) {
        for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
            GElf_Shdr header;
            const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
            if (name && strcmp(name, wanted) == 0)
                bytes = header.sh_size;
        }
    }
    elf_end(elf);
    return bytes;
}

static const struct input_frame_section *find_eh_frame(const struct input_image *image)
{
    for (unsigned i = 0; i < image->frame_count; i++)
        if (image->frame[i].kind == INPUT_FRAME_EH)
            return &image->frame[i];
    return NULL;
}

static int size_peers(const struct input_image *image, const uint8_t *bytes, size_t size, struct file_sizes *sizes,
                      struct base_error *error)
{
    struct qut_table table;
    struct check_walk_index functions = {0};
    if (qutc_table_attach(&table, bytes, size, error) != 0 ||
        check_walk_section(image, find_eh_frame(image), &functions, error) != 0)
        return -1;
    sizes->text_bytes = table.header->text_size;
    sizes->functions = functions.fdes.count;
    int result = bench_peer_sizes(&table, &functions, &sizes->peers, error);
    check_walk_free(&functions);
    return result;
}

static int size_tables(const struct input_image *image, struct file_sizes *sizes, struct base_error *error)
{
    struct qutc_compile_options options = {.small = false};
    struct qutc_compile_stats stats;
    uint8_t *table;
    size_t size;
    if (qutc_compile(image, &options, &table, &size, &stats, error) != 0)
        return -1;
    sizes->rows = stats.row_count;
    sizes->rules = stats.rule_count;
    sizes->qut_bytes = size;
    int result = size_peers(image, table, size, sizes, error);
    free(table);
    options.small = true;
    if (result != 0 || qutc_compile(image, &options, &table, &size, &stats, error) != 0)
        return -1;
    sizes->small_bytes = size;
    free(table);
    return 0;
}

int bench_file_sizes(const char *path, struct file_sizes *sizes, struct base_error *error)
{
    struct input_image *image;
    *sizes = (struct file_sizes){0};
    if (input_image_open(path, NULL, 0, 0, NULL, &image, error) != 0)
        return -1;
    int result = -1;
    if (image->arch->id != QUT_ARCH_X86_64) {
        base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "the peers' formulas are for x86-64");
    } else if (!image->eh_frame_bytes || !find_eh_frame(image)) {
        base_fail(error, BASE_ERR_NO_UNWIND, ".eh_frame", 0, "nothing to compare with");
    } else {
        sizes->eh_bytes = image->eh_frame_bytes + image->eh_frame_hdr_bytes;
        sizes->sframe_section_bytes = section_bytes(input_image_elf(image), ".sframe");
        result = size_tables(image, sizes, error);
    }
    input_image_close(image);
    return result;
}
