// SPDX-License-Identifier: Apache-2.0
#include "judge.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qut/qut.h>

// The methods of the rig's program.
static const struct named {
    uint32_t id;
    const char *class_name, *name;
    int is_instance;
} names[] = {
#include "ids.h"
};

// Of these, methods that call themselves, one that throws, and the one that catches it.
enum { METHODS = sizeof names / sizeof *names, RECURSIVE = 7, ALSO_RECURSIVE = 10, CATCHES = 9, THROWS = 10 };

static struct method {
    uint64_t art_method, code_start, code_end;
} methods[METHODS];

enum { NAMED_MAX = 256, PLACES = 4096, KEPT_MAX = 8, FRAMES_KEPT = 48 };

enum verdict { RIGHT, RIGHT_SO_FAR, WRONG };

struct place {
    _Atomic uint64_t pc; // 0: free
    _Atomic unsigned count, unmarked;
    uint32_t reason, refusal;
};

// Walks that are wrong, or may have ended in what is no code, whole.
struct kept {
    unsigned frame_count, walked_count, depth;
    struct qut_end end;
    struct qut_frame frames[FRAMES_KEPT];
    uint32_t walked[FRAMES_KEPT], shadow[FRAMES_KEPT];
};

static struct {
    _Atomic unsigned walks, root, wrong, wrong_unmarked, marked, kept, managed, jit, interpreted;
    struct place cut[PLACES];
    struct kept kept_walks[KEPT_MAX];
} seen;

// ---- in the handler

static uint32_t method_of(const struct qut_frame *frame)
{
    for (unsigned i = 0; i < METHODS; i++) {
        const struct method *method = &methods[i];
        if (frame->flags & QUT_FRAME_DEX) {
            if (frame->pc >= method->code_start && frame->pc < method->code_end)
                return names[i].id;
        } else if (frame->flags & QUT_FRAME_MANAGED) {
            // Compiled code keeps its method at the stack's top.
            if (*(const uint64_t *)(uintptr_t)frame->sp == method->art_method)
                return names[i].id;
        }
    }
    return 0;
}

// Which methods the walk met, the innermost first.
static unsigned name_frames(const struct qut_frame *frames, unsigned count, uint32_t *walked)
{
    unsigned walked_count = 0;
    for (unsigned i = 0; i < count; i++) {
        uint32_t id = method_of(&frames[i]);
        // A method that was replaced while it ran is one call with two frames.
        bool is_same = walked_count && walked[walked_count - 1] == id && id != RECURSIVE && id != ALSO_RECURSIVE;
        if (id && !is_same)
            walked[walked_count++] = id;
    }
    return walked_count;
}

// Whether the walk met what the account has, beside the innermost method, which is told late, and forgotten late where
// an exception is delivered.
static bool is_whole(const uint32_t *walked, unsigned count, const struct shadow *shadow, unsigned depth)
{
    unsigned same = 0;
    while (same < count && same < depth && walked[count - 1 - same] == shadow->ids[same])
        same++;
    if (same == depth)
        return count <= depth + 1;
    if (same != count)
        return false;
    return count + 1 == depth || shadow->ids[count] == THROWS || (count && shadow->ids[count - 1] == CATCHES);
}

static bool is_right_so_far(const uint32_t *walked, unsigned count, const struct shadow *shadow, unsigned depth)
{
    for (unsigned skipped = 0; skipped < 2; skipped++)
        for (unsigned forgotten = 0; forgotten < 2; forgotten++) {
            unsigned same = 0;
            while (same + skipped < count && same + forgotten < depth &&
                   walked[same + skipped] == shadow->ids[depth - 1 - forgotten - same])
                same++;
            if (same + skipped >= count)
                return true;
        }
    return false;
}

static bool is_like(const uint32_t *walked, unsigned count, const struct shadow *shadow, unsigned depth, bool is_root)
{
    return is_root ? is_whole(walked, count, shadow, depth) : is_right_so_far(walked, count, shadow, depth);
}

static void note_cut(const struct qut_end *end)
{
    unsigned at = (unsigned)((end->pc * 0x9e3779b97f4a7c15u) >> 52);
    for (unsigned i = 0; i < 16; i++, at = (at + 1) % PLACES) {
        uint64_t none = 0;
        if (seen.cut[at].pc != end->pc && !atomic_compare_exchange_strong(&seen.cut[at].pc, &none, end->pc))
            continue;
        seen.cut[at].reason = end->reason;
        seen.cut[at].refusal = end->refusal;
        seen.cut[at].count++;
        seen.cut[at].unmarked += end->guessed_frame == QUT_NO_GUESS;
        return;
    }
}

