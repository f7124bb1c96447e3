// SPDX-License-Identifier: Apache-2.0
// Writes a file of exact calls for tests of commands: usage tell FILE [STORY [THREADS [THINNED]]]. STORY as in story.h,
// of so many threads. THINNED: "a99 b0", functions that are thinned, and calls of each that were counted beside.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/tracer/call_times/story.h"

enum { THREADS_MAX = 16 };

static int thin(struct story *story, const char *text, struct base_error *error)
{
    int status = 0;
    while (*text && status == 0) {
        char *end;
        const char name[] = {*text, 0};
        const uint32_t id = (uint32_t)(*text - 'a' + 1);
        const struct collect_calls_function function = {
            .id = id, .vaddr = 0x1000 + 16 * (id - 1), .size = 16, .flags = QUT_TRACE_FILE_CALL_THINNED, .name = name};
        const uint64_t counted = strtoull(text + 1, &end, 10);
        status = collect_calls_function(story->calls, &function, error);
        if (status == 0)
            status = collect_calls_counted(story->calls, id, counted, error);
        text = end + (*end == ' ');
    }
    return status;
}

// A bit of everything: recursion, a jump, an exception, a coroutine, a thread that ends, a loss, what runs at the end.
static const char everything[] = "a1 b2 c3 /c3 c3 /c3 /b2 b2 b3 b4 /b4 /b3 /b2 d2 >e2 /e2 f2 g3 h4 /a1 a1 i2 "
                                 "| a1 b2 c3 /c3 | j1000 k1001 /k1001 | /b2 b2 ! /b2 . | /i2 /j1000 l2 /l2 m2";

int main(int argc, char **argv)
{
    if (argc < 2)
        return EXIT_FAILURE;
    const int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    struct story story;
    uint32_t threads[THREADS_MAX];
    const char *count_text = argc > 3 ? argv[3] : "2";
    const unsigned count = (unsigned)strtoul(count_text, NULL, 10);
    if (fd < 0 || count == 0 || count > THREADS_MAX) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    story_begin(&story, fd);
    for (unsigned i = 0; i < count; i++) {
        char name[16];
        snprintf(name, sizeof name, "thread %u", i);
        threads[i] = story_thread(&story, name);
    }
    struct base_error error = {0};
    const char *told = argc > 2 ? argv[2] : everything;
    story_tell(&story, threads, count, told);
    if (collect_calls_counted(story.calls, 'z' - 'a' + 1, 1234567, &error) != 0 ||
        (argc > 4 && thin(&story, argv[4], &error) != 0))
        return EXIT_FAILURE;
    story_end(&story);
    return close(fd) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
