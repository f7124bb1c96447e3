// SPDX-License-Identifier: Apache-2.0
// Arguments by name, of functions whose compiler hands them over: scripts say what it has put there. Arguments: the
// subjects, libraries with the same functions.
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytecode/run.h"
#include "subject.h"
#include "tests/support/run_suite.h"
#include "tracer/probe/script.h"
#include "tracer/prototypes/set.h"

static int subject_count;
static char **subject_paths;

// ---- a subject

struct subject {
    const char *path;
    void *library;
    const struct subject_table *table;
    uint64_t base;
};

static void open_subject(struct subject *subject, const char *path)
{
    Dl_info info;
    subject->path = path;
    subject->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(subject->library != NULL, "%s", dlerror());
    subject->table = dlsym(subject->library, "subject_table");
    ck_assert(dladdr(subject->table, &info) != 0);
    subject->base = (uint64_t)(uintptr_t)info.dli_fbase;
}

static uint64_t vaddr_of(const struct subject *subject, const struct subject_case *one)
{
    return (uint64_t)(uintptr_t)one->entry - subject->base;
}

// Patterns are names here, with commas between them.
static int find(void *context, const char *pattern, struct prototypes_set *set)
{
    const struct subject *subject = context;
    const size_t length = strlen(pattern);
    for (unsigned i = 0; i < subject->table->count; i++) {
        const struct subject_case *one = &subject->table->cases[i];
        const char *found = strstr(pattern, one->function);
        const size_t own = strlen(one->function);
        if (found && (found == pattern || found[-1] == '+') &&
            ((size_t)(found - pattern) + own == length || found[own] == '+') &&
            prototypes_set_add(set, subject->path, vaddr_of(subject, one), one->function) != 0)
            return -1;
    }
    return 0;
}

// ---- what a program does: it reads this process' memory, and adds one value to a map

struct host {
    struct bytecode_host host;
    uint64_t sum;
};

static uint64_t answer(struct bytecode_host *base, uint32_t helper, uint64_t a, uint64_t b, uint64_t c)
{
    struct host *host = (struct host *)(void *)base;
    char *to = (char *)(uintptr_t)a;
    const char *from = (const char *)(uintptr_t)c;
    if (helper == QUT_PROBE_AGGREGATE)
        host->sum += c;
    if (helper != QUT_PROBE_READ && helper != QUT_PROBE_STRING)
        return 0;
    memset(to, 0, (size_t)(b + 7) / 8 * 8);
    if (c < 1 << 16)
        return 0;
    if (helper == QUT_PROBE_READ)
        memcpy(to, from, (size_t)b);
    for (size_t i = 0; helper == QUT_PROBE_STRING && i + 1 < b && (to[i] = from[i]); i++)
        continue;
    return 1;
}

static int compile(const struct subject *subject, const char *script, struct probe_script *compiled,
                   struct probe_diagnostic *why)
{
    struct subject copy = *subject;
    struct prototypes_set *set = prototypes_set_new(find, &copy, NULL);
    ck_assert_ptr_nonnull(set);
    const int result = probe_compile_with(script, strlen(script), prototypes_set_resolver(set), compiled, why);
    prototypes_set_free(set);
    return result;
}

static void check_value(const struct subject *subject, const struct subject_case *one,
                        const struct subject_fields *fields, const struct subject_value *value)
{
    char script[256];
    struct probe_script compiled;
    struct probe_diagnostic why;
    struct host host = {.host = {answer}};
    uint64_t values[QUT_PROBE_FIELD_END] = {0};
    snprintf(script, sizeof script, "%s:%s { @ = sum(%s) }", strstr(value->text, "retval") ? "return" : "entry",
             one->function, value->text);
    ck_assert_msg(compile(subject, script, &compiled, &why) == 0, "%s: %s: %s", subject->path, script, why.text);
    memcpy(values, fields->arguments, sizeof fields->arguments);
    values[QUT_PROBE_RETVAL] = fields->result;
    const struct qut_probe_image image = qut_probe_parts(compiled.image);
    ck_assert_uint_eq(bytecode_run(image.instructions, values, &host.host), 0);
    ck_assert_msg((int64_t)host.sum == value->value, "%s: %s is %lld, not %lld", subject->path, script,
                  (long long)host.sum, (long long)value->value);
    probe_script_free(&compiled);
}