static void keep(const struct qut_frame *frames, unsigned count, const struct qut_end *end, const uint32_t *walked,
                 unsigned walked_count, const struct shadow *shadow, unsigned depth)
{
    unsigned index = seen.kept++;
    if (index >= KEPT_MAX)
        return;
    struct kept *kept = &seen.kept_walks[index];
    kept->end = *end;
    kept->frame_count = count < FRAMES_KEPT ? count : FRAMES_KEPT;
    kept->walked_count = walked_count < FRAMES_KEPT ? walked_count : FRAMES_KEPT;
    kept->depth = depth < FRAMES_KEPT ? depth : FRAMES_KEPT;
    memcpy(kept->frames, frames, kept->frame_count * sizeof *frames);
    memcpy(kept->walked, walked, kept->walked_count * sizeof *walked);
    for (unsigned i = 0; i < kept->depth; i++)
        kept->shadow[i] = shadow->ids[depth - 1 - i];
}

void judge_walk(const struct qut_frame *frames, unsigned count, const struct qut_end *end, const struct shadow *shadow)
{
    uint32_t walked[NAMED_MAX];
    unsigned depth = shadow->depth, walked_count = name_frames(frames, count, walked), flags = 0;
    bool is_root = end->reason == QUT_END_OUTERMOST, is_marked = end->guessed_frame != QUT_NO_GUESS;
    for (unsigned i = 0; i < count; i++)
        flags |= frames[i].flags;
    bool is_right = is_like(walked, walked_count, shadow, depth, is_root);
    // Compiled code that was interrupted may not have put its method there yet.
    if (!is_right && walked_count && (frames[0].flags & QUT_FRAME_MANAGED) && method_of(&frames[0]))
        is_right = is_like(walked + 1, walked_count - 1, shadow, depth, is_root);
    seen.walks++;
    seen.root += is_root;
    seen.marked += is_marked;
    seen.managed += (flags & QUT_FRAME_MANAGED) != 0;
    seen.jit += (flags & QUT_FRAME_JIT) != 0;
    seen.interpreted += (flags & QUT_FRAME_DEX) != 0;
    if (!is_root)
        note_cut(end);
    bool may_stray = !is_root && !is_marked && end->reason == QUT_END_NO_MODULE;
    seen.wrong += !is_right;
    seen.wrong_unmarked += !is_right && !is_marked;
    if (!is_right || may_stray)
        keep(frames, count, end, walked, walked_count, shadow, depth);
}

// ---- what was seen

// Module and offset, as its file has it.
static void print_place(uint64_t pc)
{
    struct qut_loaded_module module;
    Dl_info info;
    if (qut_module_at((uintptr_t)pc, &module, sizeof module)) {
        const char *name = strrchr(module.path, '/');
        printf("\"%s+%#llx\"", name ? name + 1 : module.path, (unsigned long long)(pc - module.load_bias));
    } else if (dladdr((void *)(uintptr_t)pc, &info) && info.dli_fname) {
        printf("\"%s+%#llx, not listed\"", info.dli_fname, (unsigned long long)(pc - (uintptr_t)info.dli_fbase));
    } else {
        printf("\"%#llx\"", (unsigned long long)pc);
    }
}

static void print_ids(const char *name, const uint32_t *ids, unsigned count)
{
    printf(", \"%s\": [", name);
    for (unsigned i = 0; i < count; i++) {
        const char *called = "?";
        for (unsigned j = 0; j < METHODS; j++)
            if (names[j].id == ids[i])
                called = names[j].name;
        printf("%s\"%s\"", i ? ", " : "", called);
    }
    printf("]");
}

static void print_kept(const struct kept *kept)
{
    printf("{\"end\": \"%s\"", qut_end_reason_name(kept->end.reason));
    print_ids("shadow", kept->shadow, kept->depth);
    print_ids("walked", kept->walked, kept->walked_count);
    printf(", \"frames\": [");
    for (unsigned i = 0; i < kept->frame_count; i++) {
        const struct qut_frame *frame = &kept->frames[i];
        printf("%s[%llu, %u, ", i ? ", " : "", (unsigned long long)frame->sp, frame->flags);
        print_place(frame->pc);
        printf("]");
    }
    printf("]}");
}

