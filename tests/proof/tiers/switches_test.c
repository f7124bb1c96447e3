// SPDX-License-Identifier: Apache-2.0
// What changes beneath a memory of walks: the code itself, by another library in the same place; the stack, by
// coroutines; and which shortcuts walks may take.
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "libqut/runtime/shared_rules_inline.h"
#include "libqut/runtime/tiers.h"
#include "tests/proof/tiers/play.h"
#include "tests/support/tap.h"

static struct play play;
static struct play_script script;

static void begin(void)
{
    script.count = 0;
    play_reset(&play);
}

// ---- libraries, one in the place of another: the same code addresses, other frames

enum { LIBRARIES = 4, LOADS = 24, LIBRARY_FRAMES = 6 };

static const char *const library_paths[LIBRARIES] = {STACK_LIBRARIES};
static uintptr_t library_start, library_end, fixed_place;
static unsigned library_frames; // in the last walk without shortcuts

// From a place on the stack that is the same for all libraries: whatever differs, differs further out.
static int in_library(void *unused)
{
    (void)unused;
    enum { ROOM = 32 << 10 };
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!fixed_place)
        fixed_place = here - ROOM;
    volatile char *room = __builtin_alloca(here - fixed_place);
    room[0] = 1;
    play_run(&play, script.ops, script.count);
    library_frames = 0;
    for (size_t i = 0; i < play.outer_count; i++)
        library_frames += play.outer[i] >= library_start && play.outer[i] < library_end;
    return room[0];
}

static int find_end(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    for (unsigned i = 0; i < info->dlpi_phnum && info->dlpi_addr == library_start; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            library_end = library_start + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 0;
}

static void through_library(const char *path, bool refresh, unsigned *in_place, uintptr_t *last_start)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct link_map *map;
    int (*enter)(int, int (*)(void *), void *);
    if (!CHECK(library != NULL, "%s", dlerror()))
        return;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    library_start = map->l_addr;
    dl_iterate_phdr(find_end, NULL);
    *in_place += *last_start == library_start;
    *last_start = library_start;
    *(void **)&enter = dlsym(library, "storm_library_enter");
    // Before its table is there, walks end in it; whatever is remembered of the one before.
    enter(LIBRARY_FRAMES - 1, in_library, NULL);
    if (refresh) {
        // The first may find out that a number it had watched is not the loader's, and trust nothing yet.
        qut_refresh();
        qut_refresh();
        for (unsigned i = 0; i < 3; i++)
            enter(LIBRARY_FRAMES - 1, in_library, NULL);
        CHECK(library_frames == LIBRARY_FRAMES && play.outer_end.reason == QUT_END_OUTERMOST,
              "%u frames of the library, %s", library_frames, qut_end_reason_name(play.outer_end.reason));
        CHECK(judged.missed_last <= PLAY_MISSED_MAX, "%s: %zu missed in the last walk", path, judged.missed_last);
    }
    dlclose(library);
    if (refresh && *in_place % 2)
        qut_refresh();
}

TEST(another_library_in_the_same_place)
{
    unsigned in_place = 0;
    uintptr_t last_start = 0;
    begin();
    play_descend(&script, 10, 0);
    for (unsigned i = 0; i < 4; i++)
        play_walk(&script, 0);
    for (unsigned i = 0; i < LOADS; i++)
        through_library(library_paths[i % LIBRARIES], i % 8 < 6, &in_place, &last_start);
    qut_refresh();
    CHECK_JUDGED();
    CHECK(judged.remembered > 0, "%zu frames remembered", (size_t)judged.remembered);
    printf("# %u of %u loads in another's place\n", in_place, (unsigned)LOADS);
    if (in_place == 0) // seen under qemu
        SKIP("no library came to lie where another was");
}

// ---- coroutines

enum { COROUTINES = 2, COROUTINE_BYTES = 256 << 10, COROUTINE_WALKS = 400 };

