// SPDX-License-Identifier: Apache-2.0
// Whole libraries run with every function patched that can be, and give the results that they gave before. They are
// copies that only the test runs, and none that it is linked with: their own calls would go there.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/elf_builder.h"
#include "tests/support/run_suite.h"
#include "tests/unit/tracer/calls/patcher.h"

enum { INPUT_BYTES = 200000, OUTPUT_BYTES = 2 * INPUT_BYTES };

struct output {
    uint8_t bytes[OUTPUT_BYTES];
    size_t size;
};

static uint8_t input[INPUT_BYTES];

static void make_input(void)
{
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof input; i++) {
        state = state * 1664525 + 1013904223;
        input[i] = i % 7 ? (uint8_t) "the quick brown fox"[i % 19] : (uint8_t)(state >> 24);
    }
}

static void run_bzip2(const struct patcher *patcher, struct output *output)
{
    int (*compress)(char *, unsigned *, const char *, unsigned, int, int, int) =
        (int (*)(char *, unsigned *, const char *, unsigned, int, int, int))patcher_address(patcher,
                                                                                            "BZ2_bzBuffToBuffCompress");
    int (*decompress)(char *, unsigned *, const char *, unsigned, int, int) =
        (int (*)(char *, unsigned *, const char *, unsigned, int, int))patcher_address(patcher,
                                                                                       "BZ2_bzBuffToBuffDecompress");
    static char back[INPUT_BYTES];
    unsigned size = sizeof output->bytes, back_size = sizeof back;
    ck_assert_int_eq(compress((char *)output->bytes, &size, (const char *)input, sizeof input, 9, 0, 0), 0);
    ck_assert_int_eq(decompress(back, &back_size, (const char *)output->bytes, size, 0, 0), 0);
    ck_assert_mem_eq(back, input, sizeof input);
    output->size = size;
}

// Much of it is written by hand.
static void run_crypto(const struct patcher *patcher, struct output *output)
{
    static const char *const digests[] = {"SHA1", "SHA256", "SHA512"};
    for (unsigned i = 0; i < sizeof digests / sizeof *digests; i++) {
        uint8_t *(*digest)(const uint8_t *, size_t, uint8_t *) =
            (uint8_t * (*)(const uint8_t *, size_t, uint8_t *)) patcher_address(patcher, digests[i]);
        ck_assert(digest(input, sizeof input, output->bytes + i * 64) != NULL);
    }
    int (*set_key)(const uint8_t *, int, void *) =
        (int (*)(const uint8_t *, int, void *))patcher_address(patcher, "AES_set_encrypt_key");
    void (*encrypt)(const uint8_t *, uint8_t *, const void *) =
        (void (*)(const uint8_t *, uint8_t *, const void *))patcher_address(patcher, "AES_encrypt");
    uint64_t key[64];
    ck_assert_int_eq(set_key(input, 256, key), 0);
    for (unsigned i = 0; i < 100; i++)
        encrypt(input + i * 16, output->bytes + 256 + i * 16, key);
    output->size = 256 + 100 * 16;
}

// An interpreter, with computed jumps; it stays as it is between rounds.
static void run_python(const struct patcher *patcher, struct output *output)
{
    static const char program[] =
        "import sys, json, re, collections\n"
        "class A(Exception): pass\n"
        "def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
        "def gen(n):\n"
        "    for i in range(n):\n"
        "        try:\n"
        "            if i % 3 == 0: raise A(i)\n"
        "            yield i\n"
        "        except A as e: yield str(e)\n"
        "text = json.dumps([fib(15), list(gen(40)), sorted({k: v for k, v in zip('hello', range(5))}.items()),\n"
        "    re.sub('[aeiou]+', lambda m: m.group().upper(), 'the quick brown fox'), 2 ** 200 // 7 ** 31, 1.5 ** "
        "9.25])\n"
        "text = text + str(collections.Counter(text).most_common(5))\n"
        "digest = 0\n"
        "for c in text: digest = (digest * 31 + ord(c)) % (2 ** 61 - 1)\n"
        "sys.qut_digest = digest\n";
    void (*initialize)(int) = (void (*)(int))patcher_address(patcher, "Py_InitializeEx");
    int (*run)(const char *) = (int (*)(const char *))patcher_address(patcher, "PyRun_SimpleString");
    void *(*get)(const char *) = (void *(*)(const char *))patcher_address(patcher, "PySys_GetObject");
    long long (*number)(void *) = (long long (*)(void *))patcher_address(patcher, "PyLong_AsLongLong");
    initialize(0);
    ck_assert_int_eq(run(program), 0);
    long long digest = number(get("qut_digest"));
    memcpy(output->bytes, &digest, sizeof digest);
    output->size = sizeof digest;
}

static const struct library {
    const char *path;
    void (*run)(const struct patcher *, struct output *);
    unsigned entries_min;
} libraries[] = {
    {"/usr/lib/x86_64-linux-gnu/libbz2.so.1.0", run_bzip2, 10},
    {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", run_crypto, 100},
    {"/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", run_python, 50000},
};

START_TEST(results_are_the_same)
{
    const struct library *library = &libraries[_i];
    static struct output before, now;
    struct patcher patcher;
    char *directory = build_directory();
    if (patcher_open_copy(&patcher, library->path, directory)) {
        library->run(&patcher, &before);
        unsigned patched = patcher_patch(&patcher);
        library->run(&patcher, &now);
        patcher_restore(&patcher);
        ck_assert(now.size == before.size && memcmp(now.bytes, before.bytes, now.size) == 0);
        printf("%s: %u functions patched, %lu entries\n", library->path, patched, patcher_entries(&patcher));
        ck_assert_uint_ge(patcher_entries(&patcher), library->entries_min);
        library->run(&patcher, &now);
        ck_assert(now.size == before.size && memcmp(now.bytes, before.bytes, now.size) == 0);
    }
    build_remove(directory);
}
END_TEST

int main(void)
{
    make_input();
    Suite *suite = suite_create("libraries");
    TCase *tests = tcase_create("libraries");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, results_are_the_same, 0, sizeof libraries / sizeof *libraries);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
