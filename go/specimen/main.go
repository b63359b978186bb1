// Specimen contains the test programs of the virtual clock: they wait, draw random numbers, communicate and create garbage.
//
//	specimen NAME [ARGUMENT]…
package main

import (
	"fmt"
	"os"
)

var specimens = map[string]func(){
	"sleep":     sleep,
	"tick":      tick,
	"chance":    chance,
	"send":      send,
	"litter":    litter,
	"flood":     flood,
	"converse":  converse,
	"nothing":   func() { select {} },
	"parent":    parent,
	"interrupt": interrupt,
	"timers":    timers,
	"crowd":     crowd,
	"nap":       nap,
	"pump":      pump,
	"receive":   receive,
	"order":     order,
}

func main() {
	run, known := specimens[os.Args[1]]
	if !known {
		fmt.Fprintln(os.Stderr, "no such specimen:", os.Args[1])
		os.Exit(2)
	}
	run()
}
