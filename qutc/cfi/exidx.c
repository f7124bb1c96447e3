// SPDX-License-Identifier: Apache-2.0
// An index entry is two words: where a function begins, and what to do in it. The second is EXIDX_CANTUNWIND, or up to
// three instructions, or the place of a longer list in .ARM.extab.
//
// What becomes of a function's first row. The instructions are true in the function's body. Before its prologue is
// done something else is: at the first instruction cfa = sp and ra = lr. A walker that was interrupted there can only
// know that by seeing that the pc is a row's start, so every function with a frame rule keeps a row of its own, even
// where its neighbour's rule is the same one. Nothing is to be known of the starts of what cannot be unwound: equal
// refusals and holes merge.
#include "qutc/cfi/exidx.h"

#include <stdlib.h>

#include "qutc/cfi/ehabi.h"

enum {
    EXIDX_CANTUNWIND_WORD = 1,
    ENTRY_BYTES = 8,
    NO_ENTRY = 0xffffffff,
};

struct entry {
    uint32_t pc;    // without the Thumb bit
    uint32_t place; // address of the second word
    uint32_t data;  // the second word
    bool cut;       // the section ends before the second word
};

// A signed offset of 31 bits from the word's own place; addresses wrap at 32 bits. Bit 31 is not part of it.
static uint32_t prel31(uint32_t word, uint32_t place)
{
    uint32_t sign = word << 1 & UINT32_C(0x80000000);
    return place + ((word & UINT32_C(0x7fffffff)) | sign);
}

static const struct input_range *executable_range(const struct input_image *image, uint64_t pc)
{
    for (unsigned i = 0; i < image->exec_count; i++)
        if (pc >= image->exec[i].start && pc < image->exec[i].end)
            return &image->exec[i];
    return NULL;
}

// Linkers end the index with an entry at the text's end, so that the last function does not run on.
static bool ends_executable_range(const struct input_image *image, uint64_t pc)
{
    for (unsigned i = 0; i < image->exec_count; i++)
        if (pc == (image->exec[i].end & ~UINT64_C(1)))
            return true;
    return false;
}

// The instructions stand in words, first instruction in the highest byte.
struct opcode_list {
    uint8_t bytes[CFI_EHABI_OPCODES_MAX];
    size_t count;
};

static void append_opcodes(struct opcode_list *list, uint32_t word, unsigned byte_count)
{
    for (unsigned i = byte_count; i-- > 0;)
        list->bytes[list->count++] = (uint8_t)(word >> (8 * i));
}

// One table entry of .ARM.extab:
//   1000 0000 | op op op                      Su16: short descriptors, all instructions in this word
//   1000 0001 | N op op | N words of op       Lu16
//   1000 0010 | N op op | N words of op       Lu32
//   0 prel31 to a routine | N op op op | N words of op
// What follows a routine is the routine's own business by the letter of the EHABI. In fact the assemblers, GNU's and
// LLVM's, write this layout behind every one, whatever its language.
static enum qut_refusal read_table_entry(const struct input_image *image, uint32_t address, struct opcode_list *list)
{
    struct base_cursor c = base_cursor(input_image_at(image, address));
    uint32_t word = base_read_u32(&c);
    uint32_t further_words = 0;
    if (c.failed)
        return QUT_REFUSED_EXIDX_TRUNCATED;
    switch (word >> 24) {
    case 0x80: append_opcodes(list, word, 3); break;
    case 0x81:
    case 0x82:
        further_words = word >> 16 & 0xff;
        append_opcodes(list, word, 2);
        break;
    default:
        // A routine that is no code is not one whose data we can claim to know.
        if (word >> 31 || !executable_range(image, prel31(word, address) & ~UINT32_C(1)))
            return QUT_REFUSED_PERSONALITY;
        word = base_read_u32(&c);
        further_words = word >> 24;
        append_opcodes(list, word, 3);
        break;
    }
    for (uint32_t i = 0; i < further_words; i++)
        append_opcodes(list, base_read_u32(&c), 4);
    return c.failed ? QUT_REFUSED_EXIDX_TRUNCATED : QUT_REFUSED_NOT;
}

static struct qut_rule entry_rule(const struct input_image *image, const struct entry *entry)
{
    struct opcode_list list = {.count = 0};
    enum qut_refusal refusal = QUT_REFUSED_NOT;
    if (entry->cut)
        refusal = QUT_REFUSED_EXIDX_TRUNCATED;
    else if (entry->data == EXIDX_CANTUNWIND_WORD)
        refusal = QUT_REFUSED_CANTUNWIND;
    else if (entry->data >> 24 == 0x80) // in the index itself there is room for the first compact form only
        append_opcodes(&list, entry->data, 3);
    else if (entry->data >> 31)
        refusal = QUT_REFUSED_PERSONALITY;
    else
        refusal = read_table_entry(image, prel31(entry->data, entry->place), &list);
    if (refusal)
        return cfi_rule_refused(refusal);
    return cfi_ehabi_rule(image->arch, (struct base_bytes){list.bytes, list.count});
}

// The entries whose functions lie in the text. Returns how many.
static size_t read_entries(const struct input_image *image, const struct input_frame_section *section,
                           struct input_range text, struct entry *entries, struct cfi_exidx_counts *counts)
{
    size_t count = 0;
    struct base_cursor c = base_cursor(section->bytes);
    while (base_cursor_left(&c)) {
        uint32_t place = (uint32_t)(section->vaddr + base_cursor_offset(&c));
        uint32_t word = base_read_u32(&c);
        bool has_pc = !c.failed;
        struct entry entry = {.pc = prel31(word, place) & ~UINT32_C(1), .place = place + 4, .data = base_read_u32(&c)};
        entry.cut = c.failed;
        bool in_text = entry.pc < text.end && executable_range(image, entry.pc);
        if (has_pc && entry.pc >= text.start && (in_text || ends_executable_range(image, entry.pc)))
            entries[count++] = entry;
        else
            counts->out_of_order++;
    }
    return count;
}

