// SPDX-License-Identifier: Apache-2.0
// The parts of a segment: what is made of which options, nodes, raw pcs, strings, modules, slots.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libqut/segment/segment.h"
#include "tests/support/tap.h"

static bool create(struct segment *segment, uint64_t bytes, uint32_t node_bits)
{
    struct segment_options options = {.segment_bytes = bytes, .node_bits = node_bits, .thread_count = 4};
    int result = segment_create(segment, &options);
    return CHECK(result == 0, "%d", result);
}

TEST(sections_follow_each_other)
{
    for (uint64_t bytes = 1 << 20; bytes <= 256 << 20; bytes *= 4) {
        struct segment s;
        struct segment_options options = {.segment_bytes = bytes, .command = "a command"};
        int result = segment_create(&s, &options);
        if (!CHECK(result == 0, "%d for %llu", result, (unsigned long long)bytes))
            return;
        const struct qut_trace_header *h = s.header;
        const struct qut_trace_section *sections[] = {&h->counters,     &h->threads, &h->modules, &h->strings,
                                                      &h->string_index, &h->raw,     &h->nodes,   &h->free_list,
                                                      &h->directory,    &h->chunks};
        uint64_t end = sizeof *h;
        for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
            CHECK(sections[i]->offset_bytes >= end && sections[i]->offset_bytes % 64 == 0, "section %zu at %llu", i,
                  (unsigned long long)sections[i]->offset_bytes);
            end = sections[i]->offset_bytes + sections[i]->size_bytes;
        }
        CHECK(end <= h->segment_bytes && h->chunks.offset_bytes % 4096 == 0, "end %llu", (unsigned long long)end);
        CHECK(end + 2 * 4096 + 65536 > h->segment_bytes, "a waste of %llu",
              (unsigned long long)(h->segment_bytes - end));
        CHECK(h->chunks.size_bytes * 100 >= h->segment_bytes * 40, "chunks have %llu of %llu",
              (unsigned long long)h->chunks.size_bytes, (unsigned long long)h->segment_bytes);
        CHECK(strcmp(h->command, "a command") == 0 && memcmp(h->magic, QUT_TRACE_MAGIC, 8) == 0, "%s", h->command);
        segment_close(&s);
    }
}

TEST(what_does_not_fit_is_refused)
{
    struct segment s;
    struct segment_options tiny = {.segment_bytes = 64 << 10}, nodes = {.segment_bytes = 1 << 20, .node_bits = 20};
    struct segment_options threads = {.segment_bytes = 1 << 20, .thread_count = 4000};
    struct segment_options bits = {.segment_bytes = 1 << 28, .node_bits = 25}, mode = {.mode = 2};
    struct segment_options huge = {.segment_bytes = UINT64_MAX}, useless = {.segment_bytes = (uint64_t)64 << 30};
    CHECK(segment_create(&s, &tiny) == -EINVAL, "tiny");
    CHECK(segment_create(&s, &nodes) == -EINVAL, "nodes");
    CHECK(segment_create(&s, &threads) == -EINVAL, "threads");
    CHECK(segment_create(&s, &bits) == -EINVAL, "bits");
    CHECK(segment_create(&s, &mode) == -EINVAL, "mode");
    CHECK(segment_create(&s, &huge) == -EINVAL, "huge");
    CHECK(segment_create(&s, &useless) == -EINVAL, "more than can be used");
}

TEST(a_file_is_made_in_memory_only)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/qut_parts_test.%ld", (long)getpid());
    struct segment s;
    struct segment_options options = {.segment_bytes = 1 << 20, .path = path};
    int result = segment_create(&s, &options);
    if (result == -EMEDIUMTYPE || result == -ENOENT)
        SKIP("no memory file system at /dev/shm");
    CHECK(result == 0, "%d", result);
    if (result != 0)
        return;
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600 && (uint64_t)status.st_size == s.segment_bytes,
          "mode %o", (unsigned)status.st_mode);
    struct segment other;
    result = segment_create(&other, &options);
    CHECK(result == -EEXIST, "%d", result);
    segment_close(&s);
    CHECK(access(path, F_OK) == 0, "gone");
    unlink(path);
    options.path = "qut_parts_test.segment"; // where tests run: a disk, mostly
    result = segment_create(&s, &options);
    CHECK(result == -EMEDIUMTYPE || result == 0 || result == -EACCES || result == -EROFS, "%d", result);
    if (result == 0) {
        segment_close(&s);
        unlink(options.path);
    }
    CHECK(access(options.path, F_OK) != 0, "left behind");
}

