// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/losses.h"

#include <stdio.h>

#include "tracer/export/tell.h"

static uint64_t lost_samples(const struct qut_trace_counts *counts)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        sum += counts->lost[i];
    return sum;
}

uint64_t export_losses_of_thread(const struct trace *trace, const struct trace_thread *thread)
{
    uint64_t kept = thread->stored + thread->merged, there = 0;
    for (size_t i = 0; i < thread->sample_count; i++)
        there += trace->samples[thread->first_sample + i].count;
    return lost_samples(&thread->counts) + (kept > there ? kept - there : 0);
}

bool export_losses_summary(const struct trace *trace, char *text, size_t size)
{
    uint64_t missing = lost_samples(&trace->counts) + trace->overwritten_samples + trace->damaged_samples;
    uint64_t taken = trace->counts.hits - trace->counts.throttled;
    text[0] = '\0';
    if (!missing)
        return false;
    snprintf(text, size, "%ju of %ju samples are missing", (uintmax_t)missing, (uintmax_t)taken);
    return true;
}

static void tell_counts(const struct trace *trace, const struct teller *teller)
{
    for (unsigned i = 0; i < QUT_TRACE_LOST_COUNT; i++)
        if (trace->counts.lost[i])
            export_tell(teller, "%ju lost: %s", (uintmax_t)trace->counts.lost[i], trace_lost_name(i));
    if (trace->overwritten_samples)
        export_tell(teller, "%ju overwritten by newer ones", (uintmax_t)trace->overwritten_samples);
    if (trace->damaged_samples)
        export_tell(teller, "%ju could not be read", (uintmax_t)trace->damaged_samples);
    for (unsigned i = 0; i < QUT_TRACE_CUT_COUNT; i++)
        if (trace->counts.cut[i])
            export_tell(teller, "%ju have less than their whole stack: %s", (uintmax_t)trace->counts.cut[i],
                        trace_cut_name(i));
    if (trace->counts.lost_marks)
        export_tell(teller, "%ju marks lost", (uintmax_t)trace->counts.lost_marks);
}

// What a recorder counted beside the samples.
static void tell_notes(const struct trace *trace, const struct teller *teller)
{
    static const struct {
        const char *name, *what;
    } notes[] = {
        {"ticks-lost", "ticks did not arrive"},
        {"ticks-late", "ticks came as one with another"},
        {"threads-without-ticks", "threads could not be given ticks"},
        {"locks-untold", "waits for locks of which it is not known who held them, or who ended them"},
        {"processes-not-recorded", "processes are not in the trace"},
        {"processes-not-followed", "processes were left alone, and are not in the trace"},
        {"processes-without-ticks", "processes had no ticks"},
        {"processes-with-unknown-ticks", "processes ended without saying how many ticks they lost"},
        {"processes-left-running", "processes went on when the recording ended"},
        {"tables-missing", "modules had no table in time: stacks end in them"},
        {"eintr-seen", "calls of the program returned EINTR because of a tick"},
        {"calls-disturbed", "calls of the program returned early because it was stopped"},
        {"rounds-late", "rounds of samples came late"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        uint64_t sum = trace_note_sum(trace, notes[i].name);
        if (sum)
            export_tell(teller, "%ju %s", (uintmax_t)sum, notes[i].what);
    }
}

static bool tells_kernel(const struct trace *trace)
{
    for (size_t i = 0; i < trace->extra_count; i++)
        if (trace->extras[i].key == QUT_TRACE_EXTRA_CPU_NS)
            return true;
    return false;
}

// Where nothing stands for them.
static void tell_kernel(const struct trace *trace, const struct teller *teller)
{
    uint64_t sum = trace_note_sum(trace, "ticks-kernel");
    if (sum && !tells_kernel(trace))
        export_tell(teller, "%ju ticks fell into the kernel, where this trigger has none: system calls and page faults",
                    (uintmax_t)sum);
}

static void tell_damage(const struct trace *trace, const struct teller *teller)
{
    if (!trace->is_complete)
        export_tell(teller, "the trace was not closed, or not all of it is here");
    for (size_t i = 0; i < trace->damage_count; i++)
        export_tell(teller, "%s", trace->damages[i]);
    struct trace_balance balance = trace_balance(trace);
    if (balance.hits_missing || balance.samples_missing)
        export_tell(teller, "its counts do not add up: %+jd hits, %+jd samples", (intmax_t)balance.hits_missing,
                    (intmax_t)balance.samples_missing);
}

void export_losses_say(const struct trace *trace, void (*say)(void *context, const char *text), void *context)
{
    const struct teller teller = {.say = say, .context = context};
    char summary[128];
    if (export_losses_summary(trace, summary, sizeof summary))
        export_tell(&teller, "%s", summary);
    tell_counts(trace, &teller);
    tell_notes(trace, &teller);
    tell_kernel(trace, &teller);
    tell_damage(trace, &teller);
}
