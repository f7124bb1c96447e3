// SPDX-License-Identifier: Apache-2.0
#include "libqut/os/thread_word.h"

#if defined(__ANDROID__) && __ANDROID_API__ < 29
pthread_key_t qut_os_word_keys[QUT_OS_WORD_COUNT];
bool qut_os_words_exist;

__attribute__((constructor)) static void make_keys(void)
{
    qut_os_words_exist = true;
    for (unsigned i = 0; i < QUT_OS_WORD_COUNT; i++)
        qut_os_words_exist = qut_os_words_exist && pthread_key_create(&qut_os_word_keys[i], NULL) == 0;
}
#else
_Thread_local _Atomic uintptr_t qut_os_words[QUT_OS_WORD_COUNT] __attribute__((tls_model("initial-exec")));
#endif