// ---- nodes

TEST(nodes_are_found_again)
{
    struct segment s;
    if (!create(&s, 2 << 20, 12))
        return;
    uint32_t a = segment_node(&s, 0, 4096, 0), b = segment_node(&s, a, 4096, 0);
    uint32_t c = segment_node(&s, a, 4096, QUT_TRACE_NODE_EXACT);
    CHECK(a && b && c && a != b && b != c && a != c, "%u %u %u", a, b, c);
    CHECK(segment_node(&s, 0, 4096, 0) == a && segment_node(&s, a, 4096, 0) == b, "not found again");
    uint64_t code_max = ((uint64_t)1 << QUT_TRACE_CODE_BITS) - 1;
    uint32_t d = segment_node(&s, b, code_max, 31);
    CHECK(s.nodes[d] == ((uint64_t)b << 40 | code_max << 5 | 31), "%llx", (unsigned long long)s.nodes[d]);
    CHECK(segment_node(&s, 0, code_max + 1, 0) == 0, "code");
    CHECK(segment_node(&s, 0, 1, 32) == 0, "kind");
    CHECK(segment_node(&s, 4095 - a, 1, 0) == 0 || s.nodes[4095 - a], "a parent that is none");
    CHECK(segment_node(&s, 4096, 1, 0) == 0 && segment_node(&s, UINT32_MAX, 1, 0) == 0, "parent");
    CHECK(segment_node(&s, 0, 0, 0) == 0, "nothing");
    CHECK(s.nodes[0] == 0 && s.counters->node_count == 4, "%llu", (unsigned long long)s.counters->node_count);
    uint32_t raw = segment_raw(&s, 0x7fff12345678);
    CHECK(raw && s.raw[raw] == 0x7fff12345678 && segment_raw(&s, 0x7fff12345678) == raw, "%u", raw);
    CHECK(segment_raw(&s, 0) == 0, "address 0");
    segment_close(&s);
}

TEST(a_full_tree_refuses_and_keeps)
{
    struct segment s;
    if (!create(&s, 2 << 20, 10))
        return;
    static uint32_t ids[2000];
    unsigned made = 0, first_refused = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        ids[i] = segment_node(&s, i ? ids[i / 2] : 0, 4096 + i, 0);
        made += ids[i] != 0;
        if (!ids[i] && !first_refused)
            first_refused = i;
    }
    CHECK(made <= 1023 && first_refused > 700, "%u made, %u the first refused", made, first_refused);
    for (uint32_t i = 0; i < 2000; i++)
        if (ids[i])
            CHECK(segment_node(&s, i ? ids[i / 2] : 0, 4096 + i, 0) == ids[i], "node %u", i);
    CHECK(s.counters->node_count == made, "%llu", (unsigned long long)s.counters->node_count);
    segment_close(&s);
}

TEST(the_smallest_table_has_all_its_places)
{
    struct segment s;
    if (!create(&s, 1 << 20, 4))
        return;
    uint32_t places = 0, all = (2u << s.raw_mask) - 2; // each but that of 0
    for (uint64_t address = 1; address < 1000; address++) {
        uint32_t index = segment_raw(&s, address);
        CHECK(index <= s.raw_mask && (index == 0 || s.raw[index] == address), "%u", index);
        places |= index ? 1u << index : 0;
    }
    CHECK(s.raw_mask == 15 && places == all, "%x of %x", places, all);
    segment_close(&s);
}

// Few lie close together, and three quarters of the places can be had, but for one word in a thousand or so.
TEST(a_tree_grows_from_its_beginning)
{
    enum { BITS = 20, FEW = 20000, MANY = 3 << (BITS - 2) };
    struct segment s;
    if (!create(&s, 32 << 20, BITS))
        return;
    static uint32_t ids[MANY];
    uint32_t near = 0, refused = 0, moved = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        ids[i] = segment_node(&s, i ? ids[i / 2] : 0, 4096 + i, 0);
        refused += ids[i] == 0;
        near += i < FEW && ids[i] < 1u << 15;
    }
    for (uint32_t i = 0; i < MANY; i++)
        moved += ids[i] && segment_node(&s, i ? ids[i / 2] : 0, 4096 + i, 0) != ids[i];
    CHECK(near > FEW - FEW / 20, "%u of %u", near, FEW);
    CHECK(refused < MANY / 500 && moved == 0, "%u refused, %u moved, of %u", refused, moved, MANY);
    segment_close(&s);
}

