// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OPTIONS_MAX = 48, SHADOWS_AT = 0x50000000 };

struct machine machine;

struct shadow *machine_shadow(unsigned thread)
{
    return (struct shadow *)((char *)machine.shadows + (size_t)thread * MACHINE_SHADOW_BYTES);
}

static JNIEnv *create(char **strings, int count)
{
    JavaVMOption options[OPTIONS_MAX];
    JNIEnv *env;
    for (int i = 0; i < count && i < OPTIONS_MAX; i++)
        options[i] = (JavaVMOption){.optionString = strings[i]};
    JavaVMInitArgs arguments = {JNI_VERSION_1_6, count, options, JNI_TRUE};
    if (count > OPTIONS_MAX || JNI_CreateJavaVM(&machine.vm, &env, &arguments) != 0)
        judge_give_up("JNI_CreateJavaVM");
    return env;
}

static void register_natives(JNIEnv *env, const struct machine_natives *natives)
{
    const JNINativeMethod of_worker[] = {{"cb", "(JI)I", natives->cb},
                                         {"sort", "(JI)I", natives->sort},
                                         {"spin", "(JI)I", natives->spin},
                                         {"fast", "(JI)I", natives->fast},
                                         {"crit", "(JI)I", natives->critical}};
    const JNINativeMethod of_threads[] = {{"here", "(J)V", natives->here}};
    if ((*env)->RegisterNatives(env, machine.worker, of_worker, 5) != 0 ||
        (*env)->RegisterNatives(env, machine.threads, of_threads, 1) != 0)
        judge_give_up("RegisterNatives");
    machine.called_from_native = (*env)->GetStaticMethodID(env, machine.worker, "fromNative", "(JI)I");
    machine.called_by_sort = (*env)->GetStaticMethodID(env, machine.worker, "cmp", "(JI)I");
}

JNIEnv *machine_start(char **options, int option_count, const char *jar, const struct machine_natives *natives)
{
    JNIEnv *env = create(options, option_count);
    void *shadows = mmap((void *)SHADOWS_AT, MACHINE_SHADOW_BYTES * MACHINE_THREADS, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (shadows != (void *)SHADOWS_AT)
        judge_give_up("no memory");
    machine.shadows = shadows;
    machine.worker = (*env)->NewGlobalRef(env, judge_find_class(env, jar, "W"));
    machine.threads = (*env)->NewGlobalRef(env, judge_find_class(env, jar, "T"));
    register_natives(env, natives);
    return env;
}

static void *stop_in_time(void *is_over)
{
    while (!(*(bool (**)(void))is_over)())
        usleep(20000);
    for (unsigned i = 0; i < MACHINE_THREADS; i++)
        machine_shadow(i)->stop = 1;
    return NULL;
}

void machine_run(JNIEnv *env, void (*begin)(void), bool (*is_over)(void))
{
    jmethodID go = (*env)->GetStaticMethodID(env, machine.threads, "go", "(J)V");
    jmethodID run = (*env)->GetStaticMethodID(env, machine.worker, "run", "(JI)I");
    for (unsigned i = 1; i < MACHINE_THREADS; i++)
        (*env)->CallStaticVoidMethod(env, machine.threads, go, (jlong)(uintptr_t)machine_shadow(i));
    if (begin)
        begin();
    pthread_t stopper;
    if (pthread_create(&stopper, NULL, stop_in_time, &is_over) != 0)
        judge_give_up("no thread");
    (*env)->CallStaticIntMethod(env, machine.worker, run, (jlong)(uintptr_t)machine_shadow(0), 0);
    if ((*env)->ExceptionCheck(env))
        judge_give_up("the program threw");
    pthread_join(stopper, NULL);
}