static struct coroutine {
    ucontext_t inside;
    struct play play;
    size_t walks_left;
    bool done;
} coroutines[COROUTINES];
static ucontext_t outside;
static size_t main_walks_left;
static unsigned next_coroutine;
static size_t walks_in_a_stay;

static void leave_coroutine(struct play *inside)
{
    struct coroutine *self = &coroutines[inside == &coroutines[1].play];
    swapcontext(&self->inside, &outside);
}

static void enter_coroutine(struct play *unused)
{
    (void)unused;
    struct coroutine *other = &coroutines[next_coroutine++ % COROUTINES];
    if (!other->done)
        swapcontext(&outside, &other->inside);
}

// Some walks, a switch, and some change of the stack.
static struct play_op at_random(struct play *made)
{
    size_t *left = made == &play ? &main_walks_left : &coroutines[made == &coroutines[1].play].walks_left;
    size_t dice = play_below(made, 100);
    if (*left == 0)
        return (struct play_op){.kind = PLAY_RETURN};
    if (made->depth < 8 || (dice < 40 && made->depth < 30))
        return play_any_call(made);
    if (dice < 60)
        return (struct play_op){.kind = PLAY_RETURN};
    if (dice < 100 - 40 / (walks_in_a_stay + 2))
        return *left -= 1, (struct play_op){.kind = PLAY_WALK};
    return (struct play_op){.kind = PLAY_ACT};
}

static void coroutine_main(int index)
{
    coroutines[index].play.invent = at_random;
    coroutines[index].play.act = leave_coroutine;
    coroutines[index].play.data_varies = true;
    play_run(&coroutines[index].play, NULL, 0);
    coroutines[index].done = true;
}

