// SPDX-License-Identifier: Apache-2.0
// Modules that come and go while threads look at the list. Tables are not made here: the compiler notes what it is
// asked for and has none.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <qut/local.h>

#include "libqut/modules/modules.h"
#include "libqut/os/os.h"
#include "tests/support/tap.h"

enum { PATIENCE_MS = 10000 };

static struct {
    char path[4096]; // of the request that the test looks for
    size_t memory_size;
    uint32_t build_id_size, flags;
    bool is_elf;
    int count;
} asked;

static int note_request(void *context, const struct qut_compile_request *request, void **table, size_t *table_size,
                        char *reason, size_t reason_size)
{
    (void)table, (void)table_size;
    if (context && strstr(request->path, context)) {
        snprintf(asked.path, sizeof asked.path, "%s", request->path);
        asked.memory_size = request->memory_size;
        asked.build_id_size = request->build_id_size;
        asked.flags = request->flags;
        asked.is_elf = request->memory && memcmp(request->memory, "\177ELF", 4) == 0;
        asked.count++;
    }
    snprintf(reason, reason_size, "none here");
    return -1;
}

static bool start(const char *wanted, uint32_t flags)
{
    memset(&asked, 0, sizeof asked);
    struct qut_options options = {
        .size = sizeof options, .compile = note_request, .compile_context = (void *)wanted, .flags = flags};
    int result = qut_start(&options);
    return CHECK(result == 0, "%d", result) && CHECK(qut_wait(PATIENCE_MS) == ((flags & 1) ? -ETIMEDOUT : 0), "waited");
}

// Whether a walk would take what the list says of pc.
static bool known(uintptr_t pc, uintptr_t *canary, uint32_t *epoch)
{
    const struct modules *modules = modules_enter(runtime_thread_self());
    const struct module *module = modules ? modules_at(modules, pc) : NULL;
    bool holds = module && (modules_up_to_date(modules) || module_confirm(module, pc));
    if (epoch)
        *epoch = modules ? modules->epoch : 0;
    if (canary)
        *canary = module ? module->canary_address : 0;
    modules_leave(runtime_thread_self());
    return holds;
}

static void *load(const char *path, uintptr_t *pc)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *pc = library ? (uintptr_t)dlsym(library, "answer") : 0;
    CHECK(*pc != 0, "%s: %s", path, dlerror());
    return library;
}

TEST(starts_and_stops_again_and_again)
{
    CHECK(qut_refresh() == -EINVAL, "not started");
    for (int i = 0; i < 100; i++) {
        struct qut_options options = {.size = sizeof options, .compile = note_request};
        int result = qut_start(&options);
        if (!CHECK(result == 0, "%d: %d", i, result))
            return;
        CHECK(qut_start(&options) == -EALREADY, "%d", i);
        if (i % 3 == 0)
            CHECK(qut_wait(PATIENCE_MS) == 0, "%d", i);
        qut_stop();
        CHECK(!atomic_load(&modules_current), "%d", i);
    }
    qut_stop();
    struct qut_options bad = {.size = 1};
    CHECK(qut_start(&bad) == -EINVAL && qut_start(NULL) == -EINVAL, "bad options");
}

static int nothing(void *context, const struct os_module *module)
{
    (void)context, (void)module;
    return 0;
}

TEST(a_library_is_met_soon)
{
    uintptr_t pc;
    if (!start(NAMED1, 0))
        return;
    CHECK(known((uintptr_t)start, NULL, NULL), "the program itself");
    struct os_generation before;
    CHECK(os_each_module(nothing, NULL, &before) == 0, "listed");
    CHECK(os_is_generation(&before), "there is a generation");
    uint64_t start_ns = os_now_ns();
    void *library = load(NAMED1, &pc);
    uint64_t loaded_ns = os_now_ns();
    CHECK(!os_is_generation(&before), "dlopen changes it");
    modules_want_refresh();
    while (!known(pc, NULL, NULL) && os_now_ns() - loaded_ns < PATIENCE_MS * UINT64_C(1000000))
        modules_want_refresh();
    printf("# dlopen %.3f ms, met %.3f ms later\n", (double)(loaded_ns - start_ns) / 1e6,
           (double)(os_now_ns() - loaded_ns) / 1e6);
    CHECK(known(pc, NULL, NULL), "it is in the list");
    CHECK(qut_wait(PATIENCE_MS) == 0 && asked.count == 1, "asked %d times", asked.count);
    CHECK(strcmp(asked.path, NAMED1) == 0 && asked.memory_size == 0 && asked.build_id_size == 20, "%s %zu %u",
          asked.path, asked.memory_size, asked.build_id_size);
    if (library)
        dlclose(library);
    CHECK(qut_refresh() >= 0 && !known(pc, NULL, NULL), "gone");
    qut_stop();
}

