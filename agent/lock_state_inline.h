// SPDX-License-Identifier: Apache-2.0
// What libc's locks tell by themselves: which thread holds one, and whether other processes use it. glibc's layout is
// part of its ABI (static initialisers). Where libc does not tell (or AGENT_OWN_OWNERS is set, for tests): the own
// table.
#ifndef AGENT_LOCK_STATE_INLINE_H
#define AGENT_LOCK_STATE_INLINE_H

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "agent/locks.h"

#if !defined(__GLIBC__) && !defined(AGENT_OWN_OWNERS)
#define AGENT_OWN_OWNERS 1
#endif

#ifdef __GLIBC__

// Of pthread_mutex_t's __kind. Plain ones: trylock, where it succeeds, does what lock does.
enum { LOCK_KIND_PLAIN = 3, LOCK_KIND_SHARED = 128, LOCK_KIND_RECURSIVE = 1, LOCK_KIND_ERRORCHECK = 2 };

static inline bool agent_mutex_is_plain(const pthread_mutex_t *mutex)
{
    int kind = __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
    return (kind & ~(LOCK_KIND_PLAIN | LOCK_KIND_SHARED)) == 0;
}

static inline bool agent_mutex_is_private(const pthread_mutex_t *mutex)
{
    return (__atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED) & LOCK_KIND_SHARED) == 0;
}

static inline uint32_t agent_mutex_owner_of_libc(const pthread_mutex_t *mutex)
{
    return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

// Whether the calling thread will wait, of mutexes that are not plain.
static inline bool agent_mutex_is_taken(const pthread_mutex_t *mutex)
{
    uint32_t state = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) & 0x3FFFFFFF;
    return state != 0 && agent_mutex_owner_of_libc(mutex) != agent_tid();
}

// Whether an unlock by the calling thread lets others in: not one of many, nor one that will be refused.
static inline bool agent_mutex_is_let_go(const pthread_mutex_t *mutex)
{
    int type = __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED) & 3;
    if (type != LOCK_KIND_RECURSIVE && type != LOCK_KIND_ERRORCHECK && agent_mutex_is_plain(mutex))
        return true;
    return agent_mutex_owner_of_libc(mutex) == agent_tid() &&
           (type != LOCK_KIND_RECURSIVE || __atomic_load_n(&mutex->__data.__count, __ATOMIC_RELAXED) == 1);
}

static inline uint32_t agent_rwlock_writer_of_libc(const pthread_rwlock_t *lock)
{
    return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);
}

static inline bool agent_rwlock_is_private(const pthread_rwlock_t *lock)
{
    return __atomic_load_n(&lock->__data.__shared, __ATOMIC_RELAXED) == 0;
}

static inline bool agent_condition_is_private(const pthread_cond_t *condition)
{
    return (__atomic_load_n(&condition->__data.__wrefs, __ATOMIC_RELAXED) & 1) == 0;
}

// struct new_sem: the value and the waiters, in 8 bytes or in two words with this one between them.
static inline bool agent_semaphore_is_private(const sem_t *semaphore)
{
    uint32_t words[3];
    memcpy(words, semaphore, sizeof(words));
    return words[sizeof(void *) == 8 ? 2 : 1] == 0;
}

// struct pthread_barrier: how many came in, the round, how many it takes, shared. The one that completes the round
// knows that it does where all others came before.
static inline bool agent_barrier_is_private(const pthread_barrier_t *barrier)
{
    uint32_t words[4];
    memcpy(words, barrier, sizeof(words));
    return words[3] == 0;
}

static inline bool agent_barrier_waits_for_one(const pthread_barrier_t *barrier)
{
    uint32_t words[4];
    memcpy(words, barrier, sizeof(words));
    return words[2] && words[0] % words[2] == words[2] - 1;
}

#else

// Nothing is known of them.
static inline bool agent_mutex_is_plain(const pthread_mutex_t *mutex)
{
    return mutex != NULL;
}
static inline bool agent_mutex_is_private(const pthread_mutex_t *mutex)
{
    return mutex != NULL;
}
static inline bool agent_mutex_is_taken(const pthread_mutex_t *mutex)
{
    return mutex == NULL;
}
static inline bool agent_mutex_is_let_go(const pthread_mutex_t *mutex)
{
    return mutex != NULL;
}
static inline bool agent_rwlock_is_private(const pthread_rwlock_t *lock)
{
    return lock != NULL;
}
static inline bool agent_condition_is_private(const pthread_cond_t *condition)
{
    return condition != NULL;
}
static inline bool agent_semaphore_is_private(const sem_t *semaphore)
{
    return semaphore != NULL;
}
static inline bool agent_barrier_is_private(const pthread_barrier_t *barrier)
{
    return barrier != NULL;
}
static inline bool agent_barrier_waits_for_one(const pthread_barrier_t *barrier)
{
    return barrier == NULL;
}

#endif

static inline uint32_t agent_mutex_owner(const pthread_mutex_t *mutex)
{
#ifdef AGENT_OWN_OWNERS
    return agent_lock_owner(mutex);
#else
    return agent_mutex_owner_of_libc(mutex);
#endif
}

static inline uint32_t agent_rwlock_writer(const pthread_rwlock_t *lock)
{
#ifdef AGENT_OWN_OWNERS
    return agent_lock_owner(lock);
#else
    return agent_rwlock_writer_of_libc(lock);
#endif
}

// Got, or about to be let go, by the calling thread alone.
static inline void agent_lock_is_held(const void *lock, bool held)
{
#ifdef AGENT_OWN_OWNERS
    agent_lock_owned_by(lock, held ? agent_tid() : 0);
#else
    (void)lock;
    (void)held;
#endif
}

#endif
