package main

import (
	"fmt"
	"maps"
	"math/rand"
	"os"
	"strconv"
)

// thing is the target of keys; it has the size of the ballast, so that more ballast moves it to another address.
type thing struct {
	number int
	_      [40]byte
}

type place struct {
	name string
	of   *thing
}

var ballast []*thing

// order iterates over maps whose keys contain addresses, after allocating as much ballast as its argument says.
func order() {
	count, _ := strconv.Atoi(os.Args[2])
	for range count {
		ballast = append(ballast, new(thing))
	}
	things := make([]*thing, 800)
	for i := range things {
		things[i] = &thing{number: i}
	}
	for _, size := range []int{5, 9, 100, len(things)} {
		show("pointers", pointed(things[:size]))
	}
	channels, boxes, places := map[chan int]int{}, map[any]int{}, map[place]int{}
	for i, one := range things[:60] {
		channels[make(chan int)], boxes[one], places[place{"here", one}] = i, i, i
	}
	show("channels", channels)
	show("interfaces", boxes)
	show("structs", places)
	fmt.Println("wrong", wrong(things))
}

// pointed returns a map of things, some of which were deleted and inserted again.
func pointed(things []*thing) map[*thing]int {
	numbers := map[*thing]int{}
	for i, one := range things {
		numbers[one] = i
		if i%3 == 2 {
			delete(numbers, things[i/2])
		}
	}
	for i, one := range things {
		numbers[one] = i
	}
	return numbers
}

func show[K comparable](name string, numbers map[K]int) {
	inTurn := []int{}
	for _, number := range numbers {
		inTurn = append(inTurn, number)
	}
	fmt.Println(name, inTurn)
}

// wrong counts the look-ups in growing, shrinking, cleared and copied maps that differ from those in a list.
func wrong(things []*thing) int {
	many := append([]*thing{}, things...)
	for i := range 4000 {
		many = append(many, &thing{number: i})
	}
	errors := 0
	held, list := map[*thing]int{}, make([]int, len(many))
	for step := range 60000 {
		i := rand.Intn(1 + min(len(many)-1, step/8))
		switch {
		case step%9001 == 9000:
			clear(held)
			clear(list)
		case step%7001 == 7000:
			held = maps.Clone(held)
		case rand.Intn(3) == 0:
			delete(held, many[i])
			list[i] = 0
		default:
			held[many[i]], list[i] = step, step
		}
		if held[many[i]] != list[i] {
			errors++
		}
	}
	seen := 0
	for one, step := range held {
		if held[one] == step {
			seen++
		}
	}
	for i, one := range many {
		if held[one] != list[i] {
			errors++
		}
	}
	return errors + len(held) - seen
}
