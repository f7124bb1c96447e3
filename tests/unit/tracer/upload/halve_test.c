// SPDX-License-Identifier: Apache-2.0
// Requests in two, and in two again, of each form: nothing is lost and nothing is there twice; and bytes that are no
// request.
#include <stdlib.h>
#include <string.h>

#include "tests/support/golden/golden.h"
#include "tests/support/run_suite.h"
#include "tracer/export/protobuf.h"
#include "tracer/upload/halve_form.h"
#include "tracer/upload/inside.h"

enum { PROCESSES = 3, BODY_MAX = 1 << 20 };

// Where values are in a sample, by field numbers that are the formats', not the code's.
static const struct {
    enum upload_form form;
    unsigned inner[HALVE_LEVELS + 1];
    const struct halve_form *halves;
} forms[] = {{UPLOAD_OTLP, {1, 2, 2, 2, 4}, &halve_otlp}, {UPLOAD_PPROF, {1, 2, 1, 2, 2}, &halve_push}};
enum { FORMS = sizeof forms / sizeof *forms };
static const char half_id[] = "0123456789abcdef0123456789abcdef";

static uint8_t body[BODY_MAX];
static size_t body_bytes;

static int keep(void *context, const struct upload_request *request, struct base_error *error)
{
    (void)context, (void)error;
    ck_assert_uint_le(request->body.size, BODY_MAX);
    memcpy(body, request->body.data, request->body.size);
    body_bytes = request->body.size;
    return 0;
}

// The golden trace as of several processes: several profiles, the last one without samples.
static void make_body(enum upload_form form)
{
    struct trace trace;
    struct base_error error = {0};
    static struct trace_process processes[PROCESSES];
    const struct upload_wanted wanted = {.form = form, .max_bytes = BODY_MAX};
    golden_trace(&trace);
    for (size_t i = 0; i < PROCESSES; i++)
        processes[i] = (struct trace_process){.pid = (uint32_t)(100 + i), .command = "/bin/one of several"};
    for (size_t i = 0; i < trace.thread_count; i++) {
        const uint32_t of = (uint32_t)(i * PROCESSES / trace.thread_count);
        processes[of].first_thread = processes[of].thread_count ? processes[of].first_thread : i;
        processes[of].thread_count++;
        trace.threads[i].process = of;
    }
    trace.processes = processes;
    trace.process_count = PROCESSES;
    struct names *names = names_of(&trace, &(struct names_options){.no_files = true}, &error);
    ck_assert_ptr_nonnull(names);
    ck_assert_int_eq(upload_make(&trace, names, &wanted, keep, NULL, &error), 0);
    names_free(names);
    golden_free(&trace);
}

struct sums {
    uint64_t samples, value, profiles;
};

// Down to samples' values, by field numbers alone.
static void add_up(const unsigned *inner, struct base_bytes bytes, unsigned level, struct sums *sums)
{
    struct base_cursor cursor = base_cursor(bytes);
    while (base_cursor_left(&cursor)) {
        const uint64_t tag = base_read_uleb(&cursor);
        struct base_bytes inside = {.data = NULL};
        switch (tag & 7) {
        case PROTOBUF_VARINT: base_read_uleb(&cursor); break;
        case PROTOBUF_FIXED64: base_read_u64(&cursor); break;
        default: inside = base_read_bytes(&cursor, base_read_uleb(&cursor));
        }
        ck_assert(!cursor.failed);
        if (tag != ((uint64_t)inner[level] << 3 | PROTOBUF_LENGTH))
            continue;
        sums->profiles += level == 2;
        sums->samples += level == 3;
        if (level < 4) {
            add_up(inner, inside, level + 1, sums);
            continue;
        }
        struct base_cursor values = base_cursor(inside);
        while (base_cursor_left(&values))
            sums->value += base_read_uleb(&values);
    }
}

static struct sums sums_of(unsigned form, struct base_bytes bytes)
{
    struct sums sums = {0};
    add_up(forms[form].inner, bytes, 0, &sums);
    return sums;
}

// Halves until there is nothing to halve; how many there are in the end.
static uint64_t halve_all(unsigned form, struct base_bytes whole)
{
    const struct sums all = sums_of(form, whole);
    struct sums found = {0};
    uint64_t parts = 0;
    int result = 0;
    for (unsigned i = 0; i < 2 && result == 0; i++) {
        struct base_error error = {0};
        struct sink *sink = sink_in_memory();
        struct base_bytes half;
        result = upload_halve(forms[form].form, whole, i, half_id, sink, &error);
        ck_assert_int_ge(result, 0);
        half.data = sink_memory(sink, &half.size);
        if (result == 0) {
            const struct sums sums = sums_of(form, half);
            ck_assert_uint_le(half.size, whole.size);
            ck_assert_uint_eq(sums.samples, (all.samples + i) / 2);
            found.samples += sums.samples;
            found.value += sums.value;
            found.profiles += sums.profiles;
            parts += halve_all(form, half);
        }
        sink_close(sink, false, NULL);
    }
    if (result == 1) {
        ck_assert_uint_le(all.samples, 1);
        return 1;
    }
    ck_assert_uint_eq(found.samples, all.samples);
    ck_assert_uint_eq(found.value, all.value);
    ck_assert_uint_ge(found.profiles, all.profiles);
    ck_assert_uint_le(found.profiles, all.profiles + 1);
    return parts;
}

