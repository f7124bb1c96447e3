// SPDX-License-Identifier: Apache-2.0
// Encodes pictures that move, with x264: most of its time is in assembler. One thread, since others are not judged.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <x264.h>

enum { WIDTH = 176, HEIGHT = 144, PICTURES = 12 };

static void draw(x264_picture_t *picture, int number)
{
    for (int plane = 0; plane < picture->img.i_plane; plane++) {
        int divisor = plane ? 2 : 1;
        for (int y = 0; y < HEIGHT / divisor; y++)
            for (int x = 0; x < WIDTH / divisor; x++)
                picture->img.plane[plane][y * picture->img.i_stride[plane] + x] =
                    (uint8_t)((x + number) * (y + 3) / (plane + 5) + number * number);
    }
}

int main(void)
{
    x264_param_t param;
    x264_param_default_preset(&param, "medium", NULL);
    param.i_width = WIDTH;
    param.i_height = HEIGHT;
    param.i_csp = X264_CSP_I420;
    param.i_threads = 1;
    param.i_log_level = X264_LOG_ERROR;
    x264_param_apply_profile(&param, "high");
    x264_t *encoder = x264_encoder_open(&param);
    x264_picture_t picture, made;
    if (!encoder || x264_picture_alloc(&picture, param.i_csp, WIDTH, HEIGHT) < 0)
        return 1;
    long bytes = 0;
    for (int number = 0; number < PICTURES || x264_encoder_delayed_frames(encoder); number++) {
        x264_nal_t *units;
        int unit_count;
        draw(&picture, number);
        picture.i_pts = number;
        int size = x264_encoder_encode(encoder, &units, &unit_count, number < PICTURES ? &picture : NULL, &made);
        if (size < 0)
            return 1;
        bytes += size;
    }
    x264_picture_clean(&picture);
    x264_encoder_close(encoder);
    printf("%ld bytes\n", bytes);
    return bytes == 0;
}
