// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/thread_word.h"

#if defined(__ANDROID__) && __ANDROID_API__ < 29
pthread_key_t os_word_keys[OS_WORD_COUNT];
bool os_words_exist;

__attribute__((constructor)) static void make_keys(void)
{
    os_words_exist = true;
    for (unsigned i = 0; i < OS_WORD_COUNT; i++)
        os_words_exist = os_words_exist && pthread_key_create(&os_word_keys[i], NULL) == 0;
}
#else
_Thread_local _Atomic uintptr_t os_words[OS_WORD_COUNT] __attribute__((tls_model("initial-exec")));
#endif
