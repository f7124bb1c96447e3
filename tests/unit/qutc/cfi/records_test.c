// SPDX-License-Identifier: Apache-2.0
// CIEs and FDEs in every form that is written: versions, 32 and 64 bits, encodings, augmentations, terminators.
#include "tests/unit/qutc/cfi/expect.h"

#define WHOLE "10000-10010 cfa=rsp+8 ra=[cfa-8] fp=same\n"

static const struct arch *const x64 = &arch_x86_64;

// One CIE, one FDE over [0, 0x10).
static struct frame_asm pair(enum input_frame_kind kind, struct frame_cie *cie, bool dwarf64_fde)
{
    struct frame_asm a = frame_asm(x64, kind);
    frame_add_cie(&a, cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = cie, .size = 0x10, .dwarf64 = dwarf64_fde});
    return a;
}

START_TEST(versions_and_widths)
{
    static const struct {
        enum input_frame_kind kind;
        uint8_t version;
    } all[] = {{INPUT_FRAME_EH, 1},    {INPUT_FRAME_EH, 3},    {INPUT_FRAME_DEBUG, 1},
               {INPUT_FRAME_DEBUG, 3}, {INPUT_FRAME_DEBUG, 4}, {INPUT_FRAME_DEBUG, 5}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int wide = 0; wide < 4; wide++) {
            struct frame_cie cie = {.version = all[i].version, .dwarf64 = wide & 1};
            struct frame_asm a = pair(all[i].kind, &cie, wide & 2);
            expect_rows(&a, WHOLE);
        }
    }
}
END_TEST

START_TEST(versions_nobody_wrote)
{
    static const uint8_t versions[] = {2, 6, 255};
    for (size_t i = 0; i < sizeof versions; i++) {
        struct frame_cie cie = {.version = versions[i]};
        struct frame_asm a = pair(INPUT_FRAME_DEBUG, &cie, false);
        expect_rows(&a, "error: malformed: .debug_frame+0x0: CIE version\n");
    }
}
END_TEST

START_TEST(word_sizes)
{
    struct frame_asm a = frame_asm(&arch_x86, INPUT_FRAME_EH);
    struct frame_cie cie = {0};
    frame_add_cie(&a, &cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = &cie, .size = 0x10});
    expect_rows(&a, "10000-10010 cfa=esp+4 ra=[cfa-4] fp=same\n");
    // Version 4 states its address size: here 3.
    struct frame_cie stated = {.version = 4};
    a = pair(INPUT_FRAME_DEBUG, &stated, false);
    a.bytes.data[10] = 3;
    expect_rows(&a, "error: malformed: .debug_frame+0x0: CIE address size\n");
    a = pair(INPUT_FRAME_DEBUG, &stated, false);
    a.bytes.data[11] = 2;
    expect_rows(&a, "error: malformed: .debug_frame+0x0: CIE segment selector size\n");
}
END_TEST

START_TEST(pointer_encodings)
{
    static const uint8_t encodings[] = {PE_ABSPTR,
                                        PE_UDATA4,
                                        PE_SDATA4,
                                        PE_UDATA8,
                                        PE_SDATA8,
                                        PE_PCREL | PE_SDATA4,
                                        PE_PCREL | PE_SDATA8,
                                        PE_PCREL | PE_UDATA8,
                                        PE_PCREL | PE_ABSPTR};
    for (size_t i = 0; i < sizeof encodings; i++) {
        struct frame_cie cie = {.pointer_encoding = encodings[i]};
        struct frame_asm a = pair(INPUT_FRAME_EH, &cie, false);
        expect_rows(&a, WHOLE);
    }
    static const uint8_t unsupported[] = {PE_INDIRECT, PE_FUNCREL, 0x60, 0x70, 0x05, 0x0f};
    for (size_t i = 0; i < sizeof unsupported; i++) {
        struct frame_cie cie = {.pointer_encoding = unsupported[i]};
        struct frame_asm a = pair(INPUT_FRAME_EH, &cie, false);
        char *text = rows_of(&a, NULL);
        ck_assert_msg(strncmp(text, "error: unsupported", 18) == 0, "encoding 0x%x: %s", unsupported[i], text);
        free(text);
        frame_free(&a);
    }
}
END_TEST

START_TEST(augmentations)
{
    static const char *const good[] = {"", "zR", "zRS", "zSR", "zLR", "zRB", "zRG", "z"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct frame_cie cie = {.augmentation = good[i]};
        struct frame_asm a = pair(INPUT_FRAME_EH, &cie, false);
        char *text = rows_of(&a, NULL);
        ck_assert_msg(strncmp(text, WHOLE, strlen(WHOLE) - 1) == 0, "%s: %s", good[i], text);
        free(text);
        frame_free(&a);
    }
    // What an unknown letter stands for cannot be skipped: nor can one guess what it says about the frames.
    static const char *const bad[] = {"zRX", "X", "armcc+", "R", "zr"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct frame_cie cie = {.augmentation = bad[i]};
        struct frame_asm a = pair(INPUT_FRAME_EH, &cie, false);
        expect_rows(&a, "error: malformed: .eh_frame+0x0: CIE augmentation\n");
    }
}
END_TEST

