// SPDX-License-Identifier: Apache-2.0
// What quality is called, what is good enough, and what helps.
#include <stdio.h>
#include <string.h>

#include "tracer/export/tell.h"

#include "tracer/export/quality.h"

enum judged { NOT_JUDGED, AT_LEAST, AT_MOST };

static const struct {
    const char *name;
    const char *words; // behind the share, of time
    enum judged judged;
    double bound;
} aspects[QUALITY_COUNT] = {
    [QUALITY_WHOLE] = {"whole", "with the whole stack", AT_LEAST, 0.99},
    [QUALITY_NAMED] = {"named", "with a name", AT_LEAST, 0.95},
    [QUALITY_KERNEL] = {"kernel", "in the kernel", NOT_JUDGED, 0},
    [QUALITY_RUN_TIME] = {"run_time_code", "in code made at run time", NOT_JUDGED, 0},
    [QUALITY_GUESSED] = {"guessed", "with a stack that rests on a guess", NOT_JUDGED, 0},
    [QUALITY_UNTICKED] = {"unticked", "of threads that no tick met", AT_MOST, 0.05},
    [QUALITY_LATE] = {"late", "of ticks late", AT_MOST, 0.05},
    [QUALITY_LOST] = {"lost", "of samples lost", AT_MOST, 0.01},
};

const char *export_quality_name(enum quality_aspect aspect)
{
    return aspects[aspect].name;
}

double export_quality_share(const struct quality *quality, enum quality_aspect aspect)
{
    return quality->all[aspect] ? (double)quality->of[aspect] / (double)quality->all[aspect] : 0;
}

bool export_quality_is_good(const struct quality *quality, enum quality_aspect aspect)
{
    double share = export_quality_share(quality, aspect);
    if (!quality->all[aspect] || aspects[aspect].judged == NOT_JUDGED)
        return true;
    return aspects[aspect].judged == AT_LEAST ? share >= aspects[aspect].bound : share <= aspects[aspect].bound;
}

bool export_quality_all_good(const struct quality *quality)
{
    bool is_good = quality->sum != 0;
    for (unsigned aspect = 0; aspect < QUALITY_COUNT; aspect++)
        is_good = is_good && export_quality_is_good(quality, aspect);
    return is_good;
}

void export_quality_line(const struct quality *quality, char *text, size_t size)
{
    bool is_good = export_quality_all_good(quality), is_first = true;
    snprintf(text, size, quality->sum ? is_good ? "good:" : "NOT GOOD:" : "no time was sampled");
    for (unsigned aspect = 0; quality->sum && aspect < QUALITY_COUNT; aspect++) {
        size_t used = strlen(text);
        if (!quality->all[aspect])
            continue;
        snprintf(text + used, size - used, "%s %.1f %% %s%s", is_first ? "" : ",",
                 100 * export_quality_share(quality, aspect),
                 !is_first                         ? ""
                 : quality->measure == MEASURE_CPU ? "of processor time "
                                                   : "of samples ",
                 aspects[aspect].words);
        is_first = false;
    }
}

// ---- what to do

// Walks go through such code by frame pointers, where it keeps some as compilers of C do.
static void advise_run_time(const struct quality *quality, const struct teller *teller)
{
    enum { WORTH_TELLING_PERCENT = 5 };
    double percent = 100 * (double)quality->unnamed_run_time / (double)quality->sum;
    if (percent < WORTH_TELLING_PERCENT)
        return;
    export_tell(teller,
                "%.1f %% of this time is in code made at run time by a virtual machine%s%s%s%s, and has no "
                "names: the machine has to write a map for perf (node --perf-basic-prof); what is outside of it, and "
                "waits, are as they were",
                percent, quality->machine ? " (" : "", quality->machine ? quality->machine : "",
                quality->machine ? ")" : "",
                export_quality_is_good(quality, QUALITY_WHOLE) ? "" : ", where some stacks end");
}

