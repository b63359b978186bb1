package main

import (
	crand "crypto/rand"
	"fmt"
	"hash/maphash"
	"math/rand"
	randv2 "math/rand/v2"
	"runtime"
	"sync"
)

// randomness prints random values from every source of randomness in Go.
func randomness() {
	fmt.Println("procs", runtime.GOMAXPROCS(0))
	numbers := map[int]int{}
	for i := range 100 {
		numbers[i] = i
	}
	order := []int{}
	for number := range numbers {
		order = append(order, number)
	}
	fmt.Println("map", order)
	ready := make([]chan int, 8)
	for i := range ready {
		ready[i] = make(chan int, 1)
		ready[i] <- i
	}
	chosen := []int{}
	for range 12 {
		select {
		case n := <-ready[0]:
			chosen = append(chosen, n)
			ready[0] <- n
		case n := <-ready[1]:
			chosen = append(chosen, n)
			ready[1] <- n
		case n := <-ready[2]:
			chosen = append(chosen, n)
			ready[2] <- n
		}
	}
	fmt.Println("select", chosen)
	fmt.Println("math/rand", rand.Int63(), rand.Perm(6), randv2.Uint64())
	secret := make([]byte, 13)
	crand.Read(secret)
	fmt.Printf("crypto/rand %x\n", secret)
	fmt.Println("maphash", maphash.String(maphash.MakeSeed(), "batkube"))
	fmt.Println("goroutines", goroutines())
}

// goroutines starts goroutines that contend for a lock and yield, and returns the order in which they got it.
func goroutines() []int {
	var wait sync.WaitGroup
	var lock sync.Mutex
	order := []int{}
	for i := range 40 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range i % 5 {
				runtime.Gosched()
			}
			lock.Lock()
			order = append(order, i)
			lock.Unlock()
		}()
	}
	wait.Wait()
	return order
}
