// SPDX-License-Identifier: Apache-2.0
#include "tracer/attach/place.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "libqut/os/process.h"

enum { LOOK_NS = 100000000, NS_PER_S = 1000000000, LINE_BYTES = 256 };
// Where less than this is free, we take a processor away from somebody now and then.
static const double free_least = 1.5;
// Seen on virtual machines: 5 to 12 us.
static const double near_ns = 8000, wide_ns = 4000, wide_least_ns = 1500;

// Of all processors together. The first line of /proc/stat: cpu, user, nice, system, idle, iowait.
static bool read_idle(uint64_t *idle_ns)
{
    enum { IDLE = 3, IOWAIT = 4 };
    char text[LINE_BYTES];
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    bool got = fd >= 0 && os_read_line(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    if (!got)
        return false;
    char *at = text + 3; // behind "cpu"
    uint64_t ticks = 0;
    for (unsigned field = 0; field <= IOWAIT; field++) {
        uint64_t value = strtoull(at, &at, 10);
        ticks += field == IDLE || field == IOWAIT ? value : 0;
    }
    *idle_ns = ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

static void look_at_machine(struct attach_place *place, uint64_t now_ns)
{
    uint64_t idle_ns;
    if (now_ns - place->looked_ns < LOOK_NS || !read_idle(&idle_ns))
        return;
    double free = place->looked_ns ? (double)(idle_ns - place->idle_ns) / (double)(now_ns - place->looked_ns) : 0;
    place->is_full = place->looked_ns && free < free_least;
    place->looked_ns = now_ns;
    place->idle_ns = idle_ns;
}

static void keep_to(struct attach_place *place, int processor)
{
    cpu_set_t set;
    if (place->processor == processor || (processor >= 0 && !CPU_ISSET((size_t)processor, &place->before)))
        return;
    CPU_ZERO(&set);
    if (processor >= 0)
        CPU_SET((size_t)processor, &set);
    if (sched_setaffinity(0, sizeof set, processor >= 0 ? &set : &place->before) == 0)
        place->processor = processor;
}

void attach_place_begin(struct attach_place *place)
{
    *place = (struct attach_place){.processor = -1, .near_ns = near_ns, .wide_ns = wide_ns};
    place->has_before = sched_getaffinity(0, sizeof place->before, &place->before) == 0;
}

void attach_place_end(struct attach_place *place)
{
    if (place->has_before)
        keep_to(place, -1);
}

void attach_place_follow(struct attach_place *place, int processor, uint64_t now_ns)
{
    if (!place->has_before)
        return;
    look_at_machine(place, now_ns);
    keep_to(place, place->is_full && processor < CPU_SETSIZE ? processor : -1);
}

// Half of what it sees shall be on either side of near_ns, and four fifths no farther away than wide_ns: what is far
// off (the machine was away) moves them no more than what is near.
static void learn(struct attach_place *place, double before_ns)
{
    const double step_ns = 100, off_ns = before_ns - place->near_ns;
    place->near_ns += off_ns > 0 ? step_ns : -step_ns;
    place->wide_ns += fabs(off_ns) > place->wide_ns ? 4 * step_ns : -step_ns;
    if (place->wide_ns < wide_least_ns)
        place->wide_ns = wide_least_ns;
}

bool attach_place_had_processor(struct attach_place *place, const struct attach_turn *turn)
{
    if (!turn->is_new)
        return true;
    double before_ns = (double)turn->round_ns - (double)turn->since_ns;
    if (turn->is_in_call)
        return fabs(before_ns - place->near_ns) <= place->wide_ns;
    learn(place, before_ns);
    return true;
}