static bool make_coroutines(void)
{
    for (int i = 0; i < COROUTINES; i++) {
        struct coroutine *made = &coroutines[i];
        memset(made, 0, sizeof *made);
        made->walks_left = COROUTINE_WALKS;
        made->play.random_state = (uint64_t)i + 9;
        getcontext(&made->inside);
        // Some pages above the stack: not all that is read of it is the caller's.
        made->inside.uc_stack.ss_sp =
            mmap(NULL, COROUTINE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        made->inside.uc_stack.ss_size = COROUTINE_BYTES;
        made->inside.uc_link = &outside;
        if (made->inside.uc_stack.ss_sp == MAP_FAILED)
            return false;
        makecontext(&made->inside, (void (*)(void))coroutine_main, 1, i);
    }
    return true;
}

TEST(coroutines_take_turns)
{
    for (walks_in_a_stay = 0; walks_in_a_stay < 4; walks_in_a_stay++) {
        begin();
        if (!CHECK(make_coroutines(), "no memory"))
            return;
        play.invent = at_random;
        play.act = enter_coroutine;
        play.random_state = 1 + walks_in_a_stay;
        main_walks_left = COROUTINE_WALKS * COROUTINES;
        play_run(&play, NULL, 0);
        // What has not come to its end: it is in the middle of its stack.
        for (unsigned i = 0; i < COROUTINES; i++) {
            coroutines[i].walks_left = 0;
            while (!coroutines[i].done)
                swapcontext(&outside, &coroutines[i].inside);
            munmap(coroutines[i].inside.uc_stack.ss_sp, COROUTINE_BYTES);
        }
        CHECK_JUDGED();
        printf("# %zu walks, %zu frames, %zu remembered\n", (size_t)judged.walks, (size_t)judged.frames,
               (size_t)judged.remembered);
        CHECK(judged.remembered > 0, "%zu frames remembered", (size_t)judged.remembered);
    }
}

// ---- what one thread has looked up, another need not

static void *play_in_thread(void *looked_up)
{
    struct runtime_tier_counts counts;
    begin();
    play_descend(&script, 40, 2);
    for (unsigned i = 0; i < 20; i++) {
        play_walk(&script, 0);
        play_back(&script, i % 7);
        play_descend(&script, i % 7, i);
    }
    play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
    if (CHECK(runtime_tier_counts(&counts), "the thread is not registered"))
        *(uint64_t *)looked_up = counts.looked_up;
    return NULL;
}

TEST(threads_share_what_they_look_up)
{
    uint64_t looked_up[3] = {0};
    if (!RUNTIME_SHARED_IS_POSSIBLE)
        SKIP("nothing is shared on this machine");
    // Another list of modules: nothing is known yet.
    void *library = dlopen(library_paths[0], RTLD_NOW);
    qut_refresh();
    qut_refresh();
    for (unsigned i = 0; i < 3; i++) {
        pthread_t thread;
        if (!CHECK(pthread_create(&thread, NULL, play_in_thread, &looked_up[i]) == 0, "thread %u", i))
            return;
        pthread_join(thread, NULL);
    }
    bool all_rare = judged.last_looked_up >= judged.count;
    CHECK((looked_up[1] < looked_up[0] || all_rare) && looked_up[2] <= looked_up[1], "looked up %zu, %zu, %zu",
          (size_t)looked_up[0], (size_t)looked_up[1], (size_t)looked_up[2]);
    if (library)
        dlclose(library);
    qut_refresh();
    if (all_rare) // riscv64 with frame pointers: the cfa is the frame pointer itself
        SKIP("no rule here has the shape that is shared");
}

// ---- a memory that never matches is given up, and taken up again

enum { USELESS_WALKS = 300, USELESS_ROUNDS = 10, SOON = 256, DEEP = 60 };

TEST(memory_comes_back)
{
    // Everything above the root is another each time.
    begin();
    play.lets_memory_pause = true;
    for (unsigned i = 0; i < USELESS_WALKS; i++) {
        play_descend(&script, DEEP, i * 3);
        play_walk(&script, 0);
        play_back(&script, DEEP);
    }
    for (unsigned i = 0; i < USELESS_ROUNDS; i++)
        play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
    printf("# %zu of %zu frames remembered in %zu walks without use\n", (size_t)judged.remembered,
           (size_t)judged.frames, (size_t)judged.walks);
    CHECK(judged.remembered * 50 < judged.frames, "it was not given up: %zu of %zu frames", (size_t)judged.remembered,
          (size_t)judged.frames);
    script.count = 0;
    judged_reset();
    play_descend(&script, DEEP, 1);
    for (unsigned i = 0; i < SOON; i++)
        play_walk(&script, 0);
    play_run(&play, script.ops, script.count);
    CHECK_JUDGED();
    CHECK(judged.missed_last <= PLAY_MISSED_MAX && judged.remembered > 0,
          "after %u walks of the same stack %zu are missed", SOON, judged.missed_last);
    printf("# %zu of %zu in the %u walks of one stack after these\n", (size_t)judged.remembered, (size_t)judged.frames,
           SOON);
}

// ---- shortcuts turned on and off between walks

TEST(shortcuts_are_switched_at_random)
{
    enum { WALKS = 3000 };
    begin();
    play.invent = at_random;
    play.act = enter_coroutine;
    for (unsigned i = 0; i < COROUTINES; i++)
        coroutines[i].done = true; // no coroutine to switch to
    play.random_state = 5;
    play.switches_at_random = true;
    main_walks_left = WALKS;
    walks_in_a_stay = 3;
    play_run(&play, NULL, 0);
    CHECK_JUDGED();
    CHECK(judged.remembered > 0, "%zu frames remembered", (size_t)judged.remembered);
}

int main(void)
{
    if (!play_start())
        return 77;
    RUN(another_library_in_the_same_place);
    RUN(coroutines_take_turns);
    RUN(threads_share_what_they_look_up);
    RUN(memory_comes_back);
    RUN(shortcuts_are_switched_at_random);
    return tap_finish();
}
