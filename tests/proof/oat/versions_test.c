// SPDX-License-Identifier: Apache-2.0
// Every version of the format and every architecture: a table made from headers and one made from frame programs say
// the same in the bodies of methods. What is not known is refused, what is damaged is left out.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "libqut/runtime/table.h"
#include "qutc/cfi/oat_header.h"
#include "qutc/qutc.h"
#include "tests/support/oat_samples.h"
#include "tests/support/run_suite.h"

static const uint32_t versions[] = {64, 79, 88, 124, 131, 138, 170, 183, 199, 225, 230, 238, 239, 244, 265};
enum { VERSIONS = sizeof versions / sizeof *versions };

struct made {
    uint8_t *bytes;
    struct qut_table table;
    struct qutc_compile_stats stats;
    struct base_error error, damage;
    bool good;
};

static struct made make(const struct build_buffer *file, bool as_mapped)
{
    struct made made = {0};
    struct input_image *image;
    struct input_image_options options = {.as_mapped = as_mapped};
    size_t size;
    uint64_t fault;
    if (input_image_open_memory((struct base_bytes){file->data, file->size}, "oat", &options, &image, &made.error) != 0)
        return made;
    made.good = qutc_compile(image, NULL, &made.bytes, &size, &made.stats, &made.error) == 0;
    made.damage = image->damage;
    if (made.good)
        ck_assert_int_eq(runtime_table_attach(&made.table, made.bytes, size, &fault), 0);
    input_image_close(image);
    return made;
}

static struct made make_of(struct oat_spec *spec, bool as_mapped)
{
    struct build_buffer file = oat_write(spec);
    struct made made = make(&file, as_mapped);
    free(file.data);
    return made;
}

static void describe(const struct oat_spec *spec, char *text, size_t size)
{
    snprintf(text, size, "%s, OAT %03u, frames %d", spec->arch->name, (unsigned)spec->version, (int)spec->frames);
}

// The body's rule at each pc of the body, from nothing but the sample.
static struct qut_rule expected_rule(const struct arch *arch, const struct oat_method *m)
{
    static const uint8_t x86_64_numbers[] = {0, 2, 1, 3, 7, 6, 4, 5};
    bool is_leaf = m->code == OAT_LEAF;
    unsigned ra = arch->id == QUT_ARCH_RISCV64 ? 1u : 31u - (unsigned)__builtin_clz(m->core_mask), place = 1;
    struct qut_rule rule = {.kind = QUT_RULE_FRAME, .dex_pc_reg = QUT_NO_REGISTER};
    rule.cfa.reg = arch->sp_reg;
    rule.cfa.offset_bytes = is_leaf ? (arch->ra_in_register ? 0 : arch->word_bytes) : (int32_t)m->frame_bytes;
    if (arch->id == QUT_ARCH_X86)
        rule.tracked[arch_slot(arch, 3)].how = QUT_REG_UNDEFINED;
    if (!is_leaf || !arch->ra_in_register)
        rule.ra = (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -(int32_t)arch->word_bytes};
    for (unsigned i = 32; i-- > 0 && !is_leaf;) {
        if (!(m->core_mask >> i & 1) || i == ra)
            continue;
        int slot = arch_slot(arch, arch->id == QUT_ARCH_X86_64 && i < 8 ? x86_64_numbers[i] : i);
        place++;
        if (slot >= 0)
            rule.tracked[slot] =
                (struct qut_reg_rule){.how = QUT_REG_AT_CFA, .offset_bytes = -(int32_t)(place * arch->word_bytes)};
    }
    return rule;
}

static void check_bodies(const struct oat_spec *spec, const struct made *made, bool from_headers)
{
    char what[80];
    describe(spec, what, sizeof what);
    ck_assert_msg(made->good, "%s: %s", what, made->error.detail);
    ck_assert(made->table.header->flags & QUT_TABLE_MANAGED);
    ck_assert_msg(from_headers == ((made->table.header->flags & QUT_TABLE_FROM_OAT_HEADERS) != 0), "%s", what);
    for (unsigned i = 0; i < spec->method_count; i++) {
        const struct oat_method *m = &spec->methods[i];
        struct qut_rule expected = expected_rule(spec->arch, m), rule;
        for (uint64_t pc = m->vaddr + m->body_at; pc < m->vaddr + m->body_end; pc += 1u << spec->arch->pc_shift) {
            runtime_table_rule(&made->table, pc, &rule);
            if (from_headers)
                ck_assert_uint_eq(rule.flags, m->code == OAT_ODD ? QUT_RULE_BODY_ONLY : 0);
            rule.flags = 0;
            ck_assert_msg(memcmp(&rule, &expected, sizeof rule) == 0, "%s: method %u at %#llx: cfa+%d, not %d", what, i,
                          (unsigned long long)pc, rule.cfa.offset_bytes, expected.cfa.offset_bytes);
        }
        runtime_table_rule(&made->table, m->vaddr - 1, &rule);
        ck_assert_msg(rule.kind == QUT_RULE_HOLE, "%s: before method %u", what, i);
    }
}

static void for_each(void (*check)(const struct arch *, uint32_t))
{
    for (unsigned arch = QUT_ARCH_X86_64; arch < QUT_ARCH_END; arch++)
        for (unsigned v = 0; v < VERSIONS; v++)
            check(arch_by_id(arch), versions[v]);
}

