// SPDX-License-Identifier: Apache-2.0
// Seeds of the readers of files; those of traces, targets and names have files of their own.
#include <stdio.h>
#include <stdlib.h>

#include "qutc/bundle.h"
#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/support/dex_writer.h"
#include "tests/support/oat_writer.h"
#include "tests/support/rows.h"
#include "tests/support/table_sample.h"

static void packed_seeds(void)
{
    uint8_t text[2000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * i >> 4);
    struct build_buffer zlib = build_zlib(text, sizeof text), zstd = build_zstd(text, sizeof text);
    struct build_buffer sections[] = {build_compressed64(ELFCOMPRESS_ZLIB, sizeof text, &zlib),
                                      build_compressed64(2, sizeof text, &zstd)}; // ELFCOMPRESS_ZSTD
    write_seed("xz", "zlib", 3, sections[0].data, sections[0].size);
    write_seed("xz", "zstd", 3, sections[1].data, sections[1].size);
    for (size_t i = 0; i < 2; i++)
        free(sections[i].data);
    free(zlib.data);
    free(zstd.data);
}

// The segment that fuzz_exidx takes: two bytes of count, two of nothing, the index, .ARM.extab, code.
static void exidx_seeds(void)
{
    enum { ENTRIES = 3, EXTAB_AT = 4 + 8 * ENTRIES, CODE_AT = 0x40, CODE_BYTES = 0x300 };
    uint32_t words[(CODE_AT + CODE_BYTES) / 4] = {
        ENTRIES,
        (CODE_AT - 4) & 0x7fffffff,
        1, // CANTUNWIND
        (CODE_AT + 0x100 - 12) & 0x7fffffff,
        0x80a8b0b0, // pop {r4, lr}
        (CODE_AT + 0x200 - 20) & 0x7fffffff,
        EXTAB_AT - 24,
        0x8101b108, // personality 1: one word more
        0xb0b0b0b0,
    };
    write_seed("exidx", "three", -1, words, sizeof words);
}

// Its data begins so far on that its end is before its start.
static void wrap_oat_data(const struct build_buffer *file)
{
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= file->size; at += 8) {
        Elf64_Sym symbol;
        memcpy(&symbol, file->data + at, sizeof symbol);
        if (symbol.st_value != OAT_DATA_VADDR || symbol.st_name == 0 || symbol.st_name > 64)
            continue;
        symbol.st_value = 0 - (uint64_t)OAT_DATA_VADDR;
        symbol.st_size = 2 * OAT_DATA_VADDR;
        memcpy(file->data + at, &symbol, sizeof symbol);
    }
}

// Whole OAT files, one of each way in which headers are written; from headers alone, and with frame programs.
static void oat_file_seeds(const struct arch *arch)
{
    static const uint16_t versions[] = {64, 88, 131, 170, 183, 199, 238, 244};
    for (size_t i = 0; i < 2 * sizeof versions / sizeof *versions; i++) {
        struct oat_spec spec;
        oat_spec_init(&spec, arch, versions[i / 2]);
        spec.frames = i % 2 ? OAT_DEBUG_FRAME : OAT_NO_FRAMES;
        struct build_buffer file = oat_write(&spec);
        char name[64];
        snprintf(name, sizeof name, "oat-%s-%u-%zu", arch->name, versions[i / 2], i % 2);
        write_seed("oat_file", name, -1, file.data, file.size);
        if (i == 1 || i == 6)
            write_seed("names", name, 3, file.data, file.size);
        if (i == 1 && arch->word_bytes == 8) {
            wrap_oat_data(&file);
            snprintf(name, sizeof name, "oat-%s-wraps", arch->name);
            write_seed("oat_file", name, -1, file.data, file.size);
        }
        free(file.data);
    }
}

