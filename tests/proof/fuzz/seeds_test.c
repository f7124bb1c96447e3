// SPDX-License-Identifier: Apache-2.0
// Every seed of every target read once, and some changes of it, without libFuzzer: with each compiler and sanitizer
// that tests run with, targets are known to build, and to take what their seeds are made for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/proof/fuzz/seeds/seeds.h"
#include "tests/proof/fuzz/targets.h"

enum { CHANGES = 6, ROOM_BYTES = 1 << 17 };

#define TARGET(NAME, MUTATOR) {#NAME, fuzz_##NAME, fuzz_mutate_##MUTATOR},
static const struct fuzz_target targets[] = {FUZZ_TARGETS};
#undef TARGET
enum { TARGETS = sizeof targets / sizeof *targets };

static unsigned seeds_of[TARGETS], changed_of[TARGETS];
static struct fuzz_mutation mutation;

// Stands in for libFuzzer's.
static size_t change_bytes(uint8_t *data, size_t size, size_t max_size)
{
    uint32_t where = fuzz_random(&mutation, (uint32_t)size);
    if (size && fuzz_random(&mutation, 4)) {
        data[where] ^= (uint8_t)(1 + fuzz_random(&mutation, 255));
        return size;
    }
    if (size > 1 && fuzz_random(&mutation, 2))
        return size - 1;
    if (size < max_size)
        data[size++] = (uint8_t)fuzz_random(&mutation, 256);
    return size;
}

// Of exactly its size, so that a sanitizer sees every step beyond.
static void run(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    if (size)
        memcpy(copy, bytes, size);
    target->run(copy, size);
    free(copy);
}

void write_seed(const char *name, const char *seed, int first_byte, const void *bytes, size_t size)
{
    static uint8_t input[ROOM_BYTES];
    size_t which = 0, length = 0;
    while (which < TARGETS && strcmp(targets[which].name, name) != 0)
        which++;
    if (which == TARGETS || size >= sizeof input) {
        fprintf(stderr, "seed %s: of no target, or too long: %s\n", seed, name);
        exit(EXIT_FAILURE);
    }
    if (first_byte >= 0)
        input[length++] = (uint8_t)first_byte;
    if (size)
        memcpy(input + length, bytes, size);
    length += size;
    run(&targets[which], input, length);
    seeds_of[which]++;
    for (int i = 0; i < CHANGES; i++) {
        static uint8_t before[ROOM_BYTES];
        size_t was = length;
        memcpy(before, input, length);
        length = targets[which].mutate(&mutation, input, length, sizeof input);
        if (length > sizeof input)
            abort();
        changed_of[which] += length != was || memcmp(before, input, was) != 0;
        run(&targets[which], input, length);
    }
}

int main(void)
{
    int result = EXIT_SUCCESS;
    mutation = (struct fuzz_mutation){.bytes = change_bytes, .random = 0x9e3779b97f4a7c15u};
    all_seeds();
    for (size_t i = 0; i < TARGETS; i++) {
        printf("%-12s %4u seeds, %4u changes\n", targets[i].name, seeds_of[i], changed_of[i]);
        if (seeds_of[i] == 0 || changed_of[i] < seeds_of[i] * CHANGES / 2)
            result = EXIT_FAILURE;
    }
    return result;
}
