// SPDX-License-Identifier: Apache-2.0
// The words of each format, from the headers that define them: a new magic or type is in the dictionary when it is in
// the format.
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/qut_agent.h"
#include "formats/qut_bundle.h"
#include "formats/qut_table.h"
#include "formats/qut_trace_file.h"
#include "libqut/arch/arch.h"
#include "tests/proof/fuzz/seeds/seeds.h"

struct dictionary {
    FILE *file;
};

static void add(struct dictionary *to, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    fputc('"', to->file);
    for (size_t i = 0; i < size; i++)
        fprintf(to->file, "\\x%02x", at[i]);
    fputs("\"\n", to->file);
}

static void add_text(struct dictionary *to, const char *text)
{
    add(to, text, strlen(text));
}

static void add_number(struct dictionary *to, uint64_t value, size_t size)
{
    add(to, &value, size);
}

static void add_range(struct dictionary *to, uint64_t end, size_t size)
{
    for (uint64_t i = 0; i < end; i++)
        add_number(to, i, size);
}

// ---- the formats

static void elf_words(struct dictionary *to)
{
    static const char *const sections[] = {".eh_frame",        ".eh_frame_hdr", ".debug_frame", ".zdebug_frame",
                                           ".gnu_debugdata",   ".ARM.exidx",    ".ARM.extab",   ".note.gnu.build-id",
                                           ".gnu_debuglink",   ".dynsym",       ".symtab",      ".plt",
                                           ".plt.sec",         ".rela.plt",     ".text",        "oatdata",
                                           "oatexec",          "oatlastword",   "oatbss",       ".debug_info",
                                           ".gnu_debugaltlink"};
    static const uint32_t types[] = {PT_LOAD,   PT_DYNAMIC,   PT_NOTE,    PT_GNU_EH_FRAME, PT_ARM_EXIDX,
                                     PT_INTERP, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB,      SHT_RELA,
                                     SHT_HASH,  SHT_NOTE,     SHT_NOBITS, SHT_DYNSYM,      SHT_GNU_HASH};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        add_text(to, sections[i]);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        add_number(to, types[i], 4);
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++)
        add_number(to, arch_by_id((enum qut_arch_id)id)->elf_machine, 2);
    static const uint16_t e_types[] = {ET_REL, ET_EXEC, ET_DYN, ET_CORE};
    for (size_t i = 0; i < sizeof e_types / sizeof *e_types; i++)
        add_number(to, e_types[i], 2);
    static const uint64_t flags[] = {SHF_COMPRESSED, SHF_ALLOC | SHF_EXECINSTR, PF_R | PF_X};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        add_number(to, flags[i], 4);
    add_text(to, ELFMAG);
}

static void core_words(struct dictionary *to)
{
    static const uint32_t notes[] = {NT_PRSTATUS, NT_PRPSINFO, NT_AUXV, NT_FILE, 0x406, 0x901};
    static const uint32_t auxv[] = {AT_ENTRY, AT_PHDR, AT_BASE, AT_SYSINFO_EHDR};
    elf_words(to);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        add_number(to, notes[i], 4);
    for (size_t i = 0; i < sizeof auxv / sizeof *auxv; i++)
        add_number(to, auxv[i], 8);
    add(to, "CORE\0\0\0", 8);
    add(to, "LINUX\0\0", 8);
}

static void oat_words(struct dictionary *to)
{
    static const char *const versions[] = {"064", "079", "088", "124", "131", "138", "170", "183",
                                           "195", "199", "225", "230", "238", "244", "248"};
    elf_words(to);
    add_text(to, "oat\n");
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        add_text(to, versions[i]);
}

