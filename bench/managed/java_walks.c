// SPDX-License-Identifier: Apache-2.0
// The library that Walks.java loads.
#include <jni.h>

#include "interrupted_walks.h"

JNIEXPORT void JNICALL Java_Walks_join(JNIEnv *env, jclass class);
JNIEXPORT void JNICALL Java_Walks_measure(JNIEnv *env, jclass class, jint seconds);

JNIEXPORT void JNICALL Java_Walks_join(JNIEnv *env, jclass class)
{
    (void)env;
    (void)class;
    walks_join("java", false);
}

JNIEXPORT void JNICALL Java_Walks_measure(JNIEnv *env, jclass class, jint seconds)
{
    (void)env;
    (void)class;
    walks_measure((unsigned)seconds);
}
