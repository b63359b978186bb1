package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// crowd lets two thousand goroutines sleep, each to an instant of its own, and tells how many woke at another one or
// out of turn.
func crowd() {
	const people, prime = 2000, 2003
	start := time.Now()
	var wait sync.WaitGroup
	var lock sync.Mutex
	late, disorder, last := 0, 0, time.Duration(0)
	for person := range people {
		nap := time.Duration((person+1)*7919%prime) * time.Second
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

// nap sleeps as long as each argument says, all at once, and names them as they wake.
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
