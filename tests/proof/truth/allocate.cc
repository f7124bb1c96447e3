// SPDX-License-Identifier: Apache-2.0
// allocate ROUNDS CHILDREN: what each process asked for while it counted: "PID ALLOCATIONS BYTES FREES", a line for
// each. What it takes to run at all is the same for each number of rounds.
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

namespace {
std::atomic<uint64_t> allocations, bytes, frees;
unsigned rounds;
constexpr unsigned thread_count = 4;

void *took(void *pointer, size_t size)
{
    if (!pointer)
        abort();
    __asm__ volatile("" : "+r"(pointer) : : "memory"); // no pair of calls is left out
    allocations++;
    bytes += size;
    return pointer;
}

void *gives(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    frees++;
    return pointer;
}

struct alignas(64) Aligned {
    char room[128];
};

void *work(void *argument)
{
    auto seed = static_cast<unsigned>(reinterpret_cast<uintptr_t>(argument));
    for (unsigned i = 0; i < rounds; i++) {
        size_t size = 1 + static_cast<unsigned>(rand_r(&seed)) % 5000;
        void *p = took(malloc(size), size);
        gives(p), p = took(realloc(p, size * 2), size * 2);
        gives(p), p = took(realloc(p, 10), 10);
        free(gives(p));
        free(gives(took(calloc(size, 3), size * 3)));
        free(gives(took(memalign(256, size), size)));
        free(gives(took(aligned_alloc(64, 640), 640)));
        void *aligned = nullptr;
        if (posix_memalign(&aligned, 4096, size) != 0)
            abort();
        free(gives(took(aligned, size)));
        free(gives(took(valloc(100), 100)));
        free(gives(took(reallocarray(nullptr, size, 2), size * 2)));
        free(gives(took(strdup("seventeen letters"), 18)));
        auto *one = static_cast<int *>(took(new int(3), sizeof(int)));
        gives(one);
        delete one;
        auto *many = static_cast<char *>(took(new char[size], size));
        gives(many);
        delete[] many;
        auto *over = static_cast<Aligned *>(took(new Aligned, sizeof(Aligned)));
        gives(over);
        delete over;
        free(nullptr); // none
        if (malloc(SIZE_MAX / 2))
            abort(); // none, either
        if (size % 7 == 0)
            took(malloc(size), size); // never given back
    }
    return nullptr;
}

void run()
{
    allocations = bytes = frees = 0;
    pthread_t threads[thread_count];
    for (uintptr_t i = 0; i < thread_count; i++)
        pthread_create(&threads[i], nullptr, work, reinterpret_cast<void *>(i + 1));
    for (auto &thread : threads)
        pthread_join(thread, nullptr);
    char line[128];
    int length = snprintf(line, sizeof line, "%d %llu %llu %llu\n", getpid(),
                          static_cast<unsigned long long>(allocations), static_cast<unsigned long long>(bytes),
                          static_cast<unsigned long long>(frees));
    if (write(1, line, static_cast<size_t>(length)) != length)
        abort();
}
} // namespace

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    rounds = static_cast<unsigned>(atoi(argv[1]));
    run();
    for (int i = 0; i < atoi(argv[2]); i++) {
        pid_t child = fork();
        if (child == 0) {
            run();
            if (i % 2)
                _exit(0);
            return 0;
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 1;
    }
    return 0;
}
