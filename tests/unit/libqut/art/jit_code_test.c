// SPDX-License-Identifier: Apache-2.0
// A code cache as ART 11's JIT leaves it, with methods that are put there by hand; and caches that are broken.
#include <stdlib.h>
#include <string.h>

#include "libqut/art/jit_code.h"
#include "tests/support/tap.h"

extern const struct arch arch_x86_64, arch_aarch64;

enum { DATA_BYTES = 1 << 14, CODE_BYTES = 1 << 19, SP = 7, ALL_SAVED = 0x1f028, RA = 0x10000 };

#define DATA_START ((uint64_t)0x41000000)
#define CODE_START (DATA_START + DATA_BYTES)

static uint8_t bytes[DATA_BYTES + CODE_BYTES];
static size_t data_used, code_used, unreadable_at;
static struct art_jit_scratch scratch;
static const struct art_jit_cache cache = {DATA_START, CODE_START, CODE_START + CODE_BYTES};

static size_t read_fake(void *context, uint64_t address, void *to, size_t size)
{
    (void)context;
    uint64_t at = address - DATA_START;
    size_t end = unreadable_at ? unreadable_at : sizeof bytes;
    if (address < DATA_START || at >= end)
        return 0;
    size = size < end - at ? size : (size_t)(end - at);
    memcpy(to, bytes + at, size);
    return size;
}

static struct elf_art_memory memory = {.read = read_fake, .arch = &arch_x86_64};

static void begin(void)
{
    memset(bytes, 0, sizeof bytes);
    data_used = 0x100;
    code_used = DATA_BYTES + 0x40;
    unreadable_at = 0;
}

static void put(size_t at, uint64_t value, size_t size)
{
    memcpy(bytes + at, &value, size);
}

// Numbers as CodeInfo begins with: all 4 bits first.
static size_t put_info(uint32_t frame_bytes, uint32_t core_mask, uint32_t fp_mask)
{
    uint32_t values[6] = {0, frame_bytes / 16, core_mask, fp_mask, 3, 1};
    size_t at = data_used, bit = at * 8;
    unsigned wide[6];
    for (unsigned i = 0; i < 6; i++) {
        wide[i] = values[i] <= 11 ? 0 : values[i] < 256 ? 1 : values[i] < 65536 ? 2 : 3;
        unsigned nibble = wide[i] ? 11 + wide[i] : values[i];
        bytes[bit / 8] |= (uint8_t)(nibble << bit % 8);
        bit += 4;
    }
    for (unsigned i = 0; i < 6; i++)
        for (unsigned j = 0; j < wide[i] * 8; j++, bit++)
            bytes[bit / 8] |= (uint8_t)((values[i] >> j & 1) << bit % 8);
    data_used = bit / 8 + 5;
    return at;
}

static size_t last_chunk; // of the method that was put last

static uint64_t put_method(const uint8_t *code, size_t size, size_t info)
{
    size_t chunk = code_used, chunk_bytes = (size + 16 + 8 + 15) & ~(size_t)15, start = chunk + 32;
    last_chunk = chunk;
    put(chunk + 8, chunk_bytes | 3, 8);
    put(start - 8, start - info, 4);
    put(start - 4, size, 4);
    memcpy(bytes + start, code, size);
    code_used += chunk_bytes;
    put(code_used + 8, (DATA_BYTES + CODE_BYTES - code_used) | 1, 8); // what is left
    return DATA_START + start;
}

static bool rule_at(uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule)
{
    return art_jit_frame_rule(&cache, &memory, &scratch, pc, kind, rule);
}

static int cfa_at(uint64_t pc, enum arch_pc_kind kind)
{
    struct qut_rule rule;
    if (!rule_at(pc, kind, &rule))
        return -1;
    CHECK(rule.kind == QUT_RULE_FRAME && rule.cfa.reg == SP && rule.ra.how == QUT_REG_AT_CFA &&
              rule.ra.offset_bytes == -8,
          "%d %d %d", rule.kind, rule.cfa.reg, rule.ra.how);
    return rule.cfa.offset_bytes;
}

// A stack probe, five registers, the frame, ArtMethod*, a branch to its end, a call; the way out; a call behind it.
static const uint8_t usual[] = {
    0x48, 0x85, 0x84, 0x24, 0x00, 0xe0, 0xff, 0xff, // 0: test [rsp - 0x2000], rax
    0x41, 0x57,                                     // 8: push r15
    0x55,                                           // 10: push rbp
    0x53,                                           // 11: push rbx
    0x48, 0x83, 0xec, 0x20,                         // 12: sub rsp, 0x20
    0x48, 0x89, 0x3c, 0x24,                         // 16: mov [rsp], rdi
    0x75, 0x11,                                     // 20: jne 39
    0xff, 0x57, 0x20,                               // 22: call [rdi + 0x20]
    0x48, 0x89, 0xd8,                               // 25: mov rax, rbx
    0x48, 0x83, 0xc4, 0x20,                         // 28: add rsp, 0x20
    0x5b,                                           // 32: pop rbx
    0x5d,                                           // 33: pop rbp
    0x41, 0x5f,                                     // 34: pop r15
    0xc3,                                           // 36: ret
    0x90, 0x90,                                     // 37
    0x65, 0xff, 0x14, 0x25, 0x80, 0x04, 0x00, 0x00, // 39: call gs:[0x480]
    0xeb, 0xe8,                                     // 47: jmp 25
};

