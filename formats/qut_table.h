// SPDX-License-Identifier: Apache-2.0
// The table file (.qut), version 2. Pure data; specification: formats/qut_table.md.
//
//   header | groups | cells | run_starts | wides | runs | blocks
//
// Addresses are counted in units of 1 << pc_shift bytes from text_start. A block is 256 units of text. A group says,
// in half a cache line, where the rows of its 28 blocks are. A block's rows are its pcs (one byte each) followed by its
// rule codes (mostly one byte each); a code names a cell, 16 bytes that hold a rule: one of the table's own, or one
// that all readers have (qut_standard_cells.h).
#ifndef QUT_FORMATS_QUT_TABLE_H
#define QUT_FORMATS_QUT_TABLE_H

#include "formats/qut_rule.h"

#define QUT_TABLE_MAGIC "QUTable\x01"

enum {
    QUT_TABLE_VERSION = 2,
    QUT_TABLE_VERSION_OLDEST = 1, // that is read: without standard cells
    QUT_BLOCK_UNITS = 256,
    QUT_GROUP_BLOCKS = 28,
    QUT_TABLE_SLACK_BYTES = 16, // zero bytes after the last block, so that wide loads may read past a block
    QUT_TABLE_ALIGN = 32,       // of the groups in the file, and of the file in memory
};

struct qut_table_section {
    uint32_t offset; // in the file
    uint32_t size;   // bytes
};

enum qut_table_flag {
    QUT_TABLE_SMALL = 1,          // made with --small
    QUT_TABLE_BUILD_ID = 2,       // identity is a build-id
    QUT_TABLE_OAT_IDENTITY = 4,   // ... that of an OAT file without build-id; neither: a content hash
    QUT_TABLE_FROM_EH_FRAME = 16, // where rows came from
    QUT_TABLE_FROM_DEBUG_FRAME = 32,
    QUT_TABLE_FROM_EXIDX = 64,
    QUT_TABLE_FROM_GNU_DEBUGDATA = 128,
    QUT_TABLE_FROM_DEBUG_FILE = 256,
    QUT_TABLE_FROM_PLT = 512,          // leaf rules for .plt sections without CFI
    QUT_TABLE_FROM_OAT_HEADERS = 1024, // from the headers of an OAT file's methods
    QUT_TABLE_MANAGED = 2048,          // the source is an OAT file: its code is compiled Java code
    QUT_TABLE_FROM_GOPCLNTAB = 4096,   // from the table that a Go program carries for its own runtime
    QUT_TABLE_FROM_CODE = 8192,        // from following code that nothing describes
};

// How a code reads, and which cell it names: see qut_table_code_inline.h. Version 1 has zeros in the last two.
struct qut_table_leads {
    uint8_t short_rules;     // leads below this: rule id = lead
    uint8_t short_runs;      // the next so many: run id = lead - short_rules
    uint8_t long_rule_leads; // the next so many: rule id with one more byte; the rest up to 254: run ids likewise
    uint8_t short_own;       // so many of the short rules are own cells; behind these come the standard ones
    uint16_t standard_count; // so many standard cells have ids
};
static_assert(sizeof(struct qut_table_leads) == 6, "on disk");

struct qut_table_header {
    uint8_t magic[8];
    uint32_t version;
    uint32_t file_size;
    uint64_t checksum; // of everything after this field; formats/qut_table_check.h
    uint8_t arch;      // enum qut_arch_id
    uint8_t pc_shift;
    uint8_t identity_size;
    uint8_t zero;
    uint32_t flags;      // enum qut_table_flag
    uint64_t text_start; // virtual address in the source file
    uint64_t text_size;  // bytes
    uint8_t identity[32];

    struct qut_table_leads leads;
    uint8_t zero2[2];

    struct qut_table_section groups;     // struct qut_table_group, one per QUT_GROUP_BLOCKS blocks
    struct qut_table_section cells;      // union qut_table_cell, the table's own
    struct qut_table_section run_starts; // uint32_t, run_count + 1 of them: offsets into runs; none: no runs
    struct qut_table_section wides;      // blocks with too many bytes for their group
    struct qut_table_section runs;       // rows shared by many places; see --small
    struct qut_table_section blocks;     // rows

    uint32_t row_count; // with runs expanded
    uint32_t rule_count;
    uint32_t refused_rows;
    uint32_t hole_rows;
    uint64_t covered_bytes; // of text with a frame rule
    uint64_t refused_bytes;
    uint32_t eh_frame_bytes; // size of the tables this one was made from (0: absent)
    uint32_t eh_frame_hdr_bytes;
    uint32_t debug_frame_bytes;
    uint32_t exidx_bytes; // .ARM.exidx and .ARM.extab
    uint8_t zero3[8];
};
static_assert(sizeof(struct qut_table_header) == 192, "on disk");

struct qut_table_group {
    uint32_t blocks_offset; // of the first block's bytes, in the section `blocks`
    uint8_t block_bytes[QUT_GROUP_BLOCKS];
};
static_assert(sizeof(struct qut_table_group) == 32, "half a cache line");

enum qut_cell_form {
    QUT_CELL_HOLE = 0,
    QUT_CELL_REFUSED = 1, // aux = reason; STACK_SWITCH: slot[0] = enum qut_stack_switch, cfa = reg + word * cfa_words
    QUT_CELL_FRAME = 2,   // cfa = reg + word * cfa_words; slots from cfa - word * anchor_words
    QUT_CELL_DEREF = 3,   // cfa = *(reg + word * anchor_words) + word * cfa_words; slots from cfa
    QUT_CELL_LONG = 4,    // a whole struct qut_rule is in the next six cells, which no code names
    QUT_CELL_FORM_END,
};

enum {
    QUT_SLOT_SAME = 0,
    QUT_SLOT_UNDEFINED = -128,
    QUT_LONG_CELLS = 7, // the head and six cells of rule
    QUT_SLOT_RA = 0,    // slot[0] is ra, slot[1 + i] is tracked[i]
};

// struct qut_rule_cell.flags: bits 0-3 enum qut_rule_flag, bits 4-5 enum qut_cell_aux, bits 6-7 enum qut_cell_align.
enum {
    QUT_CELL_RULE_FLAGS = 0x0f,
    QUT_CELL_AUX_SHIFT = 4,
    QUT_CELL_ALIGN_SHIFT = 6,
};

enum qut_cell_aux {
    QUT_CELL_AUX_NONE = 0,    // aux = enum qut_rule_origin
    QUT_CELL_AUX_RA_REG = 1,  // ra is the value of register aux
    QUT_CELL_AUX_DEX_REG = 2, // the dex pc is in register aux
};

// A padded rule begins a function: from its row's pc up to the next multiple of the alignment the text is padding, a
// hole; from there on the rule holds.
enum qut_cell_align {
    QUT_CELL_NOT_PADDED = 0,
    QUT_CELL_ALIGN_16 = 1, // bytes
    QUT_CELL_ALIGN_32 = 2,
    QUT_CELL_ALIGN_64 = 3,
};

// One rule in 16 bytes.
struct qut_rule_cell {
    uint8_t form; // enum qut_cell_form
    uint8_t flags;
    uint8_t reg; // base of the CFA, DWARF number
    uint8_t aux;
    int8_t slot[1 + QUT_TRACKED_MAX]; // in words from the anchor; see QUT_SLOT_*
    int16_t cfa_words;
    int16_t anchor_words;
};

union qut_table_cell {
    struct qut_rule_cell rule;
    uint8_t bytes[16];
};
static_assert(sizeof(union qut_table_cell) == 16, "on disk");

#endif