START_TEST(test_down_to_one)
{
    const unsigned form = (unsigned)_i;
    make_body(forms[form].form);
    const struct base_bytes whole = {body, body_bytes};
    const struct sums sums = sums_of(form, whole);
    ck_assert_uint_gt(sums.samples, 10);
    ck_assert(forms[form].form == UPLOAD_OTLP ? sums.profiles > 1 : sums.profiles == 1);
    ck_assert_uint_eq(upload_count_samples(forms[form].form, whole), sums.samples);
    ck_assert_uint_eq(halve_all(form, whole), sums.samples);
}
END_TEST

// How many entries the tables have, wherever these are, and how many bytes.
static uint64_t count_entries(const struct halve_form *form, struct base_bytes bytes, unsigned level)
{
    struct base_cursor cursor = base_cursor(bytes);
    uint64_t count = 0;
    while (base_cursor_left(&cursor)) {
        const uint64_t tag = base_read_uleb(&cursor);
        if ((tag & 7) != PROTOBUF_LENGTH) {
            if ((tag & 7) == PROTOBUF_VARINT)
                base_read_uleb(&cursor);
            else
                base_read_u64(&cursor);
            continue;
        }
        const struct base_bytes inside = base_read_bytes(&cursor, base_read_uleb(&cursor));
        const bool is_here = form->dictionary ? level == 1 : level == HALVE_LEVELS - 1;
        for (unsigned i = 0; is_here && i < HALVE_TABLES; i++)
            count += form->tables[i].table && form->tables[i].table == tag >> 3;
        const unsigned down = form->dictionary ? form->dictionary : form->inner[level];
        if (!is_here && tag >> 3 == down)
            count += count_entries(form, inside, level + 1);
    }
    return count;
}

// A half has only what its samples need: with whole tables it could not become short.
START_TEST(test_tables_shrink)
{
    const unsigned form = (unsigned)_i;
    struct base_bytes part;
    make_body(forms[form].form);
    const uint64_t whole_entries = count_entries(forms[form].halves, (struct base_bytes){body, body_bytes}, 0);
    for (int result = 0; result == 0;) {
        struct base_error error = {0};
        struct sink *sink = sink_in_memory();
        result = upload_halve(forms[form].form, (struct base_bytes){body, body_bytes}, 0, half_id, sink, &error);
        part.data = sink_memory(sink, &part.size);
        if (result == 0) {
            memcpy(body, part.data, part.size);
            body_bytes = part.size;
        }
        sink_close(sink, false, NULL);
    }
    const uint64_t entries = count_entries(forms[form].halves, (struct base_bytes){body, body_bytes}, 0);
    ck_assert_uint_gt(entries, 3);
    ck_assert_uint_lt(entries, whole_entries);
}
END_TEST

START_TEST(test_file_has_no_halves)
{
    ck_assert_uint_eq(upload_count_samples(UPLOAD_FILE, (struct base_bytes){body, 8}), 0);
    ck_assert_int_eq(upload_halve(UPLOAD_FILE, (struct base_bytes){body, 8}, 0, half_id, NULL, NULL), 1);
}
END_TEST

static void try_halves(unsigned form, struct base_bytes bytes)
{
    for (unsigned i = 0; i < 2; i++) {
        struct base_error error = {0};
        struct sink *sink = sink_in_memory();
        const int result = upload_halve(forms[form].form, bytes, i, half_id, sink, &error);
        ck_assert(result >= 0 || error.reason == BASE_ERR_MALFORMED);
        sink_close(sink, false, NULL);
    }
}

// Each byte another one, and each beginning: in memory that ends where the bytes do.
START_TEST(test_no_request)
{
    static const uint8_t others[] = {0, 1, 0x7f, 0x80, 0xff};
    const unsigned form = (unsigned)_i;
    unsigned refused = 0;
    make_body(forms[form].form);
    for (size_t size = 0; size < body_bytes; size++) {
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, body, size);
        try_halves(form, (struct base_bytes){copy, size});
        free(copy);
    }
    for (size_t at = 0; at < body_bytes; at++)
        for (size_t i = 0; i < sizeof others; i++) {
            const uint8_t before = body[at];
            struct base_error error = {0};
            body[at] = others[i];
            try_halves(form, (struct base_bytes){body, body_bytes});
            struct sink *sink = sink_in_memory();
            refused +=
                upload_halve(forms[form].form, (struct base_bytes){body, body_bytes}, 0, half_id, sink, &error) < 0;
            sink_close(sink, false, NULL);
            body[at] = before;
        }
    ck_assert_uint_gt(refused, body_bytes);
    ck_assert_uint_eq(halve_all(form, (struct base_bytes){body, body_bytes}),
                      sums_of(form, (struct base_bytes){body, body_bytes}).samples);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("halve");
    TCase *tests = tcase_create("halve");
    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, test_down_to_one, 0, FORMS);
    tcase_add_loop_test(tests, test_tables_shrink, 0, FORMS);
    tcase_add_test(tests, test_file_has_no_halves);
    tcase_add_loop_test(tests, test_no_request, 0, FORMS);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
