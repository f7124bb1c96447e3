// SPDX-License-Identifier: Apache-2.0
// What C allows and a probe does not, a case each: -DCASE=NUMBER.
#include <qut/probe.h>

QUT_PROBE_MAP(calls, QUT_PROBE_MAP_COUNT, QUT_PROBE_NUMBER);

#if CASE == 1 // a loop
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    qut_probe_u64 n = context->arg[0], key = 0;
    while (n) {
        qut_probe_add(&calls, &key, n);
        n = n / 3;
    }
    return 0;
}
#elif CASE == 2 // a store into the program
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    *(volatile qut_probe_u64 *)context->arg[0] = 1;
    return 0;
}
#elif CASE == 3 // a store outside of the stack
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    __asm__ volatile("*(u64 *)(r10 - 520) = %0" : : "r"(context->arg[0])); // C has no words for it
    return 0;
}
#elif CASE == 4 // a load of the program's memory
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    return *(volatile int *)context->arg[0];
}
#elif CASE == 5 // a function of its own
static __attribute__((noinline)) int own(qut_probe_u64 n)
{
    return (int)(n * n + n % 7);
}
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    return own(context->arg[0]);
}
#elif CASE == 6 // data of its own
static volatile int data = 1;
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    (void)context;
    return data;
}
#elif CASE == 7 // a helper that there is not
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    QUT_PROBE_HELPER(77, qut_probe_u64, none, (qut_probe_u64 number));
    return (int)none(context->arg[0]);
}
#elif CASE == 8 // a field that is not filled in there
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    return (int)context->retval;
}
#elif CASE == 9 // a key that is not all written
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    qut_probe_u64 key;
    (void)context;
    qut_probe_add(&calls, &key, 1);
    return 0;
}
#elif CASE == 10 // more instructions than are looked at
#define TEN(X) X X X X X X X X X X
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    qut_probe_u64 n = 0;
    TEN(TEN(TEN(n = n * 3 + context->arg[0];)))
    return (int)n;
}
#elif CASE == 11 // an atomic addition
SEC("entry:f") int refused(const struct qut_probe_context *context)
{
    qut_probe_u64 word = context->arg[0];
    __sync_fetch_and_add(&word, 1);
    return 0;
}
#elif CASE == 12 // no such place
SEC("enter:f") int refused(const struct qut_probe_context *context)
{
    return (int)context->arg[0];
}
#endif
