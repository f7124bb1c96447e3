// SPDX-License-Identifier: Apache-2.0
// libqut: finds out where threads are. local.h walks this process, target.h others.
#ifndef QUT_QUT_H
#define QUT_QUT_H

#include <qut/local.h>
#include <qut/target.h>

#endif
