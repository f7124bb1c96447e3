// SPDX-License-Identifier: Apache-2.0
// Maps as Prometheus reads them, to the byte.
#include "tracer/probe/prometheus.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/run_suite.h"

static struct probe_script script;
static struct bytecode_maps maps;

static void make(const char *text)
{
    struct probe_diagnostic why;
    ck_assert_msg(probe_compile(text, strlen(text), &script, &why) == 0, "%s", why.text);
    const struct qut_probe_image image = qut_probe_parts(script.image);
    bytecode_maps_lay_out(&maps, &image);
    maps.memory = calloc(maps.words, sizeof *maps.memory);
    ck_assert_ptr_nonnull(maps.memory);
}

static void check(struct probe_stacks *stacks, const char *expected)
{
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    ck_assert_int_eq(probe_show_prometheus(out, &script, &maps, stacks), 0);
    fclose(out);
    ck_assert_str_eq(shown, expected);
    free(shown);
    free(maps.memory);
    probe_script_free(&script);
}

static void add(uint32_t map, uint64_t key, int64_t value)
{
    bytecode_maps_aggregate(&maps, map, &key, (uint64_t)value);
}

#define LOST                                                                                                           \
    "# HELP qut_probes_lost_updates_total What had no room: too many keys.\n"                                          \
    "# TYPE qut_probes_lost_updates_total counter\n"

START_TEST(kinds_have_types)
{
    make("entry:f { @ = count(); @s[tid] = sum(arg0); @a[pid] = avg(arg0); @low = min(arg0) }");
    add(0, 0, 1);
    add(0, 0, 1);
    add(1, 5, -7);
    add(2, 9, 10);
    add(2, 9, 5);
    add(3, 0, -3);
    check(NULL, "# HELP qut_probe_total @ of the script: count().\n# TYPE qut_probe_total counter\nqut_probe_total 2\n"
                "# HELP qut_probe_s @s of the script: sum().\n# TYPE qut_probe_s gauge\nqut_probe_s{tid=\"5\"} -7\n"
                "# HELP qut_probe_a @a of the script: avg().\n# TYPE qut_probe_a summary\n"
                "qut_probe_a_sum{pid=\"9\"} 15\nqut_probe_a_count{pid=\"9\"} 2\n"
                "# HELP qut_probe_low @low of the script: min().\n# TYPE qut_probe_low gauge\nqut_probe_low -3\n" LOST
                "qut_probes_lost_updates_total{map=\"\"} 0\nqut_probes_lost_updates_total{map=\"s\"} 0\n"
                "qut_probes_lost_updates_total{map=\"a\"} 0\nqut_probes_lost_updates_total{map=\"low\"} 0\n");
}
END_TEST