enum { SHARED_NODES = 20000 };
struct inserter {
    struct segment *segment;
    unsigned seed;
    uint32_t ids[SHARED_NODES];
};

static void *insert(void *argument)
{
    struct inserter *me = argument;
    // The same tree, in another order: each node after its parent.
    unsigned random = me->seed;
    for (uint32_t done = 0; done < 5 * SHARED_NODES; done++) {
        random = random * 1664525 + 1013904223;
        uint32_t chain[32], depth = 0;
        for (uint32_t i = random % SHARED_NODES; depth < 32; i /= 3) {
            chain[depth++] = i;
            if (i == 0)
                break;
        }
        while (depth-- > 0) {
            uint32_t i = chain[depth], parent = i ? me->ids[i / 3] : 0;
            me->ids[i] = segment_node(me->segment, parent, 4096 + i, 0);
        }
    }
    return NULL;
}

TEST(two_threads_get_the_same_nodes)
{
    struct segment s;
    if (!create(&s, 4 << 20, 16))
        return;
    struct inserter *both = calloc(2, sizeof *both);
    pthread_t thread;
    if (!both)
        return;
    both[0].segment = both[1].segment = &s;
    both[0].seed = 1;
    both[1].seed = 2;
    CHECK(pthread_create(&thread, NULL, insert, &both[1]) == 0, "no thread");
    insert(&both[0]);
    pthread_join(thread, NULL);
    unsigned in_both = 0;
    for (uint32_t i = 0; i < SHARED_NODES; i++)
        if (both[0].ids[i] && both[1].ids[i]) {
            in_both++;
            CHECK(both[0].ids[i] == both[1].ids[i], "node %u: %u and %u", i, both[0].ids[i], both[1].ids[i]);
        }
    CHECK(in_both > SHARED_NODES / 2, "%u", in_both);
    unsigned doubles = 0;
    for (uint32_t i = 1; i <= s.node_mask; i++)
        for (uint32_t j = i + 1; s.nodes[i] && j <= s.node_mask && j < i + 64; j++)
            doubles += s.nodes[i] == s.nodes[j];
    CHECK(doubles == 0, "%u", doubles);
    free(both);
    segment_close(&s);
}

// At the same moment, as nearly as two threads can: each waits for the other before each node. On a full machine each
// of these waits may take a slice of time, so the first one ends the race then, in the round that it begins.
enum { RACED_NODES = 30000, RACED_NODES_LEAST = 100, RACE_SECONDS = 10 };
struct racer {
    struct segment *segment;
    uint32_t *arrived, *rounds, *ids;
    bool is_first;
};

static void *race(void *argument)
{
    struct racer *me = argument;
    time_t begin = time(NULL);
    for (uint32_t i = 0; i < __atomic_load_n(me->rounds, __ATOMIC_RELAXED); i++) {
        if (me->is_first && i >= RACED_NODES_LEAST && time(NULL) - begin > RACE_SECONDS)
            __atomic_store_n(me->rounds, i + 1, __ATOMIC_RELAXED); // seen behind the arrival
        __atomic_add_fetch(me->arrived, 1, __ATOMIC_ACQ_REL);
        for (unsigned spins = 0; __atomic_load_n(me->arrived, __ATOMIC_ACQUIRE) < 2 * (i + 1); spins++)
            if (spins >= 20000) // it does not run now
                sched_yield();
        me->ids[i] = segment_node(me->segment, 0, 4096 + i, 0);
    }
    return NULL;
}

TEST(who_comes_at_the_same_moment_gets_the_same_node)
{
    struct segment s;
    if (!create(&s, 4 << 20, 16))
        return;
    static uint32_t ids[2][RACED_NODES], arrived;
    uint32_t rounds = RACED_NODES;
    struct racer both[2] = {{&s, &arrived, &rounds, ids[0], true}, {&s, &arrived, &rounds, ids[1], false}};
    pthread_t thread;
    arrived = 0;
    CHECK(pthread_create(&thread, NULL, race, &both[1]) == 0, "no thread");
    race(&both[0]);
    pthread_join(thread, NULL);
    unsigned differ = 0;
    for (uint32_t i = 0; i < rounds; i++)
        differ += ids[0][i] != ids[1][i];
    CHECK(differ == 0 && s.counters->node_count == rounds, "%u differ, %llu nodes", differ,
          (unsigned long long)s.counters->node_count);
    segment_close(&s);
}