START_TEST(augmentation_lengths)
{
    struct frame_cie cie = {0};
    struct frame_asm a = pair(INPUT_FRAME_EH, &cie, false);
    size_t length_at = 4 + 4 + 1 + 3 + 3; // length, id, version, "zR", factors, column
    ck_assert_uint_eq(a.bytes.data[length_at], 1);
    a.bytes.data[length_at] = 0x7f; // past the record
    expect_rows(&a, "error: malformed: .eh_frame+0x0: CIE augmentation length\n");
    a = pair(INPUT_FRAME_EH, &cie, false);
    a.bytes.data[length_at] = 0; // too short for its letters
    expect_rows(&a, "error: malformed: .eh_frame+0x0: CIE augmentation\n");
    // More than the letters need is passed over: here the first instruction.
    static const uint8_t program[] = {0xff, CFA_DEF_CFA, 7, 8, CFA_OFFSET | 16, 1};
    struct frame_cie padded = {.program = program, .program_size = sizeof program};
    a = pair(INPUT_FRAME_EH, &padded, false);
    a.bytes.data[length_at] = 2;
    expect_rows(&a, WHOLE);
}
END_TEST

START_TEST(an_fdes_augmentation_length)
{
    struct frame_cie cie = {0};
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_EH);
    frame_add_cie(&a, &cie);
    struct frame_fde fde = {.cie = &cie, .size = 0x10, .program = BYTES(0xff, CFA_DEF_CFA_OFFSET, 16)};
    frame_add_fde(&a, &fde);
    a.bytes.data[fde.program_at - 1] = 1; // an LSDA pointer, say
    expect_text(rows_of(&a, NULL), "10000-10010 cfa=rsp+16 ra=[cfa-8] fp=same\n");
    a.bytes.data[fde.program_at - 1] = 4; // one too many
    expect_rows(&a, "error: truncated: .eh_frame+0x16: FDE header\n");
}
END_TEST

// An FDE, a terminator, another FDE.
static struct frame_asm interrupted(struct frame_cie *cie)
{
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_EH);
    frame_add_cie(&a, cie);
    frame_add_fde(&a, &(struct frame_fde){.cie = cie, .size = 0x10});
    frame_put(&a.bytes, 0, 4);
    frame_add_fde(&a, &(struct frame_fde){.cie = cie, .start = 0x20, .size = 0x10});
    frame_put(&a.bytes, 0, 4);
    return a;
}

START_TEST(a_terminator_in_the_middle)
{
    struct frame_cie cie = {0};
    struct frame_asm a = interrupted(&cie);
    expect_rows(&a, WHOLE "10020-10030 cfa=rsp+8 ra=[cfa-8] fp=same\n");
    // Without section headers the reader does not know what follows it.
    a = interrupted(&cie);
    a.by_segment = true;
    expect_rows(&a, WHOLE);
}
END_TEST

START_TEST(an_fde_before_its_cie)
{
    // .debug_frame allows any order; the CIE pointer is set by hand.
    struct frame_cie first = {0}, second = {0};
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_DEBUG);
    frame_add_cie(&a, &first);
    size_t fde = frame_add_fde(&a, &(struct frame_fde){.cie = &first, .size = 0x10});
    frame_add_cie(&a, &second);
    a.bytes.data[fde + 4] = (uint8_t)second.offset;
    a.bytes.data[8] = 77; // the first CIE's version
    expect_rows(&a, WHOLE);
}
END_TEST

START_TEST(an_eh_frame_pointer_forward)
{
    struct frame_cie first = {0}, second = {0};
    struct frame_asm a = frame_asm(x64, INPUT_FRAME_EH);
    frame_add_cie(&a, &first);
    size_t fde = frame_add_fde(&a, &(struct frame_fde){.cie = &first, .size = 0x10});
    frame_add_cie(&a, &second);
    uint32_t back = (uint32_t)(fde + 4 - second.offset); // negative
    memcpy(a.bytes.data + fde + 4, &back, 4);
    char *text = rows_of(&a, NULL);
    ck_assert_ptr_nonnull(strstr(text, "CIE pointer leads outside the section"));
    free(text);
    frame_free(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("records");
    TCase *tests = tcase_create("well formed, and nearly so");
    tcase_add_test(tests, versions_and_widths);
    tcase_add_test(tests, versions_nobody_wrote);
    tcase_add_test(tests, word_sizes);
    tcase_add_test(tests, pointer_encodings);
    tcase_add_test(tests, augmentations);
    tcase_add_test(tests, augmentation_lengths);
    tcase_add_test(tests, an_fdes_augmentation_length);
    tcase_add_test(tests, a_terminator_in_the_middle);
    tcase_add_test(tests, an_fde_before_its_cie);
    tcase_add_test(tests, an_eh_frame_pointer_forward);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
