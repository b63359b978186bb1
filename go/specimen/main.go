// Specimen contains the test programs of the virtual clock: they wait, draw random numbers, communicate and create garbage.
//
//	specimen NAME [ARGUMENT]…
package main

import (
	"fmt"
	"os"
)

var specimens = map[string]func(){
	"sleep":       sleep,
	"tick":        tick,
	"randomness":  randomness,
	"send":        send,
	"garbage":     garbage,
	"busygarbage": busygarbage,
	"requests":    requests,
	"nothing":     func() { select {} },
	"parent":      parent,
	"interrupt":   interrupt,
	"timers":      timers,
	"sleepers":    sleepers,
	"nap":         nap,
	"transfers":   transfers,
	"receive":     receive,
	"order":       order,
}

func main() {
	run, found := specimens[os.Args[1]]
	if !found {
		fmt.Fprintln(os.Stderr, "no such specimen:", os.Args[1])
		os.Exit(2)
	}
	run()
}
