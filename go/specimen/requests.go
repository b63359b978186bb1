package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// requests makes requests from many goroutines at once, with timers in between: times must stay exact with many threads.
func requests() {
	start := time.Now()
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			sendRequests(worker)
		}()
	}
	wait.Wait()
	fmt.Println(time.Since(start))
}

func sendRequests(worker int) {
	conn, err := net.Dial("tcp", os.Args[2])
	if err != nil {
		panic(err)
	}
	answers := bufio.NewReader(conn)
	for turn := range 50 {
		fmt.Fprintf(conn, "%d %d\n", worker, turn)
		if _, err := answers.ReadString('\n'); err != nil {
			panic(err)
		}
		time.Sleep(time.Duration(worker+1) * time.Second)
	}
}
