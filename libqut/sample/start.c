// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "libqut/sample/sampling.h"
#include "libqut/trace/sample.h"

int qut_sampling_start(const struct qut_sampling_options *options)
{
    if (!options || !qut_trace_is_open())
        return -EINVAL;
    qut_sync_begin(options->sync_interval_ns ? options->sync_interval_ns : 10000000);
    return 0;
}
void qut_sampling_stop(void)
{
    qut_sync_end();
}
uint32_t qut_sampling_trigger(void)
{
    return QUT_TRIGGER_NONE;
}
int qut_sampling_signal(void)
{
    return 0;
}
int qut_sampling_thread_begin(void)
{
    return qut_trace_thread_register();
}
void qut_sampling_thread_end(void) {}
int qut_sampling_adopt_threads(void)
{
    return 0;
}
int qut_sampling_after_fork(void)
{
    return 0;
}
void qut_guard_begin(void) {}
void qut_guard_end(void) {}
void qut_sampling_get_counters(struct qut_sampling_counters *counters, size_t size)
{
    memset(counters, 0, size);
}
