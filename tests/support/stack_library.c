// SPDX-License-Identifier: Apache-2.0
// Built several times with another frame size: libraries with the same code addresses and other rules. STORM_FRAME is
// large enough that every one needs the same instruction lengths.
#include <string.h>

int storm_library_enter(int depth, int (*callback)(void *), void *context);

__attribute__((noinline)) int storm_library_enter(int depth, int (*callback)(void *), void *context)
{
    volatile char frame[STORM_FRAME];
    frame[0] = (char)depth;
    char text[8];
    memset(text, depth, sizeof text);
    for (volatile int i = 0; i < 300; i++)
        frame[0] = (char)(frame[0] + text[i % 8]);
    if (depth <= 0)
        return callback(context) + frame[0];
    return storm_library_enter(depth - 1, callback, context) + (int)strlen("storm") + frame[0];
}
