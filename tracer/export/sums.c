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

int export_sums_of_thread(struct sums *sums, const struct selection *selection, const struct trace_thread *thread,
                          bool by_kind)
{
    sums->count = 0;
    base_hash_clear(&sums->index);
    for (size_t s = thread->first_sample; s < thread->first_sample + thread->sample_count; s++) {
        const struct trace_sample *sample = &selection->trace.samples[s];
        struct sum *sum = sum_of(sums, sample->node, by_kind ? sample->kind : 0);
        if (!sum)
            return -1;
        for (unsigned i = 0; i < EXPORT_WEIGHT_COUNT; i++)
            sum->of[i] += selection->weights[s][i];
    }
    return 0;
}

void export_sums_free(struct sums *sums)
{
    base_vector_free(&sums->vector);
    base_hash_free(&sums->index);
}
