// SPDX-License-Identifier: Apache-2.0
// Code that needs no loader: what it begins with calls what it is given. FRAME_BYTES tells one image from another.
typedef void called(void);

void image_call(called *call);

void image_call(called *call)
{
    volatile char room[FRAME_BYTES];
    room[0] = 1;
    call();
    room[1] = room[0];
}
