// SPDX-License-Identifier: Apache-2.0
// What is kept of each recording: sums by function, and its stacks in the one tree of all.
#include <stdlib.h>

#include "tracer/diff/inside.h"
#include "tracer/export/functions.h"

int diff_begin(struct diff *diff, const size_t recordings[2], struct base_error *error)
{
    *diff = (struct diff){.recordings = {recordings[0], recordings[1]}, .kind = SELECTION_MAIN};
    diff->told = calloc(diff_all(diff) + 1, sizeof *diff->told);
    struct diff_frame *root = BASE_ADD(&diff->frames);
    if (!diff->told || !root)
        return base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory to compare");
    *root = (struct diff_frame){.function = BASE_HASH_NONE};
    return 0;
}

void diff_free(struct diff *diff)
{
    free(diff->told);
    free(diff->rows);
    free(diff->call_rows);
    free(diff->values);
    base_vector_free(&diff->functions.vector);
    base_vector_free(&diff->samples.vector);
    base_vector_free(&diff->calls.vector);
    base_vector_free(&diff->frames.vector);
    base_hash_free(&diff->function_index);
    base_hash_free(&diff->frame_index);
    base_interner_free(&diff->strings);
    *diff = (struct diff){0};
}

int diff_select(struct selection *selection, const struct trace *trace, const struct diff *diff,
                const struct diff_wanted *wanted, struct base_error *error)
{
    struct selection_wanted part = wanted->part;
    part.kind = diff->kind == SELECTION_MAIN ? part.kind : diff->kind;
    part.show_agent = true; // what is the agent's is told apart
    return analysis_selection_make(selection, trace, &part, error);
}

static uint32_t child_of(struct diff *diff, uint32_t parent, uint32_t function)
{
    const uint64_t hash = base_hash_word(0, (uint64_t)parent << 32 | function);
    uint32_t found;
    for (uint32_t step = 0; (found = base_hash_next(&diff->frame_index, hash, &step)) != BASE_HASH_NONE;)
        if (diff->frames.items[found].parent == parent && diff->frames.items[found].function == function)
            return found;
    found = (uint32_t)diff->frames.count;
    struct diff_frame *frame = base_hash_add(&diff->frame_index, hash, found) ? BASE_ADD(&diff->frames) : NULL;
    if (!frame)
        return BASE_HASH_NONE;
    *frame = (struct diff_frame){.parent = parent, .function = function};
    return found;
}

// of_node[i]: the innermost frame of the trace's node i, for those that stacks with a weight go through.
static bool add_node(struct diff *diff, const struct trace *trace, const struct names *names,
                     const struct function_groups *groups, uint32_t node, uint32_t *of_node)
{
    uint32_t frame = of_node[trace->nodes[node].parent];
    for (size_t i = names_count(names, node); i-- > 0;) {
        frame = child_of(diff, frame, groups->of_id[names_at(names, node, i)->id]);
        if (frame == BASE_HASH_NONE)
            return false;
    }
    of_node[node] = frame;
    return true;
}

static int add_tree(struct diff *diff, enum diff_side side, const struct selection *selection,
                    const struct names *names, const struct function_groups *groups, bool with_own)
{
    const struct trace *trace = &selection->trace;
    struct hot_spots spots = {0};
    uint32_t *of_node = calloc(trace->node_count + 1, sizeof *of_node);
    bool *is_met = calloc(trace->node_count + 1, sizeof *is_met);
    bool is_good = of_node && is_met && analysis_hot_spots_make(&spots, selection, diff->measure, with_own) == 0;
    for (size_t i = 0; is_good && i < spots.count; i++)
        is_met[spots.items[i].node] = true;
    for (uint32_t node = 1; is_good && node < trace->node_count; node++)
        if (is_met[node])
            is_good = add_node(diff, trace, names, groups, node, of_node);
    for (size_t i = 0; is_good && i < spots.count; i++)
        diff->frames.items[of_node[spots.items[i].node]].self[side] += spots.items[i].self;
    analysis_hot_spots_free(&spots);
    free(of_node);
    free(is_met);
    return is_good ? 0 : -1;
}

static int add_samples(struct diff *diff, enum diff_side side, size_t recording, const struct selection *selection,
                       const struct names *names, const struct function_groups *groups, bool with_own)
{
    struct diff_recording *told = &diff->told[recording];
    struct function_costs costs;
    if (export_functions_of_groups(&costs, selection, names, groups, diff->measure, with_own) != 0)
        return -1;
    for (size_t i = 0; i < costs.count; i++) {
        const struct function_cost *cost = &costs.items[i];
        diff->samples.items[(size_t)cost->id * diff_all(diff) + recording] =
            (struct diff_samples){cost->self, cost->total, cost->self_told, cost->total_told};
    }
    told->basis = costs.basis;
    told->sum = costs.basis.sum;
    told->samples = costs.samples;
    told->own = costs.own;
    export_functions_free(&costs);
    return add_tree(diff, side, selection, names, groups, with_own);
}

// The function of each name, numbered as stacks meet them: names themselves are made by several threads, and numbered
// otherwise in each run.
static uint32_t *functions_of(struct diff *diff, const struct trace *trace, const struct names *names)
{
    const size_t count = names_id_count(names);
    uint32_t *of_id = malloc((count + 1) * sizeof *of_id);
    bool is_good = of_id != NULL;
    for (size_t id = 0; is_good && id < count; id++)
        of_id[id] = BASE_HASH_NONE;
    for (uint32_t node = 1; is_good && node < trace->node_count; node++)
        for (size_t i = names_count(names, node); is_good && i-- > 0;) {
            const size_t id = names_at(names, node, i)->id;
            if (of_id[id] == BASE_HASH_NONE)
                is_good = (of_id[id] = diff_function_of(diff, names_by_id(names, (uint32_t)id))) != BASE_HASH_NONE;
        }
    for (size_t id = 0; is_good && id < count; id++) // in no stack
        if (of_id[id] == BASE_HASH_NONE)
            is_good = (of_id[id] = diff_function_of(diff, names_by_id(names, (uint32_t)id))) != BASE_HASH_NONE;
    if (is_good)
        return of_id;
    free(of_id);
    return NULL;
}

int diff_add(struct diff *diff, enum diff_side side, const struct selection *selection, const struct names *names,
             const struct diff_wanted *wanted, struct base_error *error)
{
    const size_t recording = diff_index(diff, side, diff->added[side]++);
    const struct trace *whole = selection->whole;
    struct diff_recording *told = &diff->told[recording];
    if (diff->kind == SELECTION_MAIN) {
        diff->kind = selection->kind;
        diff->measure = wanted->weight >= 0 ? (enum measure)wanted->weight : selection->measure;
        diff->by_amount = wanted->by_amount;
    }
    *told = (struct diff_recording){.path = base_interner_add(&diff->strings, whole->path),
                                    .has_calls = whole->calls_count > 0,
                                    .is_complete = whole->is_complete};
    if (selection->end_ns > selection->start_ns)
        told->seconds = (double)(selection->end_ns - selection->start_ns) / 1e9;
    uint32_t *of_id = functions_of(diff, &selection->trace, names);
    const struct function_groups groups = {.of_id = of_id, .count = diff->functions.count};
    int status = of_id ? 0 : -1;
    if (status == 0)
        status = add_samples(diff, side, recording, selection, names, &groups, wanted->show_agent);
    if (status == 0)
        status = diff_add_calls(diff, recording, selection, names);
    free(of_id);
    return status == 0 ? 0 : base_fail(error, BASE_ERR_NO_MEMORY, "", 0, "no memory to compare");
}
