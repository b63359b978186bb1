package main

import (
	"fmt"
	"net"
	"os"
)

// receive connects to the given address and prints how many bytes each read returned, until the other side closes.
func receive() {
	conn, err := net.Dial("tcp", os.Args[2])
	if err != nil {
		panic(err)
	}
	buffer := make([]byte, 1<<20)
	for {
		count, err := conn.Read(buffer)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(count)
	}
}
