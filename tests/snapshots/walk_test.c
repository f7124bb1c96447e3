// SPDX-License-Identifier: Apache-2.0
// AOSP's offline unwinding snapshots, and stacks of a real ART: every frame and its module-relative pc, as their
// output.txt has them. Prints one line per snapshot, and ends with 77 where the corpus is absent.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/target.h>
#include <qutc/provide.h>

enum { FRAMES_MAX = 256 };

static const struct known {
    const char *name;
    int frames; // that are right, from the innermost on; 0: all
    const char *why;
} snapshots[] = {
    {"apk_rorx_arm64", 0, ""},
    {"apk_rorx_unreadable_arm64", 0, ""},
    {"apk_soname_at_end_arm64", 0, ""},
    {"bad_eh_frame_hdr_arm64", 0, ""},
    {"bluetooth_arm64/pc_1", 0, ""},
    {"bluetooth_arm64/pc_4", 0, ""},
    {"debug_frame_first_x86", 0, ""},
    {"eh_frame_hdr_begin_x86_64", 0, ""},
    {"gnu_debugdata_arm", 0, ""},
    {"invalid_elf_offset_arm", 0, ""},
    {"maps_compiled_arm64/28613_main-thread", 0, ""},
    {"pauth_pc_arm64", 0, ""},
    {"shared_lib_in_apk_arm64", 0, ""},
    {"shared_lib_in_apk_memory_only_arm64", 0, ""},
    {"signal_fde_x86_64", 0, ""},
    {"signal_load_bias_arm", 0, ""},
    {"straddle_arm64", 0, ""},
    {"zstd_compress_arm", 0, ""},
    {"vlenb_riscv64", 5, "a CFA that depends on vlenb is refused"},
    {"art11/arm64_aot", 0, ""},
    {"art11/x86_64_aot", 0, ""},
};

static unsigned passed, failed, skipped;
static char root[] = "/tmp/qut-snapshots-XXXXXX";

// How far a caller's pc of AOSP's lies before the return address.
static unsigned call_bytes(struct qut_target *target, const struct qut_frame *frame)
{
    const char *arch = qut_target_arch(target);
    if (strncmp(arch, "x86", 3) == 0)
        return 1;
    if (strcmp(arch, "arm") != 0 || !(frame->flags & QUT_FRAME_THUMB))
        return 4;
    uint32_t before = 0;
    qut_target_read(target, frame->pc - 4, &before, sizeof before);
    return (before & 0xe000f000) == 0xe000f000 ? 4 : 2; // two half-words or one
}

static bool is_expected(struct qut_target *target, size_t index, const struct qut_frame *frame, uint64_t expected)
{
    struct qut_module_info module;
    uint64_t base = 0;
    if (qut_target_module(target, frame->lookup_pc, &module))
        base = module.is_elf ? module.load_bias : module.start;
    uint64_t pc = (frame->pc | ((frame->flags & QUT_FRAME_THUMB) != 0)) - base;
    if (index == 0 || (frame->flags & QUT_FRAME_SIGNAL))
        return pc == expected;
    uint64_t adjusted = pc - call_bytes(target, frame);
    // AOSP subtracts from interrupted pcs too, unless an FDE with 'S' led there. Nothing was called there.
    if (frame->flags & QUT_FRAME_INTERRUPTED)
        return pc == expected || adjusted == expected;
    return adjusted == expected;
}

static size_t read_expected(const char *directory, uint64_t *expected)
{
    char path[600], line[1024];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/output.txt", directory);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file) && count < FRAMES_MAX) {
        unsigned long long pc;
        if (sscanf(line, " #%*u pc %llx", &pc) == 1)
            expected[count++] = pc;
    }
    if (file)
        fclose(file);
    return count;
}

// The test of AOSP puts the APK's code into the process's memory only.
static void make_unreadable_memory(const char *directory)
{
    char from[600], to[600];
    uint64_t address = 0x7426d2d000;
    static char bytes[0x2000];
    snprintf(from, sizeof from, "%s/fake.apk", directory);
    snprintf(to, sizeof to, "%s/apk.data", directory);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    if (in && out && fseek(in, 0x4000, SEEK_SET) == 0) {
        size_t got = fread(bytes, 1, sizeof bytes, in);
        fwrite(&address, sizeof address, 1, out);
        fwrite(bytes, 1, got, out);
    }
    if (in)
        fclose(in);
    if (out)
        fclose(out);
}

static void check_snapshot(const struct known *known, const char *shared)
{
    char directory[512];
    snprintf(directory, sizeof directory, "%s/corpus/%s%s", shared,
             strncmp(known->name, "art11/", 6) == 0 ? "" : "snapshots/", known->name);
    if (access(directory, R_OK) != 0) {
        printf("SKIP: %s is absent\n", known->name);
        skipped++;
        return;
    }
    snprintf(directory, sizeof directory, "%s/%s", root, known->name);
    if (strstr(known->name, "unreadable"))
        make_unreadable_memory(directory);
    static uint64_t expected[FRAMES_MAX];
    static struct qut_frame frames[FRAMES_MAX];
    size_t wanted = read_expected(directory, expected);
    const struct qutc_provide_options provide = {.size = sizeof provide};
    const struct qut_target_options options = {
        .size = sizeof options, .compile = qutc_compile_for_qut, .compile_context = (void *)&provide, .pac_mask = 0};
    struct qut_target_error error = {""};
    struct qut_target *target = qut_target_snapshot(directory, &options, &error);
    if (!target) {
        printf("FAIL: %s: %s\n", known->name, error.text);
        failed++;
        return;
    }
    struct qut_end end = {0};
    size_t count = qut_target_walk(target, 0, frames, FRAMES_MAX, &end), right = 0;
    while (right < count && right < wanted && is_expected(target, right, &frames[right], expected[right]))
        right++;
    size_t least = known->frames ? (size_t)known->frames : wanted;
    bool good = wanted && right == least && count == least;
    printf("%s: %s: %zu of %zu frames%s%s; end: %s\n", good ? "ok" : "FAIL", known->name, right, wanted,
           known->why[0] ? ": " : "", known->why, qut_end_reason_name(end.reason));
    if (!good && right < count && right < wanted)
        printf("  #%02zu is %llx (flags %x), expected relative %llx\n", right, (unsigned long long)frames[right].pc,
               frames[right].flags, (unsigned long long)expected[right]);
    passed += good;
    failed += !good;
    qut_target_close(target);
}

int main(void)
{
    const char *shared = getenv("QUT_SHARED");
    char command[1024];
    snprintf(command, sizeof command, "%s/corpus/expand", shared ? shared : "../shared");
    if (access(command, X_OK) != 0) {
        printf("SKIP: %s is absent\n", command);
        return 77;
    }
    if (!mkdtemp(root))
        return 2;
    snprintf(command, sizeof command, "'%s/corpus/expand' '%s'", shared ? shared : "../shared", root);
    if (system(command) == 0) {
        for (size_t i = 0; i < sizeof snapshots / sizeof *snapshots; i++)
            check_snapshot(&snapshots[i], shared ? shared : "../shared");
    } else {
        failed++;
    }
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    if (system(command) != 0)
        failed++;
    printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
    return failed != 0;
}
