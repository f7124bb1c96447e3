// SPDX-License-Identifier: Apache-2.0
// Writes a file of exact calls for tests of commands: usage tell FILE [STORY [THREADS]]. STORY as in story.h, of so
// many threads.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/tracer/call_times/story.h"

enum { THREADS_MAX = 16 };

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
    if (collect_calls_counted(story.calls, 'z' - 'a' + 1, 1234567, &error) != 0)
        return EXIT_FAILURE;
    story_end(&story);
    return close(fd) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