START_TEST(values_are_what_the_compiler_put_there)
{
    for (int i = 0; i < subject_count; i++) {
        struct subject subject;
        open_subject(&subject, subject_paths[i]);
        for (unsigned at = 0; at < subject.table->count; at++) {
            const struct subject_case *one = &subject.table->cases[at];
            struct subject_fields fields = {{0}, 0};
            one->call(&fields);
            for (const struct subject_value *value = one->values; value->text; value++)
                check_value(&subject, one, &fields, value);
        }
        dlclose(subject.library);
    }
}
END_TEST

START_TEST(prototypes_are_shown_as_they_are_declared)
{
    for (int i = 0; i < subject_count; i++) {
        struct subject subject;
        struct base_error error = {.reason = BASE_OK};
        open_subject(&subject, subject_paths[i]);
        struct prototypes *prototypes = prototypes_open(subject.path, NULL, &error);
        ck_assert_msg(prototypes != NULL, "%s: %s", subject.path, error.detail);
        for (unsigned at = 0; at < subject.table->count; at++) {
            const struct subject_case *one = &subject.table->cases[at];
            char *text = prototypes_text(prototypes, vaddr_of(&subject, one), NULL, &error);
            ck_assert_ptr_nonnull(text);
            if (one->prototype)
                ck_assert_str_eq(text, one->prototype);
            free(text);
            ck_assert_ptr_null(prototypes_text(prototypes, vaddr_of(&subject, one) + 1, NULL, &error));
        }
        prototypes_close(prototypes);
        dlclose(subject.library);
    }
}
END_TEST

// ---- mistakes

static const struct {
    const char *script, *said;
} mistakes[] = {
    {"entry:plain { @ = sum(args->fdd) }",
     "x:1:29: it has no argument of this name: did you mean \"fd\"?\nentry:plain { @ = sum(args->fdd) }\n"
     "                            ^~~\n"},
    {"entry:floats { @ = sum(args->what) }",
     "x:1:30: it has no argument of this name: there are a, n, b, m, both, port\n"
     "entry:floats { @ = sum(args->what) }\n                             ^~~~\n"},
    {"entry:floats { @ = sum(args->a) }",
     "x:1:30: it is in a vector register\nentry:floats { @ = sum(args->a) }\n                             ^\n"},
    {"entry:in_memory { @ = sum(args->l.a[0]) }",
     "x:1:33: it is handed over on the stack\nentry:in_memory { @ = sum(args->l.a[0]) }\n"
     "                                ^\n"},
    {"entry:plain { @ = sum(args->last) }",
     "x:1:29: it is handed over on the stack\nentry:plain { @ = sum(args->last) }\n"
     "                            ^~~~\n"},
    {"entry:nodes { @ = sum(args->node->txt) }",
     "x:1:35: struct node has no member of this name: did you mean \"text\"?\n"
     "entry:nodes { @ = sum(args->node->txt) }\n                                  ^~~\n"},
    {"entry:nodes { @ = sum(args->node->at.z) }",
     "x:1:38: struct point has no member of this name: there are x, y\n"
     "entry:nodes { @ = sum(args->node->at.z) }\n                                     ^\n"},
    {"entry:nodes { @ = sum(args->node.at) }",
     "x:1:34: struct node *: a pointer: its members follow \"->\"\nentry:nodes { @ = sum(args->node.at) }\n"
     "                                 ^~\n"},
    {"entry:nodes { @ = sum(args->node->at->x) }",
     "x:1:39: struct point: no pointer: its members follow \".\"\nentry:nodes { @ = sum(args->node->at->x) }\n"
     "                                      ^\n"},
    {"entry:nodes { @ = sum(args->node->at) }",
     "x:1:35: struct point: which of its members?\nentry:nodes { @ = sum(args->node->at) }\n"
     "                                  ^~\n"},
    {"entry:nodes { @ = sum(args->node->table[3]) }",
     "x:1:41: this array has 3 elements\nentry:nodes { @ = sum(args->node->table[3]) }\n"
     "                                        ^\n"},
    {"entry:nodes { @ = sum(args->node->weight) }",
     "x:1:35: double: floating point, which probes do not compute with\n"
     "entry:nodes { @ = sum(args->node->weight) }\n                                  ^~~~~~\n"},
    {"entry:nodes { @ = sum(args->data[0]) }",
     "x:1:34: how large its elements are is not known\nentry:nodes { @ = sum(args->data[0]) }\n"
     "                                 ^\n"},
    {"entry:nodes { @ = sum(args->node->narrow.x) }",
     "x:1:42: a bit-field leads nowhere\nentry:nodes { @ = sum(args->node->narrow.x) }\n"
     "                                         ^\n"},
    {"entry:nodes { @ = sum(args->all[arg1]) }",
     "x:1:33: an index must be a constant\nentry:nodes { @ = sum(args->all[arg1]) }\n"
     "                                ^~~~\n"},
    {"entry:plain { @ = sum(args) }",
     "x:1:27: expected \"->\" and an argument's name, not )\nentry:plain { @ = sum(args) }\n"
     "                          ^\n"},
    {"return:plain { @ = sum(args->fd) }",
     "x:1:24: args is known in \"entry\" only\nreturn:plain { @ = sum(args->fd) }\n                       ^~~~\n"},
    {"entry:plain, entry:floats { @ = sum(args->fd) }",
     "x:1:43: in floats: it has no argument of this name: there are a, n, b, m, both, port\n"
     "entry:plain, entry:floats { @ = sum(args->fd) }\n                                          ^~\n"},
    {"entry:floats+structs { @ = sum(args->n) }",
     "x:1:38: it is not the same in floats and structs: name fewer functions\n"
     "entry:floats+structs { @ = sum(args->n) }\n                                     ^\n"},
    {"entry:another { @ = sum(args->n) }",
     "x:1:31: no function is meant whose arguments are known\nentry:another { @ = sum(args->n) }\n"
     "                              ^\n"},
    {"entry:nothing { @ = sum(args->n) }",
     "x:1:31: it has no arguments\nentry:nothing { @ = sum(args->n) }\n                              ^\n"},
    {"return:nothing { @ = sum(retval->n) }",
     "x:1:34: it returns nothing\nreturn:nothing { @ = sum(retval->n) }\n                                 ^\n"},
    {"return:plain { @ = sum(retval->n) }",
     "x:1:32: int: this has no members\nreturn:plain { @ = sum(retval->n) }\n                               ^\n"},
};