// Executable stacks (libart asks for them) are no code.
static bool is_code(uint64_t pc)
{
    char line[512], mode[8] = "";
    unsigned long start, end;
    bool is_found = false;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && !is_found && fgets(line, sizeof line, file))
        is_found = sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 && pc >= start && pc < end;
    if (file)
        fclose(file);
    return is_found && mode[2] == 'x' && mode[1] != 'w';
}

// Walks whose last frame is no code, and which nothing marks: the frame before it was left by a wrong rule.
static unsigned count_strays(void)
{
    unsigned strays = 0;
    for (unsigned i = 0; i < PLACES; i++)
        if (seen.cut[i].unmarked && !is_code(seen.cut[i].pc))
            strays += seen.cut[i].unmarked;
    return strays;
}

void judge_report(unsigned stack_bytes)
{
    printf("{\"walks\": %u, \"root\": %u, \"wrong\": %u, \"wrong_unmarked\": %u, \"marked\": %u", seen.walks, seen.root,
           seen.wrong, seen.wrong_unmarked, seen.marked);
    printf(", \"strays\": %u, \"stack_bytes\": %u", count_strays(), stack_bytes);
    printf(", \"compiled\": %u, \"jit\": %u, \"interpreted\": %u, \"cut\": [", seen.managed, seen.jit,
           seen.interpreted);
    bool is_first = true;
    for (unsigned i = 0; i < PLACES; i++) {
        const struct place *place = &seen.cut[i];
        if (!place->count)
            continue;
        bool is_refused = place->reason == QUT_END_REFUSED;
        printf("%s[%u, \"%s%s%s\", ", is_first ? "" : ", ", place->count, qut_end_reason_name(place->reason),
               is_refused ? " " : "", is_refused ? qut_refusal_name(place->refusal) : "");
        print_place(place->pc);
        printf("]");
        is_first = false;
    }
    printf("], \"wrong_walks\": [");
    for (unsigned i = 0; i < seen.kept && i < KEPT_MAX; i++) {
        if (i)
            printf(", ");
        print_kept(&seen.kept_walks[i]);
    }
    printf("]}\n");
    fflush(stdout);
}

// ---- the program in memory

void judge_give_up(const char *why)
{
    printf("{\"error\": \"%s\"}\n", why);
    fflush(stdout);
    _exit(1);
}

// Where the program's bytecode is mapped: by its header's checksum and signature.
static uint64_t find_dex(const char *path)
{
    enum { HEAD_BYTES = 32, MAGIC_BYTES = 8 };
    char head[HEAD_BYTES], line[512];
    uint64_t found = 0;
    FILE *file = fopen(path, "rb");
    if (!file || fread(head, 1, sizeof head, file) != sizeof head)
        judge_give_up("no dex file");
    fclose(file);
    file = fopen("/proc/self/maps", "r");
    while (file && !found && fgets(line, sizeof line, file)) {
        unsigned long start, end;
        char mode[8];
        if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) != 3 || mode[0] != 'r' ||
            !(strstr(line, ".vdex") || strstr(line, ".jar") || strstr(line, "dalvik-")))
            continue;
        for (uintptr_t at = start; at + sizeof head <= end && !found; at += 4)
            if (memcmp((const char *)at + MAGIC_BYTES, head + MAGIC_BYTES, sizeof head - MAGIC_BYTES) == 0)
                found = at;
    }
    if (file)
        fclose(file);
    if (!found)
        judge_give_up("the dex file is not mapped");
    return found;
}

void judge_place_methods(JNIEnv *env, const char *jar, const char *dex_path)
{
    // struct ArtMethod of Android 11, and a dex file's code item.
    enum { CODE_OFFSET_AT = 8, ITEM_UNITS_AT = 12, ITEM_CODE_AT = 16, UNIT_BYTES = 2 };
    uint64_t dex = find_dex(dex_path);
    for (unsigned i = 0; i < METHODS; i++) {
        const struct named *named = &names[i];
        struct method *method = &methods[i];
        jclass class = judge_find_class(env, jar, named->class_name);
        jmethodID id = named->is_instance ? (*env)->GetMethodID(env, class, named->name, "(JI)I")
                                          : (*env)->GetStaticMethodID(env, class, named->name, "(JI)I");
        if (!id)
            judge_give_up(named->name);
        method->art_method = (uint64_t)(uintptr_t)id;
        uint64_t item = dex + *(const uint32_t *)(uintptr_t)(method->art_method + CODE_OFFSET_AT);
        if (item == dex)
            continue;
        method->code_start = item + ITEM_CODE_AT;
        method->code_end = method->code_start + UNIT_BYTES * *(const uint32_t *)(uintptr_t)(item + ITEM_UNITS_AT);
    }
}

