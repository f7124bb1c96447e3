// SPDX-License-Identifier: Apache-2.0

// A program whose goroutines' calls are known: each runs run..., DESCEND times descend, leaf..., and what leaf... calls,
// for ever. Between them they go through every function of the runtime's that changes stacks.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const depth = 12

var sink int
var boxes []*[64]int

//go:noinline
func descend(n int, leaf func()) {
	if n == 0 {
		leaf()
	} else {
		descend(n-1, leaf)
	}
	sink++
}

// ---- allocation, and the collector that it wakes: systemstack

//go:noinline
func leafAlloc() {
	for i := 0; ; i++ {
		box := new([64]int)
		if i%64 == 0 {
			boxes = append(boxes, box)
		}
		if len(boxes) > 1000 {
			boxes = nil
		}
	}
}

//go:noinline
func runAlloc() { descend(depth, leafAlloc) }

//go:noinline
func leafCollect() {
	for {
		runtime.GC()
		time.Sleep(2 * time.Millisecond)
	}
}

//go:noinline
func runCollect() { descend(depth, leafCollect) }

// ---- stacks that grow: morestack, in turn three functions, so that none can be missing

//go:noinline
func growA(n int) int {
	var room [40]int
	room[n%40] = n
	if n == 0 {
		return 0
	}
	return growB(n-1) + room[(n+1)%40]
}

//go:noinline
func growB(n int) int {
	var room [24]int
	room[n%24] = n
	if n == 0 {
		return 0
	}
	return growC(n-1) + room[(n+1)%24]
}

//go:noinline
func growC(n int) int {
	var room [72]int
	room[n%72] = n
	if n == 0 {
		return 0
	}
	return growA(n-1) + room[(n+1)%72]
}

//go:noinline
func leafGrow() {
	sink += growA(300)
}

//go:noinline
func runGrow() { descend(depth, leafGrow); growers.Done() }

var growers sync.WaitGroup

// Each a new one: its stack is small.
//
//go:noinline
func leafStart() {
	for {
		growers.Add(4)
		for i := 0; i < 4; i++ {
			go runGrow()
		}
		growers.Wait()
	}
}

//go:noinline
func runStart() { descend(depth, leafStart) }

// ---- channels, locks: mcall, gogo

var ping, pong = make(chan int), make(chan int)

//go:noinline
func leafSend() {
	for i := 0; ; i++ {
		ping <- i
		<-pong
	}
}

//go:noinline
func runSend() { descend(depth, leafSend) }

//go:noinline
func leafReceive() {
	for {
		pong <- <-ping
	}
}

//go:noinline
func runReceive() { descend(depth, leafReceive) }

//go:noinline
func leafYield() {
	for {
		runtime.Gosched()
	}
}

//go:noinline
func runYield() { descend(depth, leafYield) }

// ---- the clock on the system stack, system calls, and code that is interrupted to make room for others

//go:noinline
func leafClock() {
	for {
		sink += time.Now().Nanosecond()
	}
}

//go:noinline
func runClock() { descend(depth, leafClock) }

//go:noinline
func leafCalls() {
	zero, _ := syscall.Open("/dev/zero", syscall.O_RDONLY, 0)
	var room [64]byte
	for {
		syscall.Read(zero, room[:])
	}
}

//go:noinline
func runCalls() { descend(depth, leafCalls) }

//go:noinline
func leafSpin() {
	for {
		sink++
	}
}

//go:noinline
func runSpin() { descend(depth, leafSpin) }

//go:noinline
func leafSort() {
	list := make([]string, 500)
	for {
		for i := range list {
			list[i] = strconv.Itoa(i * 7919 % 503)
		}
		sort.Strings(list)
	}
}

//go:noinline
func runSort() { descend(depth, leafSort) }

func main() {
	seconds, _ := strconv.Atoi(os.Args[1])
	if len(os.Args) > 2 && os.Args[2] == "profile" { // SIGPROF
		pprof.StartCPUProfile(io.Discard)
	}
	for _, run := range append(runs, runAlloc, runCollect, runStart, runSend, runReceive, runYield, runClock, runCalls,
		runSpin, runSort) {
		go run()
	}
	fmt.Println("ready")
	time.Sleep(time.Duration(seconds) * time.Second)
}
