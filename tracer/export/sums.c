// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/sums.h"

static struct sum *sum_of(struct sums *sums, uint32_t node, uint32_t kind)
{
    uint64_t hash = base_hash_word(0, (uint64_t)node << 32 | kind);
    for (uint32_t step = 0, i; (i = base_hash_next(&sums->index, hash, &step)) != BASE_HASH_NONE;)
        if (sums->items[i].node == node && sums->items[i].kind == kind)
            return &sums->items[i];
    struct sum *sum = BASE_ADD(sums);
    if (!sum || !base_hash_add(&sums->index, hash, (uint32_t)sums->count - 1))
        return NULL;
    *sum = (struct sum){.node = node, .kind = kind};
    return sum;
}

int export_sums_of_thread(struct sums *sums, const struct trace *trace, const struct trace_thread *thread, bool by_kind)
{
    struct weights_walk walk;
    struct weights weights;
    const struct trace_sample *sample;
    sums->count = 0;
    base_hash_clear(&sums->index);
    analysis_weights_begin(&walk, trace, thread);
    while (analysis_weights_next(&walk, &sample, &weights)) {
        struct sum *sum = sum_of(sums, sample->node, by_kind ? sample->kind : 0);
        if (!sum)
            return -1;
        for (unsigned i = 0; i < EXPORT_WEIGHT_COUNT; i++)
            sum->of[i] += weights.of[i];
    }
    return 0;
}

void export_sums_free(struct sums *sums)
{
    base_vector_free(&sums->vector);
    base_hash_free(&sums->index);
}
