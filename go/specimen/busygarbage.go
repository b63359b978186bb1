package main

import (
	"fmt"
	"runtime"
	"sync"
)

// busygarbage creates a gigabyte of garbage without ever being idle, and prints in which iterations some was collected.
func busygarbage() {
	var stats runtime.MemStats
	var collections uint32
	var moments []int
	var work sync.WaitGroup
	for turn := range 1 << 16 {
		work.Add(1)
		go func() {
			kept = make([]byte, 16<<10)
			work.Done()
		}()
		runtime.Gosched()
		if turn%16 != 0 {
			continue
		}
		if runtime.ReadMemStats(&stats); stats.NumGC > collections {
			collections = stats.NumGC
			moments = append(moments, turn)
		}
	}
	work.Wait()
	fmt.Println("collections", collections)
	fmt.Println(moments)
}
