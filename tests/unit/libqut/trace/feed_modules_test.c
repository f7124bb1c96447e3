// SPDX-License-Identifier: Apache-2.0
// Code that comes and goes: each module has its place in code space, and its entry before anybody names it.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <qut/qut.h>

#include "libqut/modules/registry.h"
#include "libqut/trace/feed_entry_inline.h"
#include "tests/support/discipline.h"
#include "tests/support/feed_view.h"
#include "tests/support/tap.h"

static const char *const libraries[] = {STACK_LIBRARIES};
enum { LIBRARIES = sizeof libraries / sizeof *libraries, DEPTH_MAX = 256 };

typedef int enter_fn(int depth, int (*callback)(void *), void *context);

static struct view_frame frames[DEPTH_MAX];
static size_t frame_count;

static int take(void *context)
{
    struct view *view = context;
    struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
    int stored = qut_trace_sample(NULL, &event);
    CHECK(stored >= 0, "%d", stored);
    frame_count = view_stack(view, view_last_node(view_self(view), 0), frames, DEPTH_MAX);
    return 0;
}

// NULL: it is not there, which was said.
static void *open_library(int number, enter_fn **enter)
{
    void *library = dlopen(libraries[number], RTLD_NOW);
    if (!CHECK(library != NULL, "%s", dlerror()))
        return NULL;
    *(void **)enter = dlsym(library, "storm_library_enter");
    qut_refresh();
    if (CHECK(*enter != NULL, "%s has no entry", libraries[number]))
        return library;
    dlclose(library);
    return NULL;
}

static void open_trace(struct view *view)
{
    struct qut_trace_options options = {.size = sizeof options};
    int result = qut_trace_open(&options);
    CHECK(result == 0, "%d", result);
    CHECK(view_open(view), "no view");
}

static bool is_of(const struct view *view, const struct qut_trace_module *module, const char *path)
{
    return module && strcmp(view_string(view, module->path), path) == 0;
}

static const struct qut_trace_module *loaded_from(const struct view *view, const char *path)
{
    for (size_t i = 0; i < frame_count; i++)
        if (is_of(view, frames[i].module, path))
            return frames[i].module;
    return NULL;
}

TEST(modules_are_there_before_they_are_named)
{
    struct view view;
    open_trace(&view);
    take(&view);
    // The program and libc, by paths that others can open.
    for (size_t i = 0; i < frame_count; i++)
        CHECK(frames[i].module && view_string(&view, frames[i].module->path)[0] == '/', "frame %zu: %s", i,
              frames[i].module ? view_string(&view, frames[i].module->path) : "no module");
    view_close(&view);
    qut_trace_close();
}

// Loaded again, wherever, a module's code has the same numbers.
TEST(the_same_module_has_the_same_place)
{
    struct view view;
    uint64_t codes[LIBRARIES] = {0};
    uintptr_t starts[LIBRARIES] = {0};
    open_trace(&view);
    int moved = 0; // from one round to the next
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < LIBRARIES; i++) {
            enter_fn *enter;
            void *library = open_library(i, &enter);
            if (!library)
                continue;
            enter(3, take, &view);
            const struct qut_trace_module *module = loaded_from(&view, libraries[i]);
            if (CHECK(module != NULL, "round %d: %s is not in the stack", round, libraries[i])) {
                uint64_t code = 0;
                for (size_t j = 0; j < frame_count; j++)
                    if (frames[j].module == module) {
                        code = frames[j].code;
                        CHECK(frames[j].pc >= (uintptr_t)enter && frames[j].pc < (uintptr_t)enter + 4096, "%lx, %lx",
                              (long)frames[j].pc, (long)(uintptr_t)enter);
                    }
                CHECK(codes[i] == 0 || codes[i] == code, "%s: %lx, not %lx", libraries[i], (long)code, (long)codes[i]);
                moved += starts[i] != 0 && starts[i] != module->start;
                codes[i] = code;
                starts[i] = (uintptr_t)module->start;
                CHECK(module->unload_ns == 0, "it is there");
                dlclose(library);
                qut_refresh();
                CHECK(module->unload_ns != 0, "%s: it is gone", libraries[i]);
                // The next one lies elsewhere.
                mmap((void *)(starts[i] & ~(uintptr_t)4095), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                     -1, 0);
            }
        }
    for (int i = 1; i < LIBRARIES; i++)
        CHECK(codes[i] != codes[0], "%d", i);
#ifdef OS_SANITIZED
    (void)moved; // under AddressSanitizer the loader was seen to get the same addresses again
#else
    CHECK(moved > 0, "each time at the same address");
#endif
    view_close(&view);
    qut_trace_close();
}

// The libraries' code is at the same offsets: where one takes the place of another, their stacks are the same
// addresses.
TEST(another_module_where_one_was)
{
    struct view view;
    uintptr_t last = 0;
    int in_its_place = 0;
    open_trace(&view);
    for (volatile int i = 0; i < 4 * LIBRARIES; i++) {
        enter_fn *enter;
        int number = i % LIBRARIES;
        void *library = open_library(number, &enter);
        if (!library)
            continue;
        in_its_place += (uintptr_t)enter == last;
        last = (uintptr_t)enter;
        enter(20, take, &view);
        CHECK(loaded_from(&view, libraries[number]) != NULL, "%s is not in the stack", libraries[number]);
        for (int other = 0; other < LIBRARIES; other++)
            CHECK(other == number || !loaded_from(&view, libraries[other]), "%s is gone", libraries[other]);
        dlclose(library); // nothing is mapped before the next one
    }
    qut_refresh();
    view_close(&view);
    qut_trace_close();
    if (in_its_place == 0) // seen under qemu
        SKIP("the loader gives each an address of its own");
}

