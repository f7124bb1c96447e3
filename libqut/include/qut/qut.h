// SPDX-License-Identifier: Apache-2.0
// libqut: finds out where threads are. local.h walks this process, target.h others, trace.h stores what was walked,
// sample.h says when.
#ifndef QUT_QUT_H
#define QUT_QUT_H

#include <qut/local.h>
#include <qut/sample.h>
#include <qut/target.h>
#include <qut/trace.h>

#endif