// ---- strings

TEST(strings_are_kept_once)
{
    struct segment s;
    if (!create(&s, 1 << 20, 10))
        return;
    CHECK(segment_string(&s, "", 0) == 0, "empty");
    uint32_t a = segment_string(&s, "alpha", 5), b = segment_string(&s, "alphabet", 8);
    CHECK(a && b && a != b && segment_string(&s, "alphabet", 5) == a, "%u %u", a, b);
    const uint8_t *at = s.strings + (size_t)a * 4;
    CHECK(at[0] == 5 && at[1] == 0 && memcmp(at + 2, "alpha", 6) == 0, "%s", (const char *)at + 2);
    // Until there is no room; what is there stays.
    char text[32];
    unsigned kept = 0, others = 0;
    for (int i = 0; i < 5000; i++) { // most are of one length: told apart by their text alone
        size_t length = (size_t)snprintf(text, sizeof text, "string number %d", i);
        uint32_t id = segment_string(&s, text, length);
        kept += id != 0;
        others += id != 0 && memcmp(s.strings + (size_t)id * 4 + 2, text, length + 1) != 0;
    }
    CHECK(others == 0, "%u got the id of another text", others);
    CHECK(kept > 500 && kept < 5000, "%u", kept);
    CHECK(segment_string(&s, "alpha", 5) == a, "lost");
    CHECK(s.header->string_used_bytes <= s.header->strings.size_bytes, "%u", s.header->string_used_bytes);
    char *large = calloc(1, 100000);
    if (large)
        memset(large, 'x', 99999);
    CHECK(large && segment_string(&s, large, 99999) == 0, "does not fit");
    free(large);
    segment_close(&s);
    if (!create(&s, 16 << 20, 10))
        return;
    large = calloc(1, 100000);
    uint32_t id = large ? segment_string(&s, large, 99999) : 0; // cut off
    at = s.strings + (size_t)id * 4;
    CHECK(id && at[0] == 0xff && at[1] == 0xff, "%u", id);
    free(large);
    segment_close(&s);
}

// ---- modules

TEST(modules_get_a_place_in_code_space)
{
    struct segment s;
    if (!create(&s, 1 << 20, 10))
        return;
    struct qut_trace_module a = {
        .code_bytes = 1000, .start = 0x1000, .load_ns = 1, .build_id_bytes = 4, .build_id = {1, 2}};
    struct qut_trace_module b = {.code_bytes = 5000, .start = 0x9000, .load_ns = 2};
    int ia = segment_module_add(&s, &a, "/lib/a.so"), ib = segment_module_add(&s, &b, "/lib/b.so");
    CHECK(ia == 0 && ib == 1 && s.header->module_count == 2, "%d %d", ia, ib);
    CHECK(s.modules[0].code_base == 4096 && s.modules[1].code_base == 4096 + 1008, "%llu",
          (unsigned long long)s.modules[1].code_base);
    segment_module_unloaded(&s, 0, 99);
    CHECK(s.modules[0].unload_ns == 99, "%llu", (unsigned long long)s.modules[0].unload_ns);
    a.start = 0x555000;
    int again = segment_module_add(&s, &a, "/other/name.so"), b_again = segment_module_add(&s, &b, "/lib/b.so");
    CHECK(s.modules[again].code_base == 4096 && s.modules[b_again].code_base == 4096 + 1008, "not the same place");
    b.code_bytes = 5001;
    int other = segment_module_add(&s, &b, "/lib/b.so");
    CHECK(s.modules[other].code_base == 4096 + 1008 + 5008, "%llu", (unsigned long long)s.modules[other].code_base);
    struct qut_trace_module jit = {.code_bytes = 64, .start = 0x7000, .flags = QUT_TRACE_MODULE_JIT};
    int ij = segment_module_add(&s, &jit, "f");
    CHECK(s.modules[ij].code_base == 0, "JIT");
    struct qut_trace_module given = {.code_base = 1 << 20, .code_bytes = 16}, beyond = {.code_bytes = 1};
    CHECK(s.modules[segment_module_add(&s, &given, "g")].code_base == 1 << 20, "given");
    beyond.code_base = (uint64_t)1 << QUT_TRACE_CODE_BITS;
    CHECK(segment_module_add(&s, &beyond, "h") == -ENOSPC, "beyond code space");
    int result = 0;
    while (result >= 0)
        result = segment_module_add(&s, &a, "/lib/a.so");
    CHECK(result == -ENOSPC && s.header->module_count == s.module_capacity, "%d", result);
    segment_close(&s);
}

