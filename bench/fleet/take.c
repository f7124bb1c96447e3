// SPDX-License-Identifier: Apache-2.0
// How long a table takes from a server, with all checks: asked again and again by one process.
//
//     bench_fleet_take URL KEY FILE ROUNDS [MEMORY]
//
// MEMORY: a folder for what servers said; without it the index and its signature are asked for each time. Prints a
// line for each round: wall and processor time in ms.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/measure.h"
#include "qutc/input/inputs.h"
#include "qutc/shelf/shelf.h"

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int fail(const char *what, const struct base_error *error)
{
    char text[256];
    fprintf(stderr, "bench_fleet_take: %s: %s\n", what, base_error_text(error, text, sizeof text));
    return 1;
}

static int take(const struct shelf_source *source, const struct input_image *image, struct base_error *error)
{
    const struct shelf_wanted wanted = shelf_wanted_of(image);
    uint8_t *table = NULL;
    size_t size = 0, from = 0;
    const uint64_t wall = bench_now_ns(), cpu = cpu_ns();
    const enum shelf_answer answer = shelf_take(source, &wanted, &table, &size, &from, error);
    const uint64_t took = bench_now_ns() - wall, used = cpu_ns() - cpu;
    free(table);
    if (answer == SHELF_MISSING)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "the server has it not");
    if (answer == SHELF_TAKEN)
        printf("%.3f %.3f %zu\n", (double)took / 1e6, (double)used / 1e6, size);
    return answer == SHELF_TAKEN ? 0 : -1;
}

int main(int argc, char **argv)
{
    if (argc < 5 || argc > 6) {
        fputs("usage: bench_fleet_take URL KEY FILE ROUNDS [MEMORY]\n", stderr);
        return 2;
    }
    const char *const urls[] = {argv[1]};
    const struct shelf_source source = {.urls = urls,
                                        .url_count = 1,
                                        .key = argv[2],
                                        .memory = argc == 6 ? argv[5] : NULL,
                                        .timeout_ms = SHELF_TIMEOUT_MS};
    struct base_error error = {0};
    struct input_inputs inputs;
    struct input_image *image = NULL;
    input_inputs_init(&inputs);
    int status = input_inputs_add_path(&inputs, argv[3], &error);
    if (status == 0)
        status = input_open(&inputs.items[0], &(struct input_image_options){0}, &image, &error);
    for (unsigned long round = strtoul(argv[4], NULL, 10); status == 0 && round; round--)
        status = take(&source, image, &error);
    if (image)
        input_image_close(image);
    input_inputs_free(&inputs);
    return status == 0 ? 0 : fail(argv[3], &error);
}
