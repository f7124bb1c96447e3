// SPDX-License-Identifier: Apache-2.0
// Runs programs of probes with their maps, without the stub that calls them, as often as the argument says; or once
// each between the marks of bench/walk/marks.h, for the plugin of bench/count.
//
//   bench_probe [--count | ROUNDS]     a line for each: ns of a run, least and median of the rounds; the least as
//                                      machine code, 0 where there is none; instructions; script
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench/measure.h"
#include "bench/walk/marks.h"
#include "bytecode/machine.h"
#include "bytecode/maps.h"
#include "tracer/probe/script.h"

enum { RUNS = 2000, ROUNDS_MAX = 10000 };

// arg0 to arg5; what is returned is 30, and took 2000 ns.
static const struct subject {
    const char *script;
    uint64_t arguments[6];
} subjects[] = {
    {"entry:f { @ = count() }", {0}},
    {"return:f /duration > 1000/ { @[tid] = hist(duration) }", {0}},
    {"return:f /duration > 5000/ { @[tid] = hist(duration) }", {0}},
    {"entry:f /arg0 > 10 && arg1 < 1000 && (arg2 & 7) == 3 || arg3 == 5/ { @[arg0, tid] = sum(arg1 * 3 + arg2 - arg4) "
     "}",
     {11, 12, 3, 0, 1, 0}},
    {"entry:f /arg0 > 10 && arg1 < 1000 && (arg2 & 7) == 3 || arg3 == 5/ { @[arg0, tid] = sum(arg1 * 3 + arg2 - arg4) "
     "}",
     {9, 12, 3, 0, 1, 0}},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

struct host {
    struct bytecode_host host;
    struct bytecode_maps maps;
};

static uint64_t answer(struct bytecode_host *base, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    const struct host *host = (const struct host *)(const void *)base;
    if (helper == QUT_PROBE_AGGREGATE)
        bytecode_maps_aggregate(&host->maps, (uint32_t)a, (const uint64_t *)(uintptr_t)b, c);
    return 0;
}

static void run(const struct qut_probe_instruction *code, const uint8_t *machine_code, const uint64_t *fields,
                struct host *host)
{
    if (machine_code)
        bytecode_machine.enter(machine_code, fields, &host->host);
    else
        bytecode_run(code, fields, &host->host);
}

// machine_code NULL: by the interpreter.
static struct bench_spread time_of(const struct qut_probe_instruction *code, const uint8_t *machine_code,
                                   const uint64_t *fields, struct host *host, size_t rounds, double *least)
{
    static double values[ROUNDS_MAX];
    for (size_t round = 0; round < rounds; round++) {
        const uint64_t begin = bench_now_ns();
        for (unsigned i = 0; i < RUNS; i++)
            run(code, machine_code, fields, host);
        values[round] = (double)(bench_now_ns() - begin) / RUNS;
    }
    const struct bench_spread spread = bench_spread(values, rounds);
    *least = values[0]; // they are sorted
    return spread;
}

// NULL: there is none.
static const uint8_t *machine_code_of(const struct qut_probe_instruction *code, uint32_t count)
{
    static uint32_t places[QUT_PROBE_INSTRUCTIONS_MAX];
    if (!bytecode_machine.translate)
        return NULL;
    const uint32_t bytes = bytecode_machine.translate(code, count, places, NULL);
    uint8_t *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (to == MAP_FAILED)
        return NULL;
    bytecode_machine.translate(code, count, places, to);
    return mprotect(to, bytes, PROT_READ | PROT_EXEC) == 0 ? to : NULL;
}

static int measure(const struct subject *subject, size_t rounds)
{
    struct probe_script script;
    struct probe_diagnostic why;
    struct host host = {.host = {answer}};
    uint64_t fields[QUT_PROBE_FIELD_END] = {0};
    if (probe_compile(subject->script, strlen(subject->script), &script, &why) != 0) {
        fprintf(stderr, "%s: %s\n", subject->script, why.text);
        return -1;
    }
    const struct qut_probe_image image = qut_probe_parts(script.image);
    bytecode_maps_lay_out(&host.maps, &image);
    host.maps.memory = calloc(host.maps.words, sizeof *host.maps.memory);
    if (!host.maps.memory)
        return -1;
    memcpy(fields, subject->arguments, sizeof subject->arguments);
    fields[QUT_PROBE_RETVAL] = 30;
    fields[QUT_PROBE_DURATION] = 2000;
    fields[QUT_PROBE_TID] = 77;
    bytecode_run(image.instructions, fields, &host.host); // the key is there from now on
    if (rounds) {
        const uint8_t *code = machine_code_of(image.instructions, image.programs[0].instruction_count);
        double least, machine_least = 0;
        const struct bench_spread spread = time_of(image.instructions, NULL, fields, &host, rounds, &least);
        if (code)
            time_of(image.instructions, code, fields, &host, rounds, &machine_least);
        printf("%.1f %.1f %.1f %u %s\n", least, spread.median, machine_least, image.programs[0].instruction_count,
               subject->script);
    } else {
        bench_count_on();
        bytecode_run(image.instructions, fields, &host.host);
        bench_count_off();
    }
    free(host.maps.memory);
    probe_script_free(&script);
    return 0;
}

int main(int argc, char **argv)
{
    const bool is_counted = argc == 2 && strcmp(argv[1], "--count") == 0;
    const long rounds = is_counted ? 0 : argc == 2 ? strtol(argv[1], NULL, 10) : 300;
    if (argc > 2 || rounds < !is_counted || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: bench_probe [--count | ROUNDS]\n");
        return 2;
    }
    if (!is_counted)
        bench_pin();
    for (size_t i = 0; i < SUBJECTS; i++)
        if (measure(&subjects[i], (size_t)rounds) != 0)
            return 1;
    return 0;
}