static void check_mistake(const struct subject *subject, size_t at)
{
    struct probe_script compiled;
    struct probe_diagnostic why;
    const char *script = mistakes[at].script;
    ck_assert_msg(compile(subject, script, &compiled, &why) == -1, "%s", script);
    char *shown = probe_diagnostic_show(&why, "x", script, strlen(script));
    ck_assert_str_eq(shown, mistakes[at].said);
    free(shown);
    probe_script_free(&compiled);
}

START_TEST(mistakes_are_pointed_at)
{
    struct subject subject;
    open_subject(&subject, subject_paths[0]);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        check_mistake(&subject, i);
    dlclose(subject.library);
}
END_TEST

START_TEST(the_same_argument_of_several_functions_is_one)
{
    struct subject subject;
    struct probe_script compiled;
    struct probe_diagnostic why;
    open_subject(&subject, subject_paths[0]);
    // In both the first one, and an int.
    ck_assert_msg(compile(&subject, "entry:wide+structs, entry:in_memory { @ = sum(1) }", &compiled, &why) == 0, "%s",
                  why.text);
    probe_script_free(&compiled);
    ck_assert_msg(compile(&subject, "entry:plain+nodes { @ = sum(arg0) }", &compiled, &why) == 0, "%s", why.text);
    probe_script_free(&compiled);
    ck_assert_msg(
        compile(&subject, "entry:floats { @ = sum(args->n) } entry:structs { @ = sum(args->n) }", &compiled, &why) == 0,
        "%s", why.text);
    probe_script_free(&compiled);
    dlclose(subject.library);
}
END_TEST

// What a compiler has changed is told by its symbol only.
START_TEST(changed_functions_are_refused)
{
    struct subject subject;
    struct base_error error = {.reason = BASE_OK};
    struct probe_recipe recipe;
    struct probe_unresolved why;
    const struct probe_path path = {.count = 1, .steps = {{PROBE_STEP_ARGUMENT, "fd", 2, 0}}};
    open_subject(&subject, subject_paths[0]);
    struct prototypes *prototypes = prototypes_open(subject.path, NULL, &error);
    const uint64_t entry = vaddr_of(&subject, &subject.table->cases[0]);
    ck_assert_int_eq(prototypes_resolve(prototypes, entry, "plain", &path, &recipe, &why), 0);
    ck_assert_int_eq(prototypes_resolve(prototypes, entry, "plain.isra.0", &path, &recipe, &why), -1);
    ck_assert_str_eq(why.text, "the compiler has changed how its arguments are handed over");
    ck_assert_int_eq(prototypes_resolve(prototypes, entry + 1, "plain", &path, &recipe, &why), -1);
    ck_assert_str_eq(why.text, "debug information does not have this function");
    prototypes_close(prototypes);
    ck_assert_ptr_null(prototypes_open("/nonexistent/file", NULL, &error));
    ck_assert_int_eq(error.reason, BASE_ERR_IO);
    dlclose(subject.library);
}
END_TEST

