// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

/*
#include <pthread.h>
#include <stdint.h>

extern int goCalled(int);

static int volatile c_sink;

static __attribute__((noinline)) int c_work(int x)
{
    for (int i = 0; i < 2000; i++)
        c_sink += x;
    return c_sink;
}

// Keeps a frame pointer, as its frame has no fixed size.
static __attribute__((noinline)) int c_calls_go(int x)
{
    volatile char room[(x & 15) + 1];
    room[0] = (char)x;
    return goCalled(x) + room[0];
}

static void *c_thread(void *unused)
{
    for (;;)
        c_calls_go(0);
    return unused;
}

static void c_start(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, c_thread, 0);
}
*/
import "C"

var runs = []func(){runC, runBack, runForeign}

//go:noinline
func leafC() {
	for {
		sink += int(C.c_work(3))
	}
}

//go:noinline
func runC() { descend(depth, leafC) }

// Go, C, Go, C, Go: as deep as n says.
//
//export goCalled
func goCalled(n C.int) C.int {
	if n > 0 {
		return C.c_calls_go(n - 1)
	}
	return C.int(inner())
}

//go:noinline
func inner() int {
	box := new([64]int)
	boxes = []*[64]int{box}
	return len(boxes)
}

//go:noinline
func leafBack() {
	for {
		sink += int(C.c_calls_go(2))
	}
}

//go:noinline
func runBack() { descend(depth, leafBack) }

//go:noinline
func leafForeign() {
	C.c_start()
	select {}
}

//go:noinline
func runForeign() { descend(depth, leafForeign) }