static void advise_ends(const struct quality *quality, const struct teller *teller)
{
    char ends[1024] = "";
    for (size_t i = 0; i < quality->end_count; i++) {
        const struct quality_end *end = &quality->ends[i];
        size_t used = strlen(ends);
        snprintf(ends + used, sizeof ends - used, "%s%.1f %% %s%s%.200s", i ? "; " : "",
                 100 * (double)end->weight / (double)quality->sum, end->why, *end->function ? " behind " : "",
                 end->function);
    }
    export_tell(teller, "%.1f %% of this time has only a part of its stack, which ends before its root: %s",
                100 - 100 * export_quality_share(quality, QUALITY_WHOLE), ends);
}

static void advise_names(const struct quality *quality, const struct teller *teller)
{
    for (size_t i = 0; i < quality->unnamed_count; i++) {
        const struct quality_unnamed *file = &quality->unnamed[i];
        export_tell(
            teller,
            "%.1f %% of this time has no names: %s (%s); its debug symbols have them: install the package with them "
            "(-dbgsym, -debuginfo), name a folder that has them with --debug-root, or ask for them with --debuginfod; "
            "or build without -s",
            100 * (double)file->weight / (double)quality->sum, file->path, file->why);
    }
}

void export_quality_advise(const struct quality *quality, void (*say)(void *context, const char *text), void *context)
{
    const struct teller teller = {say, context};
    if (!export_quality_is_good(quality, QUALITY_UNTICKED))
        export_tell(&teller,
                    "%.1f %% of this time was used by threads that no tick met, most of them too short for one, and "
                    "nothing tells in which functions; a higher rate (-F) meets more of them",
                    100 * export_quality_share(quality, QUALITY_UNTICKED));
    if (!quality->sum)
        return;
    bool is_whole = export_quality_is_good(quality, QUALITY_WHOLE);
    bool is_named = export_quality_is_good(quality, QUALITY_NAMED);
    if (!is_whole || !is_named)
        advise_run_time(quality, &teller);
    if (!is_whole)
        advise_ends(quality, &teller);
    if (!is_named)
        advise_names(quality, &teller);
    if (!export_quality_is_good(quality, QUALITY_LATE))
        export_tell(
            &teller,
            "%.1f %% of ticks came late, together with another one: the thread could not be interrupted in time; a "
            "lower rate than it was (-F) has fewer of them. Their time is in the shares",
            100 * export_quality_share(quality, QUALITY_LATE));
    if (!export_quality_is_good(quality, QUALITY_LOST))
        export_tell(&teller, "%.1f %% of samples are lost: a larger --buffer, or a lower rate (-F), loses fewer",
                    100 * export_quality_share(quality, QUALITY_LOST));
}

// ---- as data

static void put_advice(void *context, const char *text)
{
    base_json_string(context, NULL, text);
}

void export_quality_json(const struct quality *quality, struct base_json *json)
{
    base_json_open(json, "quality", '{');
    base_json_bool(json, "good", export_quality_all_good(quality));
    for (unsigned aspect = 0; aspect < QUALITY_COUNT; aspect++)
        if (quality->all[aspect])
            base_json_real(json, aspects[aspect].name, export_quality_share(quality, aspect), 6);
    base_json_open(json, "unnamed", '[');
    for (size_t i = 0; i < quality->unnamed_count; i++) {
        base_json_open(json, NULL, '{');
        base_json_string(json, "file", quality->unnamed[i].path);
        base_json_real(json, "share", (double)quality->unnamed[i].weight / (double)(quality->sum ? quality->sum : 1),
                       6);
        base_json_string(json, "why", quality->unnamed[i].why);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
    base_json_open(json, "ends", '[');
    for (size_t i = 0; i < quality->end_count; i++) {
        base_json_open(json, NULL, '{');
        base_json_string(json, "why", quality->ends[i].why);
        base_json_string(json, "behind", quality->ends[i].function);
        base_json_real(json, "share", (double)quality->ends[i].weight / (double)(quality->sum ? quality->sum : 1), 6);
        base_json_close(json, '}');
    }
    base_json_close(json, ']');
    if (quality->machine)
        base_json_string(json, "machine", quality->machine);
    base_json_open(json, "advice", '[');
    export_quality_advise(quality, put_advice, json);
    base_json_close(json, ']');
    base_json_close(json, '}');
}