static void dex_words(struct dictionary *to)
{
    static const char *const words[] = {"dex\n035", "dex\n039", "dex\n040", "dex\n041", "cdex001",
                                        "vdex",     "006",      "010",      "019",      "021",
                                        "027",      "PK\5\6",   "PK\1\2",   "PK\3\4",   "classes.dex"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_text(to, words[i]);
}

static void zip_words(struct dictionary *to)
{
    static const char *const words[] = {"PK\5\6", "PK\1\2", "PK\3\4", "PK\6\6", "PK\6\7", "lib/a.so", ".so"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_text(to, words[i]);
    add_number(to, 0xffffffff, 4);
}

static void packed_words(struct dictionary *to)
{
    add(to,
        "\xfd"
        "7zXZ\0",
        6);
    add_text(to, "YZ");
    add_text(to, "ZLIB");
    add_number(to, 0xfd2fb528, 4); // zstd
    add_range(to, 3, 4);
}

static void table_words(struct dictionary *to)
{
    add(to, QUT_TABLE_MAGIC, sizeof((struct qut_table_header *)0)->magic);
    add_range(to, QUT_REG_HOW_END, 1);
    add_range(to, QUT_ARCH_END, 1);
}

static void bundle_words(struct dictionary *to)
{
    add(to, QUT_BUNDLE_MAGIC, sizeof((struct qut_bundle_header *)0)->magic);
    add_number(to, QUT_BUNDLE_VERSION, 4);
    add_number(to, 0xfd2fb528, 4);
    table_words(to);
}

static void trace_words(struct dictionary *to)
{
    add(to, QUT_TRACE_MAGIC, 8);
    add(to, QUT_TRACE_FILE_MAGIC, 8);
    add_number(to, QUT_TRACE_FILE_BLOCK_MAGIC, 4);
    add_number(to, QUT_TRACE_CHUNK_MAGIC, 4);
    add_range(to, QUT_TRACE_FILE_TYPE_END, 1);
    add_range(to, QUT_TRACE_CLASS_COUNT << QUT_TRACE_CLASS_SHIFT, 1);
    add_number(to, QUT_TRACE_CHUNK_BYTES, 4);
}

static void agent_words(struct dictionary *to)
{
    static const char *const keys[] = {
        "v=1;", "t=", "k=", "c=", "P=", "T=",  "S=",  "p=",       "i=",
        "f=",   "b=", "l=", "s=", "m=", "F=1", "N=1", "g=main:5", "18446744073709551615"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        add_text(to, keys[i]);
    for (uint32_t type = AGENT_CHANNEL_HELLO; type <= AGENT_CHANNEL_NO; type++)
        add_number(to, type, 4);
    add_text(to, "#!");
}

static void snapshot_words(struct dictionary *to)
{
    static const char *const words[] = {" r-xp ", " rw-p ", " (deleted)", "[vdso]", "[stack]", "/lib.so",
                                        "-",      ": ",     "pc: ",       "00:00",  "\n",      "ffffffffffffffff"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_text(to, words[i]);
    for (int id = QUT_ARCH_NONE + 1; id < QUT_ARCH_END; id++) {
        const struct arch *arch = arch_by_id((enum qut_arch_id)id);
        add_text(to, arch->telling_register);
        for (unsigned i = 0; i < arch->register_count; i++)
            if (arch->register_names[i])
                add_text(to, arch->register_names[i]);
    }
}

static void script_words(struct dictionary *to)
{
    static const char *const words[] = {
        "entry:",  "return:", "timer:1s", "begin", "end",     "if (",   "else",    "printf(\"", "print(@",
        "clear(@", "count()", "sum(",     "avg(",  "hist(",   "lhist(", "arg0",    "retval",    "duration",
        "tid",     "str(",    "u32(",     "s8(",   "@a[",     "] = ",   "&&",      "||",        "==",
        "!=",      "<<",      ">>",       " ? ",   " : ",     "{ ",     " }",      "/",         "%d",
        "10ms",    "alloc ",  "free ",    "lock ", "unlock ", "size",   "address", "held"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_text(to, words[i]);
}

void write_dictionaries(const char *folder)
{
    static const struct {
        const char *target;
        void (*words)(struct dictionary *to);
    } all[] = {{"agent", agent_words},       {"apk", zip_words},      {"bundle", bundle_words},
               {"collect", trace_words},     {"command", elf_words},  {"core", core_words},
               {"debug_file", elf_words},    {"dex", dex_words},      {"elf", elf_words},
               {"jit_blob", elf_words},      {"names", elf_words},    {"oat_file", oat_words},
               {"snapshot", snapshot_words}, {"table", table_words},  {"trace", trace_words},
               {"xz", packed_words},         {"script", script_words}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s.dict", folder, all[i].target);
        struct dictionary to = {fopen(path, "we")};
        if (to.file)
            all[i].words(&to);
        if (!to.file || fclose(to.file) != 0) {
            perror(path);
            exit(2);
        }
    }
}
