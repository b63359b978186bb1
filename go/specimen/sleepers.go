package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// sleepers starts two thousand goroutines that sleep until different instants, and prints how many woke late or out of order.
func sleepers() {
	const count, prime = 2000, 2003
	start := time.Now()
	var wait sync.WaitGroup
	var lock sync.Mutex
	late, disorder, last := 0, 0, time.Duration(0)
	for index := range count {
		nap := time.Duration((index+1)*7919%prime) * time.Second
		wait.Add(1)
		go func() {
			defer wait.Done()
			time.Sleep(nap)
			runtime.Gosched()
			slept := time.Since(start)
			lock.Lock()
			defer lock.Unlock()
			if slept != nap {
				late++
			}
			if slept < last {
				disorder++
			}
			last = slept
		}()
	}
	wait.Wait()
	fmt.Println("late", late, "out of turn", disorder, "after", time.Since(start))
}

// nap sleeps for the duration of each argument, all at once, and prints the arguments in the order of waking.
func nap() {
	start := time.Now()
	woken := make(chan string)
	for _, argument := range os.Args[2:] {
		duration, err := time.ParseDuration(argument)
		if err != nil {
			panic(err)
		}
		go func() {
			time.Sleep(duration)
			woken <- fmt.Sprint(int64(duration), " ", int64(time.Since(start)))
		}()
	}
	for range os.Args[2:] {
		fmt.Println(<-woken)
	}
}