static void check_headers(const struct arch *arch, uint32_t version)
{
    for (unsigned i = 0; i < 3; i++) { // whole, as mapped, without tables: found by symbols or by searching
        struct oat_spec spec;
        oat_spec_init(&spec, arch, version);
        spec.no_tables = i == 2;
        struct made made = make_of(&spec, i == 1);
        check_bodies(&spec, &made, true);
        ck_assert_uint_eq(made.stats.oat.methods, spec.method_count);
        ck_assert_uint_eq(made.stats.oat.certainty[CFI_OAT_EXACT], 2);
        ck_assert_uint_eq(made.stats.oat.certainty[CFI_OAT_BODY_ONLY], 1);
        ck_assert_msg(made.stats.oat.scanned == spec.no_tables, "%s %u %u", arch->name, (unsigned)version, i);
        free(made.bytes);
    }
}

START_TEST(headers_of_every_version)
{
    for_each(check_headers);
}
END_TEST

static void check_frames(const struct arch *arch, uint32_t version)
{
    for (enum oat_frames frames = OAT_DEBUG_FRAME; frames <= OAT_EH_FRAME; frames++) {
        struct oat_spec spec;
        if (frames == OAT_EH_FRAME && version != 64)
            continue;
        oat_spec_init(&spec, arch, version);
        spec.frames = frames;
        struct made made = make_of(&spec, false);
        check_bodies(&spec, &made, false);
        ck_assert_uint_eq(made.stats.oat.described, spec.method_count);
        free(made.bytes);
    }
}

START_TEST(frame_programs_come_first)
{
    for_each(check_frames);
}
END_TEST

// What cannot be unpacked is named, and headers serve.
static void cut(struct build_buffer *xz)
{
    xz->size /= 2;
}

static void spoil_check(struct build_buffer *xz)
{
    xz->data[xz->size / 2] ^= 0x40;
}

START_TEST(damaged_debug_data_leaves_the_headers)
{
    void (*const spoilers[])(struct build_buffer *) = {cut, spoil_check};
    for (unsigned i = 0; i < 2; i++)
        for (unsigned v = 0; v < VERSIONS; v++) {
            struct oat_spec spec;
            oat_spec_init(&spec, &arch_aarch64, versions[v]);
            spec.frames = OAT_XZ;
            spec.spoil_xz = spoilers[i];
            struct made made = make_of(&spec, false);
            check_bodies(&spec, &made, true);
            ck_assert_int_eq(made.damage.reason, BASE_ERR_COMPRESSION);
            ck_assert_str_eq(made.damage.section, ".gnu_debugdata");
            free(made.bytes);
        }
}
END_TEST

START_TEST(unknown_versions_have_frame_programs_only)
{
    static const uint32_t unknown[] = {1, 63, 65, 78, 89, 123, 156, 168, 169, 171, 172, 266, 999};
    for (unsigned i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        struct oat_spec spec;
        oat_spec_init(&spec, &arch_aarch64, unknown[i]);
        spec.format_version = 183;
        struct made made = make_of(&spec, false);
        ck_assert(!made.good);
        ck_assert_int_eq(made.error.reason, BASE_ERR_UNSUPPORTED);
        ck_assert_ptr_nonnull(strstr(made.error.detail, "version"));
        spec.frames = OAT_XZ;
        made = make_of(&spec, false);
        check_bodies(&spec, &made, false);
        ck_assert(made.stats.oat.unknown_version);
        free(made.bytes);
    }
}
END_TEST

// A symbol or a table names it, but there is no header: a hole, not a neighbour's rule.
START_TEST(method_without_a_header_is_a_hole)
{
    for (unsigned v = 0; v < VERSIONS; v++) {
        struct oat_spec spec;
        struct qut_rule rule;
        oat_spec_init(&spec, &arch_aarch64, versions[v]);
        spec.methods[0].no_header = true;
        struct made made = make_of(&spec, false);
        ck_assert(made.good);
        ck_assert_uint_eq(made.stats.oat.methods, spec.method_count - 1);
        ck_assert_uint_eq(made.stats.oat.no_header, 1);
        for (uint32_t at = 0; at < spec.methods[0].code_bytes; at += 4) {
            runtime_table_rule(&made.table, spec.methods[0].vaddr + at, &rule);
            ck_assert_int_eq(rule.kind, QUT_RULE_HOLE);
        }
        free(made.bytes);
    }
}
END_TEST

START_TEST(varints)
{
    static const uint32_t numbers[] = {0,   1,     2,     3,        4,         5,          6,          7,
                                       8,   9,     10,    11,       12,        13,         255,        256,
                                       257, 65535, 65536, 0xffffff, 0x1000000, 0x7ff00000, 0x7ff80000, 0xffffffff};
    enum { COUNT = sizeof numbers / sizeof *numbers, AT_ONCE = 8 };
    for (unsigned interleaved = 0; interleaved < 2; interleaved++)
        for (unsigned first = 0; first + AT_ONCE <= COUNT; first++) {
            struct build_buffer buffer = {0};
            uint32_t values[AT_ONCE];
            oat_put_varints(&buffer, interleaved, numbers + first, AT_ONCE);
            ck_assert(
                cfi_oat_read_varints((struct base_bytes){buffer.data, buffer.size}, interleaved, values, AT_ONCE));
            ck_assert_mem_eq(values, numbers + first, sizeof values);
            for (size_t size = 0; size < buffer.size; size++)
                ck_assert(!cfi_oat_read_varints((struct base_bytes){buffer.data, size}, interleaved, values, AT_ONCE));
            free(buffer.data);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("oat_versions");
    TCase *tcase = tcase_create("oat_versions");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, headers_of_every_version);
    tcase_add_test(tcase, frame_programs_come_first);
    tcase_add_test(tcase, damaged_debug_data_leaves_the_headers);
    tcase_add_test(tcase, unknown_versions_have_frame_programs_only);
    tcase_add_test(tcase, method_without_a_header_is_a_hole);
    tcase_add_test(tcase, varints);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
