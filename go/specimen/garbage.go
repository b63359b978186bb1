package main

import (
	"fmt"
	"runtime"
	"time"
)

var kept []byte

// garbage creates garbage all the time, and prints at the end how often it was collected.
func garbage() {
	for range 10 {
		for range 100 {
			kept = make([]byte, 1<<20)
		}
		time.Sleep(time.Second)
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	fmt.Println("collections", stats.NumGC)
}
