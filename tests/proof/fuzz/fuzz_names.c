// SPDX-License-Identifier: Apache-2.0
// Names of places in a file: symbols, PLT slots, starts of functions, inlined functions and lines, methods of bytecode.
// Input: one byte of options, and the file.
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "qutc/input/identity.h"
#include "tests/proof/fuzz/fuzz.h"
#include "tracer/names/names.h"

enum { NODES = 64, LABELS = 2 };

struct subject {
    struct trace_module module;
    struct trace_node nodes[1 + NODES + LABELS];
    size_t node_count;
};

static void add_node(struct subject *subject, uint64_t pc, unsigned class_, const char *label)
{
    subject->nodes[subject->node_count++] = (struct trace_node){.module = label ? TRACE_NONE : 0,
                                                                .pc = pc,
                                                                .class_ = (uint8_t)class_,
                                                                .kind = (uint8_t)(class_ << QUT_TRACE_CLASS_SHIFT),
                                                                .depth = 1,
                                                                .label = label};
}

static void add_range(struct subject *subject, const struct input_range *range, unsigned count)
{
    uint64_t size = range->end - range->start;
    for (unsigned i = 0; i < count && subject->node_count < NODES; i++)
        add_node(subject, range->start + size / count * i, i == 1 ? QUT_TRACE_CLASS_SIGNAL : QUT_TRACE_CLASS_CODE,
                 NULL);
}

// Places all over its code, and in what leads to other modules.
static void choose_places(struct subject *subject, const uint8_t *data, size_t size)
{
    struct input_image_options options = {.unpack_max_bytes = 4 << 20};
    struct input_image *image;
    add_node(subject, 0, 0, "");
    subject->nodes[0] = (struct trace_node){.module = TRACE_NONE};
    if (input_image_open_memory((struct base_bytes){data, size}, "fuzz", &options, &image, NULL) == 0) {
        for (unsigned i = 0; i < image->plt_count; i++)
            add_range(subject, &image->plt[i], 8);
        for (unsigned i = 0; i < image->exec_count; i++)
            add_range(subject, &image->exec[i], 32);
        memcpy(subject->module.build_id, image->identity, image->identity_size);
        subject->module.build_id_bytes = image->identity_kind == INPUT_BUILD_ID ? image->identity_size : 0;
        input_image_close(image);
    }
    while (subject->node_count < NODES)
        add_node(subject, size * subject->node_count / NODES,
                 subject->node_count % 2 ? QUT_TRACE_CLASS_DEX : QUT_TRACE_CLASS_CODE, NULL);
    add_node(subject, 0, QUT_TRACE_CLASS_LABEL, "_ZN3foo3barEv");
    add_node(subject, 0, QUT_TRACE_CLASS_LABEL, "_RNvC6_123foo3bar");
}

int fuzz_names(const uint8_t *data, size_t size)
{
    enum {
        INLINED = 1,
        LINES = 2,
        MAPPED_FILE = 4,
        NO_BUILD_ID = 8,
        IN_ARCHIVE = 16,
        DEBUG_FILE = 32,
        VDSO = 64,
        ROOT = 128
    };
    struct subject subject = {.module = {.unload_ns = UINT64_MAX}};
    char path[128];
    if (size == 0)
        return 0;
    const unsigned way = data[0];
    choose_places(&subject, data + 1, size - 1);
    snprintf(path, sizeof path, "%s%s", fuzz_file(data + 1, size - 1), way & IN_ARCHIVE ? "!/lib/a.so" : "");
    subject.module.path = path;
    if (way & MAPPED_FILE)
        subject.module.flags = QUT_TRACE_MODULE_FILE;
    if (way & NO_BUILD_ID)
        subject.module.build_id_bytes = 0;
    if (way & VDSO)
        subject.module.flags |= QUT_TRACE_MODULE_VDSO;
    // Its own debug file: where the module itself is not found, all that there is.
    char debug_path[PATH_MAX] = "";
    const struct base_bytes build_id = {subject.module.build_id, subject.module.build_id_bytes};
    if (way & DEBUG_FILE && input_debug_path(fuzz_folder(), build_id, debug_path))
        fuzz_write(debug_path + strlen(fuzz_folder()) + 1, data + 1, size - 1);
    const struct trace trace = {
        .modules = &subject.module, .module_count = 1, .nodes = subject.nodes, .node_count = subject.node_count};
    const struct names_options options = {.debug_root = "/nowhere", .inlined = way & INLINED, .lines = way & LINES};
    struct base_error error = {0};
    struct names *names = names_of(&trace, &options, &error);
    fuzz_require(names != NULL);
    for (uint32_t node = 1; node < subject.node_count; node++) {
        fuzz_require(names_count(names, node) > 0);
        for (size_t i = 0; i < names_count(names, node); i++) {
            const struct name *name = names_at(names, node, i);
            fuzz_require(name->function[0] && name->module && name->id < names_id_count(names));
        }
    }
    names_free(names);
    if (*debug_path)
        unlink(debug_path);
    return 0;
}