enum { USUAL_MASK = 0x18028, USUAL_FRAME = 64 };

static uint64_t put_usual(void)
{
    return put_method(usual, sizeof usual, put_info(USUAL_FRAME, USUAL_MASK, 0));
}

TEST(each_instruction_has_its_frame)
{
    static const struct {
        unsigned at;
        int cfa_bytes;
    } expected[] = {{0, 8},   {8, 8},   {10, 16}, {11, 24}, {12, 32}, {16, 64}, {20, 64}, {22, 64}, {25, 64},
                    {28, 64}, {32, 32}, {33, 24}, {34, 16}, {36, 8},  {37, 64}, {39, 64}, {47, 64}};
    begin();
    put_usual();
    uint64_t start = put_usual();
    put_usual();
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int seen = cfa_at(start + expected[i].at, ARCH_PC_EXACT);
        CHECK(seen == expected[i].cfa_bytes, "%u: %d, not %d", expected[i].at, seen, expected[i].cfa_bytes);
    }
    CHECK(cfa_at(start + 25, ARCH_PC_RETURN) == 64 && cfa_at(start + 47, ARCH_PC_RETURN) == 64, "behind calls");
    CHECK(cfa_at(start + 28, ARCH_PC_RETURN) == 64, "behind what can fault");
    CHECK(cfa_at(start + 37, ARCH_PC_RETURN) == 64, "behind a return: an exception is caught there");
    CHECK(cfa_at(start + 33, ARCH_PC_RETURN) == -1, "on the way out");
    CHECK(cfa_at(start + 9, ARCH_PC_EXACT) == -1, "within an instruction");
}

