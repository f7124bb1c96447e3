// SPDX-License-Identifier: Apache-2.0
// Go's runtime in uproar: goroutines whose stacks grow, collections, panics, timers, channels, locks, threads that come and
// go. Its own sums say at the end whether all of it went right.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func check(holds bool, what string) {
	if !holds {
		fmt.Println("went wrong:", what)
		os.Exit(1)
	}
}

func grow(depth int) int {
	var room [200]byte
	room[depth%200] = byte(depth)
	if depth == 0 {
		return 0
	}
	return grow(depth-1) + 1 + int(room[depth%200]) - int(byte(depth))
}

func garbage() {
	lists := map[string][]int{}
	for i := 0; i < 3000; i++ {
		key := strconv.Itoa(i % 97)
		lists[key] = append(lists[key], i)
	}
	sum := 0
	for _, list := range lists {
		for _, number := range list {
			sum += number
		}
	}
	check(sum == 3000*2999/2, "garbage")
}

func panics(depth int) (caught string) {
	defer func() { caught = fmt.Sprint(recover()) }()
	var down func(int)
	down = func(left int) {
		defer func() {}()
		if left == 0 {
			panic("thrown")
		}
		down(left - 1)
	}
	down(depth)
	return ""
}

func channels() {
	in, out := make(chan int), make(chan int, 10)
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := range in {
				out <- number * 2
			}
		}()
	}
	go func() {
		for i := 0; i < 500; i++ {
			in <- i
		}
		close(in)
		group.Wait()
		close(out)
	}()
	sum := 0
	for number := range out {
		sum += number
	}
	check(sum == 500*499, "channels")
}

func packing() {
	text := bytes.Repeat([]byte("abcdefgh"), 2000)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	writer.Write(text)
	writer.Close()
	reader, err := gzip.NewReader(&packed)
	check(err == nil, "packing")
	back, err := io.ReadAll(reader)
	check(err == nil && bytes.Equal(back, text), "unpacking")
}

func threads() {
	done := make(chan int)
	go func() {
		runtime.LockOSThread() // never unlocked: its thread ends with it
		done <- grow(300)
	}()
	check(<-done == 300, "a thread")
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var group sync.WaitGroup
	for i := 0; i < 6; i++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			for round := 0; time.Now().Before(end); round++ {
				check(grow(100+round%3000) == 100+round%3000, "a stack that grows")
				check(panics(5+round%50) == "thrown", "a panic")
				garbage()
				channels()
				packing()
				threads()
				if round%20 == number {
					runtime.GC()
				}
				time.Sleep(time.Millisecond)
			}
		}(i)
	}
	group.Wait()
	fmt.Println("all sums hold")
}
