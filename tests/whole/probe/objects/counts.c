// SPDX-License-Identifier: Apache-2.0
// What a script can ask, asked in C: the program under it keeps its own account (subject.c).
#include <qut/probe.h>

QUT_PROBE_MAP(calls, QUT_PROBE_MAP_COUNT);
QUT_PROBE_MAP(sum, QUT_PROBE_MAP_SUM);
QUT_PROBE_MAP(texts, QUT_PROBE_MAP_COUNT, QUT_PROBE_TEXT(64), QUT_PROBE_NUMBER);
QUT_PROBE_MAP(retvals, QUT_PROBE_MAP_SUM);
QUT_PROBE_MAP(timed, QUT_PROBE_MAP_COUNT);
QUT_PROBE_LINEAR_MAP(sizes, 0, 500, 4);
QUT_PROBE_MAP(callers, QUT_PROBE_MAP_COUNT, QUT_PROBE_FRAMES);
QUT_PROBE_MAP(last, QUT_PROBE_MAP_VALUE, QUT_PROBE_NUMBER);
QUT_PROBE_MAP(same, QUT_PROBE_MAP_COUNT);
static QUT_PROBE_MAP(__own, QUT_PROBE_MAP_VALUE);
QUT_PROBE_RECORD(said, "%s: %d\n", QUT_PROBE_TEXT(16), QUT_PROBE_NUMBER);
QUT_PROBE_RECORD(ended, "ended\n");

struct text_key {
    char text[64];
    qut_probe_u64 is_large;
};

static __attribute__((always_inline)) void remember(qut_probe_u64 tid, qut_probe_u64 value)
{
    qut_probe_add(&last, &tid, value);
    qut_probe_add(&__own, 0, value);
}

SEC("entry:probe_subject!probe_work") int enters(const struct qut_probe_context *context)
{
    struct text_key key;
    const qut_probe_u64 argument = context->arg[0], stack = qut_probe_stack(1);
    qut_probe_add(&calls, 0, 1);
    qut_probe_add(&sum, 0, argument);
    qut_probe_add(&sizes, 0, argument);
    qut_probe_add(&callers, &stack, 1);
    qut_probe_text(key.text, sizeof key.text, context->arg[1]);
    key.is_large = argument > 0xffffffffff;
    qut_probe_add(&texts, &key, 1);
    remember(context->tid, argument);
    return 0;
}

// In a section together.
SEC("return:probe_subject!probe_work") int returns(const struct qut_probe_context *context)
{
    qut_probe_add(&retvals, 0, context->retval);
    if (context->duration > 0)
        qut_probe_add(&timed, 0, 1);
    return 0;
}

// It returns three times its argument, and one more: what was noted at the entry is that of the same call, but where a
// handler has come in between.
SEC("return:probe_subject!probe_work") int compares(const struct qut_probe_context *context)
{
    const qut_probe_u64 tid = context->tid;
    if (qut_probe_get(&last, &tid) * 3 + 1 == context->retval)
        qut_probe_add(&same, 0, 1);
    return 0;
}

SEC("entry:probe_subject!probe_deep") int deep(const struct qut_probe_context *context)
{
    struct {
        qut_probe_u64 text[2];
        qut_probe_u64 depth;
    } words = {{0x70656564, 0}, context->arg[0]}; // "deep"
    qut_probe_emit(&said, &words);
    return 0;
}

SEC("end") int ends(const struct qut_probe_context *context)
{
    qut_probe_emit(&ended, 0);
    return context->time == 0;
}