TEST(a_module_says_why_it_has_no_table)
{
    struct qut_loaded_module module;
    uintptr_t pc;
    memset(&module, 0xff, sizeof module);
    CHECK(qut_module_at((uintptr_t)start, &module, sizeof module) == 0 && module.end == 0, "not started");
    if (!start("nothing", QUT_START_NO_THREAD))
        return;
    void *library = load(NAMED1, &pc);
    CHECK(qut_module_at(pc, &module, sizeof module) == 0, "nobody looked");
    CHECK(qut_module_at((uintptr_t)start, &module, sizeof module) == 1 && !module.has_table, "the program");
    CHECK(strcmp(module.reason, "its table is being made") == 0 && !*module.path, "%s %s", module.reason, module.path);
    qut_refresh();
    CHECK(qut_module_at(pc, &module, sizeof module) == 1 && !module.has_table, "the library");
    CHECK(strcmp(module.reason, "none here") == 0, "%s", module.reason);
    CHECK(strcmp(module.path, NAMED1) == 0 && module.build_id_size == 20, "%s %u", module.path, module.build_id_size);
    CHECK(module.start <= pc && pc < module.end && module.load_bias <= module.start, "0x%zx in [0x%zx, 0x%zx)",
          (size_t)pc, (size_t)module.start, (size_t)module.end);
    uintptr_t end = module.end;
    memset(&module, 0xff, sizeof module);
    CHECK(qut_module_at(end - 1, &module, offsetof(struct qut_loaded_module, load_bias)) == 1 && module.end == end &&
              module.load_bias == UINT64_MAX,
          "an older caller's");
    CHECK(qut_module_at(0, &module, sizeof module) == 0 && qut_module_at(UINTPTR_MAX, &module, sizeof module) == 0 &&
              qut_module_at((uintptr_t)&module, &module, sizeof module) == 0,
          "no code");
    if (library)
        dlclose(library);
    qut_stop();
}

static void replace(const char *first, const char *second)
{
    uintptr_t pc, other_pc;
    uint32_t epoch = 0, other_epoch = 0;
    if (!start(NULL, QUT_START_NO_THREAD))
        return;
    void *library = load(first, &pc);
    qut_refresh();
    CHECK(known(pc, NULL, &epoch), "%s", first);
    if (library)
        dlclose(library);
    library = load(second, &other_pc);
    if (pc == other_pc)
        CHECK(!known(pc, NULL, NULL), "%s stands where %s stood", second, first);
    else
        printf("# another address: nothing to confuse\n");
    qut_refresh();
    CHECK(known(other_pc, NULL, &other_epoch) && other_epoch != epoch, "epoch %u, %u", epoch, other_epoch);
    struct qut_stats stats;
    qut_get_stats(&stats, sizeof stats);
    CHECK(stats.pending_count == 0, "%d pending", (int)stats.pending_count);
    if (library)
        dlclose(library);
    qut_stop();
}

// At first words of the loader's are taken for a count that only equal it. One library for another tells the two counts
// apart: as many modules as before, but one more was added.
TEST(words_that_are_no_counts_are_told_no_more)
{
    uintptr_t pc;
    struct os_generation first, last, again;
    os_each_module(nothing, NULL, &first);
    void *library = load(NAMED1, &pc);
    CHECK(!os_is_generation(&first), "dlopen changes it");
    if (library)
        dlclose(library);
    library = load(NAMED2, &pc);
    CHECK(!os_is_generation(&first), "dlclose, dlopen too");
    os_each_module(nothing, NULL, &last);
    os_each_module(nothing, NULL, &again);
    CHECK(os_is_generation(&last) && last.word_count > 0, "known at the first listing");
    CHECK(last.word_count == again.word_count, "%u words, then %u", last.word_count, again.word_count);
    for (uint32_t i = 0; i < last.word_count; i++)
        for (uint32_t j = 0; j < i; j++)
            CHECK(last.words[i].address != last.words[j].address, "word %u is word %u", i, j);
    if (library)
        dlclose(library);
    CHECK(!os_is_generation(&last), "dlclose changes it");
}