// ---- threads

TEST(slots_are_given_again)
{
    struct segment s;
    if (!create(&s, 1 << 20, 10))
        return;
    struct qut_trace_thread *threads[4];
    for (uint32_t i = 0; i < 4; i++) {
        threads[i] = segment_thread_begin(&s, 100 + i, "a name longer than fits", 5);
        CHECK(threads[i] && threads[i]->uid == i + 1 && threads[i]->state == QUT_TRACE_THREAD_LIVE, "slot %u", i);
    }
    CHECK(strcmp(threads[0]->name, "a name longer t") == 0, "%s", threads[0]->name);
    segment_thread_rename(threads[0], "new");
    CHECK(strcmp(threads[0]->name, "new") == 0, "%s", threads[0]->name);
    CHECK(!segment_thread_begin(&s, 1, "x", 5), "a fifth of four");
    for (unsigned round = 0; round < 100; round++) {
        struct qut_trace_thread *thread = threads[round % 4];
        struct qut_trace_writer *writer = segment_begin(thread, 0, 0, 0);
        struct segment_sample sample = {.time_ns = 1000 + round * 1000, .kind = 1};
        for (int i = 0; i < 3; i++)
            segment_append(&s, thread, writer, &sample);
        segment_skip(writer);
        writer->counts.passed++;
        segment_add(writer, 3, 7);
        segment_cut(writer, QUT_TRACE_CUT_DEPTH);
        CHECK(segment_mark(&s, thread, writer, 1000, 0, 1, 0) == 0, "a mark");
        CHECK(segment_mark(&s, thread, writer, 1000, 256, 1, 0) < 0, "a mark of no kind");
        segment_end_of(thread);
        segment_thread_end(&s, thread, 10 + round);
        CHECK(thread->state == QUT_TRACE_THREAD_ENDED && thread->end_ns == 10 + round, "round %u", round);
        threads[round % 4] = segment_thread_begin(&s, 200 + round, "y", 5);
        if (!CHECK(threads[round % 4] == thread && thread->uid == 5 + round, "round %u", round))
            return;
        struct segment_sums sums;
        segment_sum(&s, &sums);
        CHECK(sums.counts.marks == 2 * (round + 1) && sums.counts.lost_marks == round + 1, "round %u: marks", round);
        CHECK(sums.counts.hits == 5 * (round + 1) && sums.stored == round + 1 && sums.merged == 2 * (round + 1) &&
                  sums.counts.throttled == 2 * (round + 1) && sums.totals[3] == 7 * (round + 1) &&
                  sums.under_way == 0 && sums.counts.cut[QUT_TRACE_CUT_DEPTH] == round + 1,
              "round %u: hits %llu stored %llu", round, (unsigned long long)sums.counts.hits,
              (unsigned long long)sums.stored);
    }
    segment_lose_unowned(&s, QUT_TRACE_LOST_THREADS);
    struct segment_sums sums;
    segment_sum(&s, &sums);
    CHECK(sums.counts.hits == 501 && sums.counts.lost[QUT_TRACE_LOST_THREADS] == 1, "%llu",
          (unsigned long long)sums.counts.hits);
    segment_close(&s);
}

int main(void)
{
    RUN(sections_follow_each_other);
    RUN(what_does_not_fit_is_refused);
    RUN(a_file_is_made_in_memory_only);
    RUN(nodes_are_found_again);
    RUN(a_full_tree_refuses_and_keeps);
    RUN(the_smallest_table_has_all_its_places);
    RUN(a_tree_grows_from_its_beginning);
    RUN(two_threads_get_the_same_nodes);
    RUN(who_comes_at_the_same_moment_gets_the_same_node);
    RUN(strings_are_kept_once);
    RUN(modules_get_a_place_in_code_space);
    RUN(slots_are_given_again);
    return tap_finish();
}
