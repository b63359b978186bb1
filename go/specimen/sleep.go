package main

import (
	"fmt"
	"time"
)

// sleep sleeps for a very long time, and prints the time in between.
func sleep() {
	start := time.Now()
	for range 5 {
		fmt.Println(time.Now().UTC().Format(time.RFC3339Nano), time.Since(start))
		time.Sleep(2000 * time.Hour)
	}
}
