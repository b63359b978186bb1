package main

import (
	"context"
	"fmt"
	"net"
	"time"
)

// tick combines tickers, timers, deadlines and connection timeouts.
func tick() {
	start := time.Now()
	say := func(what string) { fmt.Println(time.Since(start), what) }
	ctx, cancel := context.WithTimeout(context.Background(), 95*time.Second)
	defer cancel()
	ticker := time.NewTicker(30 * time.Second)
	time.AfterFunc(45*time.Second, func() { say("after 45s") })
	done := make(chan bool)
	go func() {
		readUntilTimeout(say)
		close(done)
	}()
	for {
		select {
		case <-ticker.C:
			say("tick")
		case <-ctx.Done():
			<-done
			say(ctx.Err().Error())
			return
		}
	}
}

func readUntilTimeout(say func(string)) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	conn.SetReadDeadline(time.Now().Add(70 * time.Second))
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		say("read timed out")
	}
}