void judge_print_methods(void)
{
    printf("{\"methods\": [");
    for (unsigned i = 0; i < METHODS; i++)
        printf("%s[%u, %llu, %llu, %llu]", i ? ", " : "", names[i].id, (unsigned long long)methods[i].art_method,
               (unsigned long long)methods[i].code_start, (unsigned long long)methods[i].code_end);
    printf("]}\n");
    fflush(stdout);
}

static jobject of_class(JNIEnv *env, jclass class)
{
    jobject object = class ? (*env)->AllocObject(env, class) : NULL;
    return object ? object : (judge_give_up("a class is missing"), NULL);
}

#define FIELD(OBJECT, CLASS, NAME, TYPE, VALUE)                                                                        \
    (*env)->SetObjectField(env, OBJECT, (*env)->GetFieldID(env, CLASS, NAME, TYPE), VALUE)

// What Android's own class loader does in Java, which the rig does not have. ART looks at these objects.
static jobject open_jar(JNIEnv *env, const char *jar)
{
    jclass file_class = (*env)->FindClass(env, "dalvik/system/DexFile");
    jclass loader_class = (*env)->FindClass(env, "java/lang/ClassLoader");
    jclass element_class = (*env)->FindClass(env, "dalvik/system/DexPathList$Element");
    jclass list_class = (*env)->FindClass(env, "dalvik/system/DexPathList");
    jclass base_class = (*env)->FindClass(env, "dalvik/system/BaseDexClassLoader");
    jobject loader = (*env)->CallStaticObjectMethod(
        env, loader_class,
        (*env)->GetStaticMethodID(env, loader_class, "getSystemClassLoader", "()Ljava/lang/ClassLoader;"));
    jobject list = of_class(env, list_class), file = of_class(env, file_class), element = of_class(env, element_class);
    // Empty so far: that is the context which the odex was compiled for.
    FIELD(list, list_class, "dexElements", "[Ldalvik/system/DexPathList$Element;",
          (*env)->NewObjectArray(env, 0, element_class, NULL));
    FIELD(loader, base_class, "pathList", "Ldalvik/system/DexPathList;", list);
    jmethodID open = (*env)->GetStaticMethodID(env, file_class, "openDexFileNative",
                                               "(Ljava/lang/String;Ljava/lang/String;ILjava/lang/ClassLoader;"
                                               "[Ldalvik/system/DexPathList$Element;)Ljava/lang/Object;");
    jobject cookie =
        (*env)->CallStaticObjectMethod(env, file_class, open, (*env)->NewStringUTF(env, jar), NULL, 0, loader, NULL);
    if (!cookie)
        judge_give_up("openDexFileNative");
    FIELD(file, file_class, "mCookie", "Ljava/lang/Object;", cookie);
    FIELD(file, file_class, "mFileName", "Ljava/lang/String;", (*env)->NewStringUTF(env, jar));
    FIELD(element, element_class, "dexFile", "Ldalvik/system/DexFile;", file);
    FIELD(list, list_class, "dexElements", "[Ldalvik/system/DexPathList$Element;",
          (*env)->NewObjectArray(env, 1, element_class, element));
    return (*env)->NewGlobalRef(env, loader);
}

jclass judge_find_class(JNIEnv *env, const char *jar, const char *name)
{
    static jobject loader;
    jclass found;
    if (!jar) {
        found = (*env)->FindClass(env, name);
    } else {
        loader = loader ? loader : open_jar(env, jar);
        jclass of_classes = (*env)->FindClass(env, "java/lang/Class");
        jmethodID find = (*env)->GetStaticMethodID(env, of_classes, "classForName",
                                                   "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;");
        found =
            (*env)->CallStaticObjectMethod(env, of_classes, find, (*env)->NewStringUTF(env, name), JNI_TRUE, loader);
    }
    return found ? found : (judge_give_up(name), NULL);
}
