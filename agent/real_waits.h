// SPDX-License-Identifier: Apache-2.0
// Functions of libc that may wait, for the table in real.h.
#ifndef AGENT_REAL_WAITS_H
#define AGENT_REAL_WAITS_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

// What the compiler calls in place of read and the like where it knows the buffer's size (_FORTIFY_SOURCE).
ssize_t __read_chk(int fd, void *bytes, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *bytes, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *bytes, size_t size, off64_t offset, size_t room);
ssize_t __recv_chk(int fd, void *bytes, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *bytes, size_t size, size_t room, int flags, struct sockaddr *address,
                       socklen_t *address_size);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);
__attribute__((noreturn)) void __longjmp_chk(jmp_buf buffer, int value);

#define AGENT_REAL_WAITS(X)                                                                                            \
    X(pthread_mutex_lock)                                                                                              \
    X(pthread_mutex_trylock)                                                                                           \
    X(pthread_mutex_timedlock)                                                                                         \
    X(pthread_mutex_clocklock)                                                                                         \
    X(pthread_mutex_unlock)                                                                                            \
    X(mtx_lock)                                                                                                        \
    X(mtx_timedlock)                                                                                                   \
    X(mtx_trylock)                                                                                                     \
    X(mtx_unlock)                                                                                                      \
    X(pthread_rwlock_rdlock)                                                                                           \
    X(pthread_rwlock_tryrdlock)                                                                                        \
    X(pthread_rwlock_timedrdlock)                                                                                      \
    X(pthread_rwlock_clockrdlock)                                                                                      \
    X(pthread_rwlock_wrlock)                                                                                           \
    X(pthread_rwlock_trywrlock)                                                                                        \
    X(pthread_rwlock_timedwrlock)                                                                                      \
    X(pthread_rwlock_clockwrlock)                                                                                      \
    X(pthread_rwlock_unlock)                                                                                           \
    X(pthread_cond_wait)                                                                                               \
    X(pthread_cond_timedwait)                                                                                          \
    X(pthread_cond_clockwait)                                                                                          \
    X(pthread_cond_signal)                                                                                             \
    X(pthread_cond_broadcast)                                                                                          \
    X(cnd_wait)                                                                                                        \
    X(cnd_timedwait)                                                                                                   \
    X(cnd_signal)                                                                                                      \
    X(cnd_broadcast)                                                                                                   \
    X(sem_wait)                                                                                                        \
    X(sem_timedwait)                                                                                                   \
    X(sem_clockwait)                                                                                                   \
    X(sem_trywait)                                                                                                     \
    X(sem_post)                                                                                                        \
    X(pthread_barrier_wait)                                                                                            \
    X(pthread_join)                                                                                                    \
    X(pthread_timedjoin_np)                                                                                            \
    X(pthread_clockjoin_np)                                                                                            \
    X(thrd_join)                                                                                                       \
    X(read)                                                                                                            \
    X(pread)                                                                                                           \
    X(pread64)                                                                                                         \
    X(readv)                                                                                                           \
    X(preadv)                                                                                                          \
    X(preadv64)                                                                                                        \
    X(preadv2)                                                                                                         \
    X(preadv64v2)                                                                                                      \
    X(write)                                                                                                           \
    X(pwrite)                                                                                                          \
    X(pwrite64)                                                                                                        \
    X(writev)                                                                                                          \
    X(pwritev)                                                                                                         \
    X(pwritev64)                                                                                                       \
    X(pwritev2)                                                                                                        \
    X(pwritev64v2)                                                                                                     \
    X(fsync)                                                                                                           \
    X(fdatasync)                                                                                                       \
    X(msync)                                                                                                           \
    X(sync_file_range)                                                                                                 \
    X(sendfile)                                                                                                        \
    X(sendfile64)                                                                                                      \
    X(splice)                                                                                                          \
    X(tee)                                                                                                             \
    X(vmsplice)                                                                                                        \
    X(copy_file_range)                                                                                                 \
    X(recv)                                                                                                            \
    X(recvfrom)                                                                                                        \
    X(recvmsg)                                                                                                         \
    X(recvmmsg)                                                                                                        \
    X(send)                                                                                                            \
    X(sendto)                                                                                                          \
    X(sendmsg)                                                                                                         \
    X(sendmmsg)                                                                                                        \
    X(connect)                                                                                                         \
    X(accept)                                                                                                          \
    X(accept4)                                                                                                         \
    X(poll)                                                                                                            \
    X(ppoll)                                                                                                           \
    X(select)                                                                                                          \
    X(pselect)                                                                                                         \
    X(epoll_wait)                                                                                                      \
    X(epoll_pwait)                                                                                                     \
    X(epoll_pwait2)                                                                                                    \
    X(sleep)                                                                                                           \
    X(usleep)                                                                                                          \
    X(nanosleep)                                                                                                       \
    X(clock_nanosleep)                                                                                                 \
    X(thrd_sleep)                                                                                                      \
    X(pause)                                                                                                           \
    X(sigsuspend)                                                                                                      \
    X(sigwait)                                                                                                         \
    X(sigwaitinfo)                                                                                                     \
    X(sigtimedwait)                                                                                                    \
    X(wait)                                                                                                            \
    X(waitpid)                                                                                                         \
    X(waitid)                                                                                                          \
    X(wait3)                                                                                                           \
    X(wait4)                                                                                                           \
    X(flock)                                                                                                           \
    X(lockf)                                                                                                           \
    X(lockf64)                                                                                                         \
    X(msgrcv)                                                                                                          \
    X(msgsnd)                                                                                                          \
    X(semop)                                                                                                           \
    X(semtimedop)                                                                                                      \
    X(__read_chk)                                                                                                      \
    X(__pread_chk)                                                                                                     \
    X(__pread64_chk)                                                                                                   \
    X(__recv_chk)                                                                                                      \
    X(__recvfrom_chk)                                                                                                  \
    X(__poll_chk)                                                                                                      \
    X(__ppoll_chk)                                                                                                     \
    X(fcntl)                                                                                                           \
    X(fcntl64)                                                                                                         \
    X(longjmp)                                                                                                         \
    X(_longjmp)                                                                                                        \
    X(siglongjmp)                                                                                                      \
    X(__longjmp_chk)

#endif
