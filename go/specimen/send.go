package main

import (
	"net"
	"os"
	"time"
)

// send connects to the given address and writes a byte every ten seconds, with other timers in between.
func send() {
	conn, err := net.Dial("tcp", os.Args[2])
	if err != nil {
		panic(err)
	}
	go func() {
		for range time.Tick(time.Second) {
		}
	}()
	for {
		time.Sleep(10 * time.Second)
		conn.Write([]byte{1})
	}
}