// Keeps the longest ascending run of entries, not the run that the first of them happens to begin: one wrong address
// takes itself out and none of its neighbours. Linear where the index is in order. Returns how many are kept.
static size_t keep_ascending(struct entry *entries, size_t count, uint32_t *last_of_length, uint32_t *before)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        size_t low = 0, high = length;
        if (length && entries[last_of_length[length - 1]].pc <= entries[i].pc)
            low = length;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (entries[last_of_length[middle]].pc <= entries[i].pc)
                low = middle + 1;
            else
                high = middle;
        }
        before[i] = low ? last_of_length[low - 1] : NO_ENTRY;
        last_of_length[low] = (uint32_t)i;
        if (low == length)
            length++;
    }
    uint32_t chain = length ? last_of_length[length - 1] : NO_ENTRY;
    for (size_t i = length; i-- > 0; chain = before[chain])
        last_of_length[i] = chain;
    for (size_t i = 0; i < length; i++)
        entries[i] = entries[last_of_length[i]];
    return length;
}

// A row of its own for a function; see the top of this file. At the same pc it replaces what was there.
static void put_function(struct cfi_row_list *rows, uint32_t pc_rel, uint32_t rule_id)
{
    if (rows->count && rows->rows[rows->count - 1].pc_rel == pc_rel)
        rows->count--;
    rows->rows[rows->count++] = (struct cfi_row){pc_rel, rule_id};
}

static int put_rows(const struct input_image *image, const struct entry *entries, size_t count, struct input_range text,
                    struct cfi_rule_set *rules, struct cfi_row_list *rows, struct cfi_exidx_counts *counts,
                    struct base_error *error)
{
    if (cfi_row_list_reserve(rows, 2 * count + 1, error))
        return -1;
    if (text.start < text.end)
        cfi_row_list_put(rows, 0, CFI_RULE_HOLE_ID);
    for (size_t i = 0; i < count; i++) {
        struct qut_rule rule = entry_rule(image, &entries[i]);
        counts->functions++;
        if (rule.kind == QUT_RULE_REFUSED && rule.reason == QUT_REFUSED_CANTUNWIND)
            counts->cantunwind++;
        else if (rule.kind == QUT_RULE_REFUSED)
            counts->refused++;

        const struct input_range *range = executable_range(image, entries[i].pc);
        uint64_t start = entries[i].pc;
        uint64_t end = range ? range->end & ~UINT64_C(1) : start;
        if (end > text.end)
            end = text.end & ~UINT64_C(1);
        if (i + 1 < count && entries[i + 1].pc < end)
            end = entries[i + 1].pc;
        if (start >= end) // of several entries at one address the last counts; one at the text's end holds nowhere
            continue;
        uint32_t rule_id = cfi_rule_set_intern(rules, &rule);
        if (rule_id == CFI_RULE_NO_MEMORY)
            return base_fail(error, BASE_ERR_NO_MEMORY, ".ARM.exidx", i * ENTRY_BYTES, "rules");
        if (rule.kind == QUT_RULE_FRAME)
            put_function(rows, (uint32_t)(start - text.start), rule_id);
        else
            cfi_row_list_put(rows, (uint32_t)(start - text.start), rule_id);
        if (end < (text.end & ~UINT64_C(1)))
            cfi_row_list_put(rows, (uint32_t)(end - text.start), CFI_RULE_HOLE_ID);
    }
    return 0;
}

int cfi_exidx_read(const struct input_image *image, const struct input_frame_section *section, uint64_t text_start,
                   uint64_t text_end, struct cfi_rule_set *rules, struct cfi_row_list *rows,
                   struct cfi_exidx_counts *counts, struct base_error *error)
{
    *counts = (struct cfi_exidx_counts){0};
    if (section->kind != INPUT_FRAME_EXIDX || !image->arch->has_exidx)
        return base_fail(error, BASE_ERR_UNSUPPORTED, section->name, 0, "not an Arm exception index");
    if (text_start & 1 || text_start > text_end || text_end > UINT64_C(1) << 32)
        return base_fail(error, BASE_ERR_MALFORMED, section->name, 0, "text of %#llx to %#llx",
                         (unsigned long long)text_start, (unsigned long long)text_end);
    if (section->bytes.size > UINT32_MAX)
        return base_fail(error, BASE_ERR_LIMIT, section->name, 0, "an index above 4 GiB");

    size_t entries_max = section->bytes.size / ENTRY_BYTES + 1;
    struct entry *entries = malloc(entries_max * sizeof *entries);
    uint32_t *chains = malloc(2 * entries_max * sizeof *chains);
    int result = -1;
    if (!entries || !chains) {
        base_fail(error, BASE_ERR_NO_MEMORY, section->name, 0, "%zu index entries", entries_max);
    } else {
        struct input_range text = {text_start, text_end};
        size_t in_text = read_entries(image, section, text, entries, counts);
        size_t kept = keep_ascending(entries, in_text, chains, chains + entries_max);
        counts->out_of_order += (uint32_t)(in_text - kept);
        result = put_rows(image, entries, kept, text, rules, rows, counts, error);
    }
    free(chains);
    free(entries);
    return result;
}