// ---- debug information that lies

enum { ROUNDS = 60 };

struct bytes {
    uint8_t *data;
    size_t size;
};

static struct bytes read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct bytes bytes = {malloc(1 << 20), 0};
    ck_assert(file && bytes.data);
    bytes.size = fread(bytes.data, 1, 1 << 20, file);
    ck_assert(bytes.size > 4096 && bytes.size < 1 << 20);
    fclose(file);
    return bytes;
}

// What types and functions are said in.
static unsigned find_sections(const struct bytes *file, size_t offsets[8], size_t sizes[8])
{
    const Elf64_Ehdr *header = (const void *)file->data;
    const Elf64_Shdr *sections = (const void *)(file->data + header->e_shoff);
    const char *names = (const char *)file->data + sections[header->e_shstrndx].sh_offset;
    unsigned count = 0;
    for (unsigned i = 0; i < header->e_shnum && count < 8; i++)
        if (strcmp(names + sections[i].sh_name, ".debug_info") == 0 ||
            strcmp(names + sections[i].sh_name, ".debug_abbrev") == 0) {
            offsets[count] = sections[i].sh_offset;
            sizes[count++] = sections[i].sh_size;
        }
    return count;
}

static void ask_all(const struct subject *subject, const char *path)
{
    struct base_error error = {.reason = BASE_OK};
    struct probe_script compiled;
    struct probe_diagnostic why;
    struct subject spoiled = *subject;
    struct prototypes *prototypes = prototypes_open(path, NULL, &error);
    ck_assert(prototypes || error.detail[0]);
    for (unsigned at = 0; prototypes && at < subject->table->count; at++)
        free(prototypes_text(prototypes, vaddr_of(subject, &subject->table->cases[at]), NULL, NULL));
    prototypes_close(prototypes);
    spoiled.path = path;
    if (compile(&spoiled,
                "entry:nodes { @a = sum(args->node->next->table[1][2]); @b = count(); } entry:structs { @c = "
                "sum(args->s.more) } return:in_memory { @d = sum(retval.a[1]) } entry:halves { @e = sum(args->m.n) }",
                &compiled, &why) != 0)
        ck_assert(why.text[0] && !strstr(why.text, "a mistake of ours"));
    probe_script_free(&compiled);
}

START_TEST(lies_are_errors)
{
    uint64_t random = 1;
    char path[64];
    const int fd = memfd_create("spoiled", 0);
    ck_assert_int_ge(fd, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (int i = 0; i < subject_count; i++) {
        struct subject subject;
        size_t offsets[8], sizes[8];
        open_subject(&subject, subject_paths[i]);
        const struct bytes file = read_file(subject.path);
        uint8_t *spoiled = malloc(file.size);
        const unsigned sections = find_sections(&file, offsets, sizes);
        ck_assert(spoiled && sections >= 2);
        for (unsigned round = 0; round < ROUNDS; round++) {
            memcpy(spoiled, file.data, file.size);
            for (unsigned change = 0; change < 1 + round % 8; change++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                const unsigned section = (unsigned)(random >> 40) % sections;
                spoiled[offsets[section] + (random >> 20) % sizes[section]] = (uint8_t)(random >> 56);
            }
            ck_assert(pwrite(fd, spoiled, file.size, 0) == (ssize_t)file.size);
            ck_assert(ftruncate(fd, (off_t)file.size) == 0);
            ask_all(&subject, path);
        }
        free(spoiled);
        free(file.data);
        dlclose(subject.library);
    }
    close(fd);
}
END_TEST

int main(int argc, char **argv)
{
    subject_count = argc - 1;
    subject_paths = argv + 1;
    Suite *suite = suite_create("prototypes");
    TCase *tests = tcase_create("prototypes");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, values_are_what_the_compiler_put_there);
    tcase_add_test(tests, prototypes_are_shown_as_they_are_declared);
    tcase_add_test(tests, mistakes_are_pointed_at);
    tcase_add_test(tests, the_same_argument_of_several_functions_is_one);
    tcase_add_test(tests, changed_functions_are_refused);
    tcase_add_test(tests, lies_are_errors);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