TEST(registers_have_their_places)
{
    struct qut_rule rule;
    begin();
    uint64_t start = put_usual();
    CHECK(rule_at(start + 25, ARCH_PC_RETURN, &rule), "no rule");
    // r15, rbp, rbx below the return address; r12 is not saved.
    static const struct {
        unsigned reg;
        int offset_bytes;
    } expected[] = {{15, -16}, {6, -24}, {3, -32}, {12, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int slot = arch_slot(&arch_x86_64, expected[i].reg);
        if (slot < 0)
            continue;
        CHECK(expected[i].offset_bytes ? rule.tracked[slot].how == QUT_REG_AT_CFA
                                       : rule.tracked[slot].how == QUT_REG_SAME,
              "%u: how %u", expected[i].reg, rule.tracked[slot].how);
        CHECK(rule.tracked[slot].offset_bytes == expected[i].offset_bytes, "%u: %d", expected[i].reg,
              rule.tracked[slot].offset_bytes);
    }
    CHECK(rule_at(start + 11, ARCH_PC_EXACT, &rule), "no rule");
    int slot = arch_slot(&arch_x86_64, 3);
    CHECK(slot >= 0 && rule.tracked[slot].how == QUT_REG_SAME, "rbx is not saved yet");
}

// A stub of a native method: it lowers sp for arguments, and branches away before it raises it.
TEST(native_stubs_have_more_on_the_stack)
{
    static const uint8_t code[] = {
        0x48, 0x83, 0xec, 0x18, // 0: sub rsp, 0x18
        0x48, 0x89, 0x3c, 0x24, // 4: mov [rsp], rdi
        0x48, 0x83, 0xec, 0x10, // 8: sub rsp, 0x10
        0xff, 0x57, 0x20,       // 12: call [rdi + 0x20]
        0x75, 0x09,             // 15: jne 26
        0x48, 0x83, 0xc4, 0x10, // 17: add rsp, 0x10
        0x48, 0x83, 0xc4, 0x18, // 21: add rsp, 0x18
        0xc3,                   // 25: ret
        0xff, 0x57, 0x28,       // 26: call [rdi + 0x28]
        0xcc,                   // 29: int3
    };
    begin();
    uint64_t start = put_method(code, sizeof code, put_info(32, RA, 0));
    CHECK(cfa_at(start + 12, ARCH_PC_EXACT) == 48 && cfa_at(start + 15, ARCH_PC_RETURN) == 48, "the call");
    CHECK(cfa_at(start + 29, ARCH_PC_RETURN) == 48, "the branch");
    CHECK(cfa_at(start + 21, ARCH_PC_EXACT) == 32 && cfa_at(start + 25, ARCH_PC_EXACT) == 8, "the way out");
}

TEST(long_methods_are_found)
{
    enum { LONG = 200000 };
    uint8_t *code = malloc(LONG);
    begin();
    memset(code, 0x90, LONG);
    memcpy(code, usual, 25);
    uint64_t start = put_method(code, LONG, put_info(USUAL_FRAME, USUAL_MASK, 0)), after = put_usual();
    CHECK(cfa_at(start + LONG - 1, ARCH_PC_EXACT) == 64, "%d", cfa_at(start + LONG - 1, ARCH_PC_EXACT));
    CHECK(cfa_at(after + 25, ARCH_PC_RETURN) == 64, "the next one");
    free(code);
}

TEST(methods_without_a_frame)
{
    static const uint8_t code[] = {0x89, 0xf0, 0xc3}; // mov eax, esi; ret
    begin();
    uint64_t start = put_method(code, sizeof code, put_info(0, RA, 0));
    CHECK(cfa_at(start, ARCH_PC_EXACT) == 8 && cfa_at(start + 2, ARCH_PC_EXACT) == 8, "a leaf");
    start = put_method(code, sizeof code, put_info(0, 0, 0));
    CHECK(cfa_at(start, ARCH_PC_EXACT) == 8, "a stub that counts nothing as saved");
}

// ---- what is not believed

static bool is_believed(uint64_t start)
{
    return cfa_at(start + 25, ARCH_PC_RETURN) != -1;
}

TEST(what_makes_no_sense_is_not_believed)
{
    struct method {
        uint32_t frame_bytes, core_mask, fp_mask;
    } infos[] = {{USUAL_FRAME, USUAL_MASK & ~RA, 0}, {USUAL_FRAME, USUAL_MASK | 1, 0},
                 {USUAL_FRAME, USUAL_MASK, 1},       {32, USUAL_MASK, 0},
                 {USUAL_FRAME + 16, USUAL_MASK, 0},  {USUAL_FRAME, USUAL_MASK & ~8u, 0},
                 {USUAL_FRAME, ALL_SAVED, 0xf000},   {0, USUAL_MASK, 0},
                 {(1 << 20) + 16, USUAL_MASK, 0}};
    for (size_t i = 0; i < sizeof infos / sizeof *infos; i++) {
        begin();
        uint64_t start =
            put_method(usual, sizeof usual, put_info(infos[i].frame_bytes, infos[i].core_mask, infos[i].fp_mask));
        CHECK(!is_believed(start), "CodeInfo %zu", i);
    }
    begin();
    uint64_t start = put_usual();
    CHECK(is_believed(start), "before anything is broken");
    size_t at = (size_t)(start - DATA_START);
    static const struct {
        int from_code;
        unsigned size;
        uint64_t value;
    } broken[] = {{-24, 8, 0x51}, {-24, 8, 0x43},      {-24, 8, 0x83},     {-24, 8, UINT64_MAX},
                  {-24, 8, 0},    {-4, 4, 0},          {-4, 4, 24},        {-4, 4, 0x7fffffff},
                  {-8, 4, 0},     {-8, 4, 0x7fffffff}, {-8, 4, 0xffffffff}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        uint64_t old = 0;
        size_t where = at + (size_t)(ptrdiff_t)broken[i].from_code;
        memcpy(&old, bytes + where, broken[i].size);
        put(where, broken[i].value, broken[i].size);
        CHECK(!is_believed(start), "broken %zu", i);
        put(where, old, broken[i].size);
    }
    put(code_used + 8, 0x100 | 2, 8); // the next chunk says that this one is free
    CHECK(!is_believed(start), "given back");
    put(code_used + 8, 0x100 | 1, 8);
    put(at - 4, sizeof usual | (uint64_t)1 << 31, 4);
    CHECK(is_believed(start), "to be deoptimized");
}

// Bytes in code that look like a header have no chunk of their own.
TEST(headers_in_code_are_none)
{
    uint8_t code[128];
    begin();
    memset(code, 0x90, sizeof code);
    memcpy(code, usual, 25);
    size_t info = put_info(USUAL_FRAME, USUAL_MASK, 0), other = put_info(16, RA, 0);
    size_t at = code_used + 32 + 64;
    uint64_t header = (at - other) | (uint64_t)48 << 32;
    memcpy(code + 40, "\x48\xb8", 2);
    memcpy(code + 56, &header, 8);
    uint64_t start = put_method(code, sizeof code, info);
    struct art_jit_method method;
    CHECK(art_jit_method_at(&cache, &memory, &scratch, start + 100, &method) && method.start == start, "%llx",
          (unsigned long long)(method.start - start));
}

TEST(nothing_beyond_the_cache_is_asked_for)
{
    struct art_jit_method method;
    static const struct art_jit_cache caches[] = {
        {DATA_START, CODE_START, CODE_START},
        {DATA_START, CODE_START, CODE_START + 8},
        {DATA_START, CODE_START, CODE_START + 0x60},
        {CODE_START, CODE_START, CODE_START + CODE_BYTES},
        {0, 0, UINT64_MAX},
        {UINT64_MAX - 64, UINT64_MAX - 32, UINT64_MAX},
    };
    begin();
    uint64_t start = put_usual();
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++)
        for (uint64_t pc = start - 64; pc < start + 64; pc++) {
            bool is_found = art_jit_method_at(&caches[i], &memory, &scratch, pc, &method);
            CHECK(!is_found || (i == 4 && method.start == start), "cache %zu, %llx", i, (unsigned long long)pc);
        }
    CHECK(!art_jit_method_at(&cache, &memory, &scratch, start + sizeof usual, &method), "behind its end");
    CHECK(!art_jit_method_at(&cache, &memory, &scratch, start - 1, &method), "before it");
    for (unreadable_at = 1; unreadable_at < (size_t)(start - DATA_START) + sizeof usual; unreadable_at += 7)
        rule_at(start + 25, ARCH_PC_RETURN, &(struct qut_rule){0});
    unreadable_at = (size_t)(start - DATA_START) + 10;
    CHECK(!is_believed(start), "code that cannot be read");
    struct elf_art_memory other = memory;
    other.arch = &arch_aarch64;
    unreadable_at = 0;
    CHECK(!art_jit_method_at(&cache, &other, &scratch, start + 25, &method), "code of another architecture");
}

