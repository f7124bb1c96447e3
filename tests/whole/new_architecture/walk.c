// SPDX-License-Identifier: Apache-2.0
// The stack of a snapshot directory, with tables made on the way: a line for each frame, and why there are no more.
#include <inttypes.h>
#include <stdio.h>

#include <qut/target.h>
#include <qutc/provide.h>

int main(int argument_count, char **arguments)
{
    enum { FRAMES_MAX = 32 };
    struct qut_target_options options = {.size = sizeof options, .compile = qutc_compile_for_qut};
    struct qut_target_error error;
    struct qut_frame frames[FRAMES_MAX];
    struct qut_end end;
    struct qut_target *target = argument_count == 2 ? qut_target_snapshot(arguments[1], &options, &error) : NULL;
    if (!target) {
        fprintf(stderr, "walk: %s\n", argument_count == 2 ? error.text : "usage: walk DIRECTORY");
        return 2;
    }
    size_t count = qut_target_walk(target, 0, frames, FRAMES_MAX, &end);
    printf("%s\n", qut_target_arch(target));
    for (size_t i = 0; i < count; i++)
        printf("%" PRIx64 " %" PRIx64 "%s\n", frames[i].pc, frames[i].sp,
               frames[i].flags & QUT_FRAME_GUESSED ? " guessed" : "");
    printf("%s\n", qut_end_reason_name(end.reason));
    qut_target_close(target);
    return 0;
}
