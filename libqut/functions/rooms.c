// SPDX-License-Identifier: Apache-2.0
#include "libqut/functions/functions.h"
#include "libqut/os/os.h"

static struct functions_room *room_at(const struct functions_rooms *rooms, uint32_t index)
{
    return (struct functions_room *)(void *)(rooms->all + index % FUNCTIONS_ROOMS * rooms->room_bytes);
}

bool functions_rooms_prepare(struct functions_rooms *rooms)
{
    if (!rooms->all)
        rooms->all = os_reserve(rooms->room_bytes * FUNCTIONS_ROOMS);
    return rooms->all != NULL;
}

void functions_rooms_forget(struct functions_rooms *rooms)
{
    if (rooms->all)
        os_free_pages(rooms->all, rooms->room_bytes * FUNCTIONS_ROOMS);
    rooms->all = NULL;
}

void functions_rooms_after_fork(struct functions_rooms *rooms)
{
    for (uint32_t i = 0; rooms->all && i < FUNCTIONS_ROOMS; i++)
        atomic_store_explicit(&room_at(rooms, i)->is_taken, 0, memory_order_relaxed);
}

void *functions_room_take(const struct functions_rooms *rooms, uint32_t tid)
{
    for (uint32_t i = 0; i < FUNCTIONS_ROOMS; i++) {
        struct functions_room *room = room_at(rooms, tid + i);
        if (atomic_load_explicit(&room->is_taken, memory_order_relaxed) == 0 &&
            atomic_exchange_explicit(&room->is_taken, 1, memory_order_acquire) == 0)
            return room;
    }
    return NULL;
}

void functions_room_give(struct functions_room *room)
{
    atomic_store_explicit(&room->is_taken, 0, memory_order_release);
}