TEST(any_bytes_are_survived)
{
    uint64_t state = 1;
    for (unsigned round = 0; round < 200; round++) {
        begin();
        uint64_t start = put_usual();
        put_usual();
        for (unsigned i = 0; i < 6; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            bytes[DATA_BYTES + 0x40 + (state >> 33) % 300] = (uint8_t)(state >> 25);
            bytes[0x100 + (state >> 40) % 40] ^= (uint8_t)(state >> 17);
        }
        for (uint64_t pc = start; pc < start + sizeof usual; pc++)
            for (int kind = 0; kind < 2; kind++) {
                struct qut_rule rule;
                if (rule_at(pc, kind ? ARCH_PC_RETURN : ARCH_PC_EXACT, &rule))
                    CHECK(rule.cfa.offset_bytes >= 8, "%d", rule.cfa.offset_bytes);
            }
    }
}

TEST(spaces_without_a_name)
{
    begin();
    CHECK(!art_jit_is_space(&memory, CODE_START), "zeros");
    put(DATA_BYTES + 8, 0x3b3, 8);
    put(DATA_BYTES + 40, CODE_START, 8);
    CHECK(!art_jit_is_space(&memory, CODE_START), "nothing behind it");
    put(DATA_BYTES + 0x3b0 + 8, 0x163, 8);
    CHECK(art_jit_is_space(&memory, CODE_START), "as in ART 11");
    put(DATA_BYTES + 40, CODE_START + 16, 8);
    CHECK(!art_jit_is_space(&memory, CODE_START), "of another place");
    put(DATA_BYTES + 40, CODE_START, 8);
    put(DATA_BYTES + 8, UINT64_MAX & ~(uint64_t)4, 8);
    CHECK(!art_jit_is_space(&memory, CODE_START), "size");
    CHECK(!art_jit_is_space(&memory, 16) && !art_jit_is_space(&memory, UINT64_MAX), "no memory");
}

static bool is_name(const char *path)
{
    return art_jit_is_cache_name(path, strlen(path));
}

TEST(names_of_mappings)
{
    CHECK(is_name("/memfd:jit-cache (deleted)"), "10 and later");
    CHECK(is_name("[anon:dalvik-jit-code-cache]") && is_name("[anon:dalvik-data-code-cache]"), "anonymous");
    CHECK(is_name("/memfd:/jit-zygote-cache (deleted)"), "zygote");
    CHECK(!is_name("/usr/lib/libc.so.6") && !is_name(""), "others");
    CHECK(!art_jit_is_cache_name("/bin/x\n1-2 r-xs 0 0:0 1 /memfd:jit-cache", 6), "the next line's");
}

int main(void)
{
    RUN(each_instruction_has_its_frame);
    RUN(registers_have_their_places);
    RUN(native_stubs_have_more_on_the_stack);
    RUN(long_methods_are_found);
    RUN(methods_without_a_frame);
    RUN(what_makes_no_sense_is_not_believed);
    RUN(headers_in_code_are_none);
    RUN(nothing_beyond_the_cache_is_asked_for);
    RUN(any_bytes_are_survived);
    RUN(spaces_without_a_name);
    RUN(names_of_mappings);
    return tap_finish();
}