START_TEST(histograms_have_the_same_buckets)
{
    make("entry:f { @h[tid] = hist(arg0); @l = lhist(arg0, 0, 30, 10) }");
    add(0, 1, -4);
    add(0, 1, 6);
    add(0, 2, 1);
    add(0, 2, INT64_MAX);
    for (int64_t value = -1; value <= 30; value += 10)
        add(1, 0, value);
    add(1, 0, 30);
    char *shown;
    size_t size;
    FILE *out = open_memstream(&shown, &size);
    ck_assert_int_eq(probe_show_prometheus(out, &script, &maps, NULL), 0);
    fclose(out);
    const char *one = strstr(shown, "qut_probe_h_bucket{tid=\"1\",le=\"-1\"} 1\n"
                                    "qut_probe_h_bucket{tid=\"1\",le=\"0\"} 1\n"
                                    "qut_probe_h_bucket{tid=\"1\",le=\"1\"} 1\n"
                                    "qut_probe_h_bucket{tid=\"1\",le=\"3\"} 1\n"
                                    "qut_probe_h_bucket{tid=\"1\",le=\"7\"} 2\n"
                                    "qut_probe_h_bucket{tid=\"1\",le=\"15\"} 2\n");
    ck_assert_msg(one != NULL, "%s", shown);
    ck_assert_ptr_nonnull(strstr(one, "qut_probe_h_bucket{tid=\"1\",le=\"4611686018427387903\"} 2\n"
                                      "qut_probe_h_bucket{tid=\"1\",le=\"+Inf\"} 2\n"
                                      "qut_probe_h_sum{tid=\"1\"} 2\nqut_probe_h_count{tid=\"1\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(shown, "qut_probe_h_bucket{tid=\"2\",le=\"4611686018427387903\"} 1\n"
                                        "qut_probe_h_bucket{tid=\"2\",le=\"+Inf\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(shown, "qut_probe_l_bucket{le=\"-1\"} 1\nqut_probe_l_bucket{le=\"9\"} 2\n"
                                        "qut_probe_l_bucket{le=\"19\"} 3\nqut_probe_l_bucket{le=\"29\"} 4\n"
                                        "qut_probe_l_bucket{le=\"+Inf\"} 5\nqut_probe_l_sum 86\n"
                                        "qut_probe_l_count 5\n"));
    free(shown);
    free(maps.memory);
    probe_script_free(&script);
}
END_TEST

static size_t find_one(struct probe_stacks *stacks, uint64_t number, const char *const **frames)
{
    static const char *const known[] = {"say<\"\\\n\xff\"> (x)", "main (x)"};
    (void)stacks;
    *frames = known;
    return number == 7 ? 2 : 0;
}

START_TEST(labels_are_escaped)
{
    struct probe_stacks known = {find_one};
    uint64_t key[3] = {0, 0, 7}; // the last part first
    make("entry:f { @[stack(2), str(arg0, 16)] = max(arg1); @last[arg0, arg0] = stack() }");
    memcpy(key, "a\"b\\c\n\xc3\xa4\xff", 9);
    bytecode_maps_aggregate(&maps, 0, key, 1);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){2, 1}, 7);
    bytecode_maps_aggregate(&maps, 1, (const uint64_t[]){2, 3}, 0);
    check(&known,
          "# HELP qut_probe @ of the script: max().\n# TYPE qut_probe gauge\n"
          "qut_probe{stack=\"main (x);say<\\\"\\\\\\n\xef\xbf\xbd\\\"> (x)\","
          "arg0=\"a\\\"b\\\\c?\xc3\xa4\xef\xbf\xbd\"} 1\n"
          "# HELP qut_probe_last @last of the script: the last value.\n# TYPE qut_probe_last gauge\n"
          "qut_probe_last{key1=\"3\",key2=\"2\",value=\"[no stack could be taken]\"} 1\n"
          "qut_probe_last{key1=\"1\",key2=\"2\",value=\"main (x);say<\\\"\\\\\\n\xef\xbf\xbd\\\"> (x)\"} 1\n" LOST
          "qut_probes_lost_updates_total{map=\"\"} 0\nqut_probes_lost_updates_total{map=\"last\"} 0\n");
}
END_TEST

START_TEST(no_two_metrics_have_a_name)
{
    make("entry:f { @ = count(); @total = max(arg0); @h = hist(arg0); @h_sum = max(arg0); @h_sum_ = max(arg0) }");
    check(NULL, "# HELP qut_probe_total @ of the script: count().\n# TYPE qut_probe_total counter\n"
                "# HELP qut_probe_total_ @total of the script: max().\n# TYPE qut_probe_total_ gauge\n"
                "# HELP qut_probe_h @h of the script: hist().\n# TYPE qut_probe_h histogram\n"
                "# HELP qut_probe_h_sum__ @h_sum of the script: max().\n# TYPE qut_probe_h_sum__ gauge\n"
                "# HELP qut_probe_h_sum_ @h_sum_ of the script: max().\n# TYPE qut_probe_h_sum_ gauge\n" LOST
                "qut_probes_lost_updates_total{map=\"\"} 0\nqut_probes_lost_updates_total{map=\"total\"} 0\n"
                "qut_probes_lost_updates_total{map=\"h\"} 0\nqut_probes_lost_updates_total{map=\"h_sum\"} 0\n"
                "qut_probes_lost_updates_total{map=\"h_sum_\"} 0\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prometheus");
    TCase *all = tcase_create("all");
    tcase_add_test(all, kinds_have_types);
    tcase_add_test(all, histograms_have_the_same_buckets);
    tcase_add_test(all, labels_are_escaped);
    tcase_add_test(all, no_two_metrics_have_a_name);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
