// SPDX-License-Identifier: Apache-2.0
#include "tracer/analysis/cpu_account.h"

#include "tracer/analysis/weights.h"

static const struct trace_sample *sample_at(const struct cpu_account *account, size_t index)
{
    return &account->trace->samples[account->thread->first_sample + index];
}

static bool told_ns(const struct trace *trace, const struct trace_sample *sample, uint64_t *ns)
{
    return sample->extra_count && trace_extra(trace, sample, QUT_TRACE_EXTRA_CPU_NS, ns) && *ns <= INT64_MAX / 4;
}

bool analysis_cpu_is_told(const struct trace *trace, const struct trace_sample *sample)
{
    uint64_t ns;
    return told_ns(trace, sample, &ns);
}

uint64_t analysis_first_run_cpu_ns(const struct trace_sample *first)
{
    uint64_t length_ns = first->count > 1 ? first->last_ns - first->first_ns : 0;
    return length_ns < first->cpu_ns ? length_ns : first->cpu_ns;
}

static uint64_t growth(struct cpu_account *account, uint64_t now_ns)
{
    uint64_t grown = now_ns > account->before_ns ? now_ns - account->before_ns : 0;
    account->before_ns = now_ns;
    return grown <= INT64_MAX / 4 ? grown : 0; // a damaged one
}

// Whether the sample before is where this one's interval began: what lies between the two is its own.
static bool has_own_beginning(const struct cpu_account *account, const struct trace_sample *sample)
{
    const struct trace_sample *before = account->before;
    uint64_t begin_ns;
    return before && before->flags & QUT_TRACE_SAMPLE_BEGINS && !before->is_open && before->kind == sample->kind &&
           analysis_interval_begin(account->trace, sample, &begin_ns);
}

static uint64_t cut(const struct cpu_account *account, size_t index, uint64_t ns)
{
    if (index < account->cut_from)
        return ns;
    return index == account->cut_from && ns > account->cut_ns ? ns - account->cut_ns : 0;
}

static uint64_t take(struct cpu_account *account, const struct trace_sample *sample, size_t index)
{
    uint64_t ns, grown = growth(account, sample->cpu_ns);
    if (account->has_ticks && !account->has_told && !trace_sample_is_tick(sample) && has_own_beginning(account, sample))
        return grown;
    if (__builtin_add_overflow(account->open_ns, (int64_t)grown, &account->open_ns))
        account->open_ns = 0; // damaged
    if (told_ns(account->trace, sample, &ns)) {
        ns = cut(account, index, ns);
        if (__builtin_sub_overflow(account->open_ns, (int64_t)ns, &account->open_ns))
            account->open_ns = 0;
        return ns;
    }
    if ((account->has_ticks && !trace_sample_is_tick(sample)) || account->open_ns <= 0)
        return 0;
    ns = (uint64_t)account->open_ns;
    account->open_ns = 0;
    return ns;
}

static void rewind_to_first(struct cpu_account *account)
{
    const struct trace_sample *first = sample_at(account, 0);
    account->before = NULL;
    account->before_ns = first->cpu_ns - analysis_first_run_cpu_ns(first);
    account->open_ns = 0;
    account->next = 0;
}

uint64_t analysis_cpu_next(struct cpu_account *account)
{
    size_t index = account->next++;
    const struct trace_sample *sample = sample_at(account, index);
    uint64_t ns = account->trace->has_cpu_time ? take(account, sample, index) : 0;
    account->before = sample;
    return ns;
}

// What is missing at the end was taken by the last that told: since then the account was never even.
static void find_cut(struct cpu_account *account)
{
    size_t count = account->thread->sample_count;
    for (size_t i = 0; i < count; i++)
        analysis_cpu_next(account);
    uint64_t missing_ns = account->open_ns < 0 ? 0 - (uint64_t)account->open_ns : 0, ns;
    for (size_t i = count; missing_ns && i-- > 0;) {
        if (!told_ns(account->trace, sample_at(account, i), &ns))
            continue;
        account->cut_from = i;
        account->cut_ns = missing_ns;
        missing_ns -= ns < missing_ns ? ns : missing_ns;
    }
}

void analysis_cpu_begin(struct cpu_account *account, const struct trace *trace, const struct trace_thread *thread)
{
    uint64_t ns;
    *account = (struct cpu_account){
        .trace = trace, .thread = thread, .has_ticks = trace->unticked_node != 0, .cut_from = SIZE_MAX};
    if (thread->sample_count == 0)
        return;
    for (size_t i = 0; i < thread->sample_count; i++) {
        const struct trace_sample *sample = sample_at(account, i);
        account->has_ticks = account->has_ticks || trace_sample_is_tick(sample);
        account->has_told = account->has_told || told_ns(trace, sample, &ns);
    }
    rewind_to_first(account);
    if (!account->has_told)
        return;
    find_cut(account);
    rewind_to_first(account);
}

uint64_t analysis_cpu_unticked_ns(const struct trace *trace, const struct trace_thread *thread)
{
    struct cpu_account account;
    if (!trace->unticked_node || !trace_thread_is_unticked(trace, thread))
        return 0;
    analysis_cpu_begin(&account, trace, thread);
    for (size_t i = 0; i < thread->sample_count; i++)
        analysis_cpu_next(&account);
    return account.open_ns > 0 ? (uint64_t)account.open_ns : 0;
}