TEST(places_do_not_overlap)
{
    const struct modules_registry *registry = &modules_registry;
    for (size_t i = 0; i < registry->record_count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct modules_record *a = registry->records[i], *b = registry->records[j];
            uint64_t a_end = a->code_base + (a->identity.end - a->identity.start);
            uint64_t b_end = b->code_base + (b->identity.end - b->identity.start);
            CHECK(a->code_base >= 4096 && a->code_base % 16 == 0 && (a->code_base >= b_end || b->code_base >= a_end),
                  "%lx to %lx, %lx to %lx", (long)a->code_base, (long)a_end, (long)b->code_base, (long)b_end);
        }
}

// A later trace of the same process has all modules, too; and what is loaded while none is open is in the next.
TEST(each_trace_has_them)
{
    struct view view;
    enter_fn *enter;
    void *library = open_library(0, &enter);
    if (!library)
        return;
    open_trace(&view);
    enter(1, take, &view);
    CHECK(loaded_from(&view, libraries[0]) != NULL, "not there");
    view_close(&view);
    qut_trace_close();
    dlclose(library);
}

// ---- without modules

TEST(other_code_is_an_address)
{
    struct view view;
    open_trace(&view);
    uintptr_t pcs[] = {0x1234, (uintptr_t)open_trace + 1, 0x5678};
    struct qut_event event = {.kind = QUT_SAMPLE_OTHER};
    int stored = qut_trace_append(pcs, 3, NULL, 0, &event);
    CHECK(stored == QUT_STORED, "%d", stored);
    frame_count = view_stack(&view, view_last_node(view_self(&view), 0), frames, DEPTH_MAX);
    CHECK(frame_count == 3, "%zu", frame_count);
    CHECK(frames[0].class == QUT_TRACE_CLASS_RAW && frames[0].pc == 0x1234, "%u %lx", frames[0].class,
          (long)frames[0].pc);
    CHECK(frames[1].class == QUT_TRACE_CLASS_CODE && frames[1].pc == pcs[1], "%u %lx", frames[1].class,
          (long)frames[1].pc);
    CHECK(frames[2].class == QUT_TRACE_CLASS_RAW && frames[2].pc == 0x5678, "%u %lx", frames[2].class,
          (long)frames[2].pc);
    view_close(&view);
    qut_trace_close();
}

// Bytecode lies in files that are no modules: which, is found out while they are mapped.
TEST(bytecode_is_in_a_file)
{
    struct view view;
    int fd = open("/proc/self/exe", O_RDONLY);
    char path[4096] = "";
    size_t length = (size_t)readlink("/proc/self/exe", path, sizeof path - 1);
    uint8_t *bytes = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 4096);
    CHECK(bytes != MAP_FAILED && length < sizeof path, "mmap");
    open_trace(&view);
    uint32_t nodes[2];
    for (int i = 0; i < 2; i++) {
        struct feed_entry entry = {0};
        if (!CHECK(feed_enter(&entry, 0), "enter"))
            return;
        struct feed_stack stack = {.feed = entry.feed, .modules = entry.modules};
        feed_begin_stack(&stack);
        nodes[i] = feed_frame_node(&stack, 0, (uintptr_t)bytes + 16u * (unsigned)i, QUT_FRAME_DEX);
        feed_leave(&entry);
    }
    qut_refresh();
    frame_count = view_stack(&view, nodes[1], frames, DEPTH_MAX);
    CHECK(frame_count == 1 && frames[0].class == QUT_TRACE_CLASS_DEX && frames[0].pc == (uintptr_t)bytes + 16,
          "%zu frames, %lx", frame_count, (long)frames[0].pc);
    int files = 0;
    for (uint32_t i = 0; i < view.header->module_count; i++) {
        const struct qut_trace_module *module = &view.modules[i];
        if (!(module->flags & QUT_TRACE_MODULE_FILE))
            continue;
        files++;
        CHECK(module->start == (uintptr_t)bytes && module->code_bytes == 8192 && module->start_vaddr == 4096 &&
                  strcmp(view_string(&view, module->path), path) == 0,
              "%lx, %lx of %s", (long)module->start, (long)module->start_vaddr, view_string(&view, module->path));
    }
    CHECK(files == 1, "%d files", files);
    view_close(&view);
    qut_trace_close();
    munmap(bytes, 8192);
    close(fd);
}

int main(void)
{
    if (!discipline_has_compiler()) {
        printf("SKIP: no compiler\n0 passed, 0 failed, 1 skipped\n");
        return 77;
    }
    if (!discipline_start())
        return 1;
    RUN(modules_are_there_before_they_are_named);
    RUN(another_module_where_one_was);
    RUN(the_same_module_has_the_same_place);
    RUN(places_do_not_overlap);
    RUN(each_trace_has_them);
    RUN(other_code_is_an_address);
    RUN(bytecode_is_in_a_file);
    return tap_finish();
}
