package main

import (
	"fmt"
	"os"
	"os/signal"
	"time"
)

// interrupt waits for a signal, which is sent in real time.
func interrupt() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	select {
	case <-signals:
		fmt.Println("interrupted")
	case <-time.After(time.Hour):
		fmt.Println("an hour passed")
	}
}