TEST(another_library_at_the_same_address_is_noticed)
{
    replace(NAMED1, NAMED2);
}

TEST(even_without_build_ids)
{
    // Same address, same link map, same headers: only their contents differ.
    replace(NAMELESS1, NAMELESS2);
}

TEST(an_oat_file_is_known_without_build_id)
{
    uintptr_t pc, other_pc;
    struct qut_loaded_module module;
    replace(OAT1, OAT2);
    if (!start(OAT1, QUT_START_NO_THREAD))
        return;
    void *library = load(OAT1, &pc);
    qut_refresh();
    CHECK(asked.count == 1 && asked.flags == QUT_COMPILE_OAT_IDENTITY && asked.build_id_size == 32, "%d %u %u",
          asked.count, asked.flags, asked.build_id_size);
    CHECK(qut_module_at(pc, &module, sizeof module) == 1 && module.build_id_size == 0, "it has no build-id");
    void *other = load(NAMED1, &other_pc);
    CHECK(known(pc, NULL, NULL), "confirmed, though the list is old");
    if (other)
        dlclose(other);
    if (library)
        dlclose(library);
    qut_stop();
}

TEST(a_library_whose_file_is_gone_is_read_from_memory)
{
    char copy[] = "/tmp/qut-gone-XXXXXX", command[8192];
    int fd = mkstemp(copy);
    if (!CHECK(fd >= 0, "%s", strerror(errno)))
        return;
    close(fd);
    snprintf(command, sizeof command, "cp '%s' %s", NAMED1, copy);
    uintptr_t pc;
    if (CHECK(system(command) == 0, "%s", command) && start("qut-gone", QUT_START_NO_THREAD)) {
        void *library = load(copy, &pc);
        unlink(copy);
        qut_refresh();
        CHECK(asked.count == 1 && asked.is_elf && asked.memory_size > 4096, "%d %d %zu", asked.count, asked.is_elf,
              asked.memory_size);
        if (library)
            dlclose(library);
    }
    qut_stop();
    unlink(copy);
}

static _Atomic bool done;

static void *look(void *registered)
{
    if (registered)
        qut_thread_register();
    size_t sum = 0;
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        const struct modules *modules = modules_enter(runtime_thread_self());
        for (size_t i = 0; modules && i < modules->count; i++)
            sum += modules->items[i].end - modules->items[i].start;
        modules_leave(runtime_thread_self());
    }
    return (void *)sum;
}

TEST(lists_change_while_threads_read_them)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uintptr_t pc;
    if (!start(NULL, 0))
        return;
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look, (void *)(i & 1));
    for (int i = 0; i < 200; i++) {
        void *library = load(i & 1 ? NAMED1 : NAMED2, &pc);
        CHECK(qut_refresh() >= 0 && known(pc, NULL, NULL), "round %d", i);
        if (library)
            dlclose(library);
        if (i % 20 == 19) {
            qut_stop();
            start(NULL, 0);
        }
    }
    atomic_store(&done, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    qut_stop();
}

TEST(a_child_goes_on)
{
#ifdef OS_FENCES_ARE_FULL
    SKIP("ThreadSanitizer does not allow threads after fork");
#endif
    if (!start(NULL, 0))
        return;
    pid_t child = fork();
    if (child == 0) {
        bool good = known((uintptr_t)start, NULL, NULL) && qut_refresh() >= 0 && qut_wait(PATIENCE_MS) == 0;
        qut_stop();
        struct qut_options options = {.size = sizeof options, .compile = note_request};
        good = good && qut_start(&options) == 0 && qut_wait(PATIENCE_MS) == 0;
        qut_stop();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, "0x%x", (unsigned)status);
    CHECK(qut_refresh() >= 0, "the parent too");
    qut_stop();
}

int main(void)
{
    RUN(words_that_are_no_counts_are_told_no_more);
    RUN(starts_and_stops_again_and_again);
    RUN(a_library_is_met_soon);
    RUN(a_module_says_why_it_has_no_table);
    RUN(another_library_at_the_same_address_is_noticed);
    RUN(even_without_build_ids);
    RUN(an_oat_file_is_known_without_build_id);
    RUN(a_library_whose_file_is_gone_is_read_from_memory);
    RUN(lists_change_while_threads_read_them);
    RUN(a_child_goes_on);
    return tap_finish();
}
