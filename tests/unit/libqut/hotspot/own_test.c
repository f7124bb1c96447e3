// SPDX-License-Identifier: Apache-2.0
// A machine in this process's own memory: it is found, also where it was looked at too early.
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "libqut/modules/jit_registry.h"
#include "libqut/modules/machine_code.h"
#include "tests/support/tap.h"
#include "tests/unit/libqut/hotspot/fake_hotspot.h"

enum { BLOCK = FAKE_CODE + 0x2000, STUBS = FAKE_CODE + 0x4000, LOOKS_MAX = 20 };

static const uint8_t code[] = {0x55, 0x48, 0x8b, 0xec, 0x90, 0xc9, 0xc3};

static struct fake_hotspot fake;
static struct modules_record record, *records[] = {&record};
static uint64_t method;

// Where its own addresses say that it is.
static bool put_in_place(void)
{
    static void *place;
    if (!place) {
        place = mmap((void *)(uintptr_t)FAKE_BASE, FAKE_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (place != (void *)(uintptr_t)FAKE_BASE) {
            place = NULL;
            return false;
        }
    }
    memcpy(place, fake.bytes, FAKE_BYTES);
    return true;
}

static void make(void)
{
    fake_begin(&fake, FAKE_17, NULL);
    method = fake_blob(&fake, BLOCK, 0x1000, 8, 4, code, sizeof code);
    fake_put_word(&fake, fake.call_stub_at, fake_blob(&fake, STUBS, 0xa000, 0, -1, code, sizeof code) + 4);
    fake_interpreter(&fake, FAKE_CODE + 0x1000, code, sizeof code);
}

static bool begin(void)
{
    if (!put_in_place())
        return false;
    record.hotspot_structs = record.hotspot_types = 0;
    modules_machine_take_records(); // what was there before is gone
    record.hotspot_structs = fake.structs;
    record.hotspot_types = fake.types;
    modules_machine_take_records();
    return true;
}

static bool is_found(void)
{
    struct runtime_code found = {0};
    return modules_machine_find((uintptr_t)method, &found) && found.state == RUNTIME_CODE_OF_MACHINE;
}

// Our thread's part, each time that a walk has asked for it, until it has looked. Whether it has.
static bool look(void)
{
    for (int tries = 0; tries < LOOKS_MAX; tries++) {
        int wait_ms;
        if (modules_machine_step(&wait_ms))
            return true;
        if (wait_ms < 0)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = (wait_ms % 1000) * 1000000L, .tv_sec = wait_ms / 1000}, NULL);
    }
    return false;
}

TEST(it_is_found)
{
    make();
    if (!begin())
        SKIP("something else is where the machine should be");
    CHECK(!is_found(), "found before it was looked at");
    CHECK(look() && is_found(), "not found");
    CHECK(!look(), "looked at again");
}

// The loader has listed the library, and not put addresses into its data.
TEST(tables_that_are_not_whole_yet_are_looked_at_again)
{
    uint64_t table, zero = 0;
    make();
    memcpy(&table, fake.bytes + (fake.structs - FAKE_BASE), sizeof table);
    fake_put(&fake, table, &zero, sizeof zero);
    if (!begin())
        SKIP("something else is where the machine should be");
    for (int i = 0; i < 3; i++) {
        CHECK(look(), "look %d", i);
        CHECK(!is_found(), "found in tables that are empty"); // and asked for once more
    }
    make();
    put_in_place();
    CHECK(look() && is_found(), "not found once the tables are whole");
}

int main(void)
{
    modules_registry.records = records;
    modules_registry.record_count = 1;
    RUN(it_is_found);
    RUN(tables_that_are_not_whole_yet_are_looked_at_again);
    return tap_finish();
}
