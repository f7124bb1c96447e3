// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/tracer/call_times/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "formats/qut_rule.h"

enum { TICKS_AT_BEGIN = 5000 };

static void need(int status, const struct base_error *error)
{
    char text[160];
    if (status == 0)
        return;
    fprintf(stderr, "story: %s\n", base_error_text(error, text, sizeof text));
    abort();
}

static uint64_t ticks_of(uint64_t ns)
{
    return TICKS_AT_BEGIN + 2 * ns;
}

void story_begin(struct story *story, int fd)
{
    struct base_error error = {0};
    const struct collect_calls_process process = {
        .pid = STORY_PID, .arch = QUT_ARCH_X86_64, .begin_ns = STORY_BEGIN_NS, .command = "/story/program --told"};
    *story = (struct story){.fd = fd, .calls = collect_calls_begin(fd, &process, &error)};
    need(story->calls ? 0 : -1, &error);
    const uint8_t build_id[] = {0x57, 0x0e, 0x11};
    const struct collect_calls_module module = {
        .path = "/story/program", .bias = 0x10000, .build_id = build_id, .build_id_bytes = sizeof build_id};
    uint32_t index;
    need(collect_calls_module(story->calls, &module, &index, &error), &error);
    for (unsigned i = 0; i < STORY_FUNCTIONS; i++) {
        const char name[] = {(char)('a' + i), 0};
        const struct collect_calls_function function = {
            .id = i + 1, .module = index, .vaddr = 0x1000 + 16 * i, .size = 16, .name = name};
        need(collect_calls_function(story->calls, &function, &error), &error);
    }
    need(collect_calls_clock(story->calls, ticks_of(0), STORY_BEGIN_NS, &error), &error);
}

uint32_t story_thread(struct story *story, const char *name)
{
    struct base_error error = {0};
    uint32_t index;
    need(collect_calls_thread(story->calls, STORY_PID + story->threads++, name, STORY_BEGIN_NS + story->ns, &index,
                              &error),
         &error);
    return index;
}

void story_thread_ends(struct story *story, uint32_t thread)
{
    struct base_error error = {0};
    need(collect_calls_thread_is(story->calls, thread, NULL, STORY_BEGIN_NS + story->ns, &error), &error);
}

static void write_word(struct story *story, uint32_t thread, uint64_t word, uint64_t ns)
{
    struct base_error error = {0};
    const struct qut_calls_event event = {.time_ticks = ticks_of(ns), .word = word};
    need(collect_calls_events(story->calls, thread, &event, 1, &error), &error);
}

void story_event(struct story *story, uint32_t thread, char function, uint64_t slot, bool is_exit, uint64_t ns)
{
    write_word(story, thread, qut_calls_word(slot, is_exit, (uint32_t)(function - 'a' + 1)), ns);
}

void story_jump(struct story *story, uint32_t thread, char function, uint64_t slot, uint64_t ns)
{
    write_word(story, thread, qut_calls_word(slot, false, (uint32_t)(function - 'a' + 1)) | QUT_CALLS_EVENT_TAIL, ns);
}

static uint64_t slot_of(uint32_t thread, uint64_t depth)
{
    return STORY_STACK - thread * UINT64_C(0x1000000) - 16 * depth;
}

void story_enter(struct story *story, uint32_t thread, char function, uint64_t depth, uint64_t step_ns)
{
    story_event(story, thread, function, slot_of(thread, depth), false, story->ns += step_ns);
}

void story_exit(struct story *story, uint32_t thread, char function, uint64_t depth, uint64_t step_ns)
{
    story_event(story, thread, function, slot_of(thread, depth), true, story->ns += step_ns);
}

void story_lost(struct story *story, uint32_t thread, uint64_t enters, uint64_t exits)
{
    struct base_error error = {0};
    need(collect_calls_lost(story->calls, thread, enters, exits, &error), &error);
}

void story_end(struct story *story)
{
    struct base_error error = {0};
    story->ns += 10;
    need(collect_calls_clock(story->calls, ticks_of(story->ns), STORY_BEGIN_NS + story->ns, &error), &error);
    const struct trace_note note = {.name = "calls-refused-short", .value = 3};
    const struct collect_calls_ending ending = {
        .end = QUT_TRACE_FILE_END_CLOSED, .end_ns = STORY_BEGIN_NS + story->ns, .notes = &note, .note_count = 1};
    need(collect_calls_end(story->calls, &ending, &error), &error);
    story->calls = NULL;
}

void story_tell(struct story *story, const uint32_t *threads, uint32_t thread_count, const char *text)
{
    enum { STEP_NS = 10 };
    uint32_t at = 0;
    while (*text) {
        const bool is_exit = *text == '/', is_jump = *text == '>';
        text += is_exit || is_jump;
        switch (*text) {
        case ' ': text++; continue;
        case '|': at = (at + 1) % thread_count, text++; continue;
        case '!': story_lost(story, threads[at], 1, 1), text++; continue;
        case '.': story_thread_ends(story, threads[at]), text++; continue;
        default: break;
        }
        const char function = *text++;
        char *end;
        const uint64_t depth = strtoull(text, &end, 10);
        text = end;
        // Depths from 1000 on are on a stack of their own, next to the first thread's, whoever is on it.
        const uint32_t of = depth >= 1000 ? threads[0] : threads[at];
        story->ns += STEP_NS;
        if (is_jump)
            story_jump(story, threads[at], function, slot_of(of, depth), story->ns);
        else
            story_event(story, threads[at], function, slot_of(of, depth), is_exit, story->ns);
    }
}

int story_file(void)
{
    const int fd = memfd_create("story", MFD_CLOEXEC);
    if (fd < 0)
        abort();
    return fd;
}

struct trace story_read(int fd)
{
    struct base_error error = {0};
    struct trace trace;
    need(trace_read_fd(fd, "story", &trace, &error), &error);
    return trace;
}