// Headers of each form before the code, which is of zeros: a frame of 64 bytes with the return address in it.
static void oat_seeds(const struct arch *arch)
{
    static const uint32_t ra_bits[QUT_ARCH_END] = {0, 1u << 16, 1u << 30, 1u << 14, 1u << 8, 1u << 1};
    static const uint16_t versions[] = {64, 88, 131};
    enum { HEADER_BYTES = 32, CODE_BYTES = 64 };
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        uint32_t words[(HEADER_BYTES + CODE_BYTES) / 4] = {0};
        const uint32_t method[] = {64, ra_bits[arch->id], 0, CODE_BYTES};
        memcpy((uint8_t *)words + HEADER_BYTES - sizeof method, method, sizeof method);
        const uint8_t head[] = {(uint8_t)(arch->id - 1), (uint8_t)versions[i], 0, HEADER_BYTES, 0};
        struct build_buffer seed = {0};
        build_add(&seed, head, sizeof head);
        build_add(&seed, words, sizeof words);
        char name[64];
        snprintf(name, sizeof name, "%s-%u", arch->name, versions[i]);
        write_seed("oat", name, -1, seed.data, seed.size);
        free(seed.data);
    }
}

// Every version of dex files, two of them in a file, and every version of what holds them.
static void dex_seeds(void)
{
    static const struct dex_method methods[] = {{"a", 8, false, false}, {"b", 0, false, false}, {"c", 40, false, true}};
    static const struct dex_class classes[] = {{"LA;", methods, 3}, {"Lx/B;", methods, 2}};
    static const unsigned dex_versions[] = {0, 35, 39, 41}, vdex_versions[] = {6, 10, 19, 21, 27};
    enum { AT_START, VDEX, SEARCHED, BY_PATH }; // the first byte of fuzz_dex
    char name[64];
    for (size_t i = 0; i < sizeof dex_versions / sizeof *dex_versions; i++) {
        const struct dex_spec specs[] = {{dex_versions[i], classes, 2}, {dex_versions[i], classes, 1}};
        struct build_buffer file = {0};
        uint64_t offsets[2];
        dex_add(&file, specs, 2, 0, offsets, NULL);
        snprintf(name, sizeof name, "dex-%u", dex_versions[i]);
        write_seed("dex", name, AT_START, file.data, file.size);
        snprintf(name, sizeof name, "searched-%u", dex_versions[i]);
        write_seed("dex", name, SEARCHED, file.data, file.size);
        const struct build_member members[] = {{"a.txt", "text", 4, 0},
                                               {"classes.dex", file.data, file.size, 0},
                                               {"classes2.dex", file.data, file.size, 8}};
        struct build_buffer archive = build_zip(members, 3, "");
        snprintf(name, sizeof name, "path-%u", dex_versions[i]);
        write_seed("dex", name, BY_PATH, file.data, file.size);
        snprintf(name, sizeof name, "archive-%u", dex_versions[i]);
        write_seed("dex", name, BY_PATH, archive.data, archive.size);
        free(archive.data);
        free(file.data);
    }
    for (size_t i = 0; i < sizeof vdex_versions / sizeof *vdex_versions; i++) {
        const struct dex_spec specs[] = {{vdex_versions[i] < 19 ? 37 : 0, classes, 2}};
        struct build_buffer file = dex_vdex(vdex_versions[i], specs, 1, NULL);
        snprintf(name, sizeof name, "vdex-%u", vdex_versions[i]);
        write_seed("dex", name, VDEX, file.data, file.size);
        snprintf(name, sizeof name, "vdex-path-%u", vdex_versions[i]);
        write_seed("dex", name, BY_PATH, file.data, file.size);
        free(file.data);
    }
}

static void table_seeds(void)
{
    struct maker m;
    sample_fill(&m);
    for (int small = 0; small < 2; small++) {
        struct made_table made = maker_table(&m, small);
        const char *name = small ? "small" : "plain";
        write_seed("table", name, 1, made.bytes, made.size);
        struct qutc_bundle_item items[] = {{"a.qut", made.bytes, made.size}, {"b.qut", made.bytes, made.size}};
        uint8_t *bundle = NULL;
        size_t size;
        if (qutc_bundle_pack(items, 2, &bundle, &size, NULL) == 0)
            write_seed("bundle", name, 1, bundle, size);
        free(bundle);
        made_table_free(&made);
    }
    maker_free(&m);
}

void all_seeds(void)
{
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_by_id((enum qut_arch_id)id);
        frame_seeds(arch);
        jit_seeds(arch);
        oat_seeds(arch);
        oat_file_seeds(arch);
        target_seeds(arch);
        name_seeds(arch);
    }
    packed_seeds();
    exidx_seeds();
    dex_seeds();
    table_seeds();
    trace_seeds();
    call_seeds();
    agent_seeds();
    probe_seeds();
}
