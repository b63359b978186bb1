package main

import (
	"context"
	"fmt"
	"time"
)

// timers stops, resets and outruns timers, and prints when each of them fired.
func timers() {
	start := time.Now()
	say := func(what string) { fmt.Println(time.Since(start), what) }

	stopped := time.AfterFunc(time.Second, func() { say("a stopped timer fired") })
	fmt.Println("stopped in time:", stopped.Stop(), "and again:", stopped.Stop())
	postponed := time.NewTimer(2 * time.Second)
	postponed.Reset(25 * time.Second)
	answer := make(chan string)
	time.AfterFunc(3*time.Second, func() { answer <- "an answer before the timeout" })
	say(answerOrTimeout(answer, 5*time.Second))
	say(answerOrTimeout(answer, 5*time.Second))

	ticker := time.NewTicker(time.Second)
	<-ticker.C
	ticker.Reset(7 * time.Second)
	<-ticker.C
	ticker.Stop()
	say("ticks at one second and seven")
	<-postponed.C
	say("postponed")

	time.Sleep(0)
	time.Sleep(-time.Hour)
	say("no time at all")
	time.Sleep(1)
	say("a nanosecond")
	deadlines(say)
}

func answerOrTimeout(answer <-chan string, timeout time.Duration) string {
	select {
	case text := <-answer:
		return text
	case <-time.After(timeout):
		return "timeout"
	}
}

// deadlines nests contexts: the earlier deadline counts, that of the parent or of the child.
func deadlines(say func(string)) {
	outer, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	inner, stopInner := context.WithTimeout(outer, 4*time.Second)
	defer stopInner()
	late, stopLate := context.WithTimeout(outer, time.Hour)
	defer stopLate()
	<-inner.Done()
	say("inner: " + inner.Err().Error())
	<-late.Done()
	say("outer: " + late.Err().Error())
}
