// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/usage.h"
#include "libqut/sample/inside.h"
#include "libqut/trace/feed_sample.h"

enum {
    OF_KERNEL = 1 << QUT_METRIC_MINOR_FAULTS | 1 << QUT_METRIC_MAJOR_FAULTS | 1 << QUT_METRIC_VOLUNTARY_SWITCHES |
                1 << QUT_METRIC_INVOLUNTARY_SWITCHES,
};

const uint64_t *sample_measure(uint64_t metrics[QUT_METRIC_COUNT], const uint64_t *own)
{
    for (unsigned i = 0; i < QUT_METRIC_COUNT; i++)
        metrics[i] = own ? own[i] : 0;
    uint32_t mask = feed_trace_own_metrics(metrics);
    struct os_usage usage;
    if ((mask & OF_KERNEL) && os_thread_usage(&usage)) {
        metrics[QUT_METRIC_MINOR_FAULTS] = usage.minor_faults;
        metrics[QUT_METRIC_MAJOR_FAULTS] = usage.major_faults;
        metrics[QUT_METRIC_VOLUNTARY_SWITCHES] = usage.voluntary_switches;
        metrics[QUT_METRIC_INVOLUNTARY_SWITCHES] = usage.involuntary_switches;
    }
    return mask ? metrics : NULL;
}
