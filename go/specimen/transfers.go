package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
)

// transfers sends bytes to itself in every way that is counted and in some that are not, and prints how many are counted.
func transfers() {
	total := 0
	for _, network := range []string{"tcp", "unix"} {
		client, server := connected(network)
		received := make(chan int)
		go func() {
			count, _ := io.Copy(io.Discard, struct{ io.Reader }{server})
			received <- int(count)
		}()
		client.Write([]byte("short"))
		client.Write(make([]byte, 3<<20)) // more than a socket holds: written in parts
		pieces := net.Buffers{make([]byte, 1000), make([]byte, 100000), nil, make([]byte, 7)}
		pieces.WriteTo(client) // writev
		client.Close()
		total += <-received
	}
	packets()
	file := filepath.Join(os.TempDir(), fmt.Sprint("specimen-", os.Getpid()))
	os.WriteFile(file, make([]byte, 12345), 0o600)
	os.ReadFile(file)
	os.Remove(file)
	fmt.Println(total)
}

// connected returns the two ends of a stream connection.
func connected(network string) (net.Conn, net.Conn) {
	address := "127.0.0.1:0"
	if network == "unix" {
		address = fmt.Sprint("@specimen-", os.Getpid())
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	accepted := make(chan net.Conn)
	go func() {
		conn, _ := listener.Accept()
		accepted <- conn
	}()
	client, err := net.Dial(network, listener.Addr().String())
	if err != nil {
		panic(err)
	}
	return client, <-accepted
}

// packets sends a datagram, which need not be read: datagrams may be lost.
func packets() {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	conn.WriteTo(make([]byte, 99), conn.LocalAddr())
	conn.ReadFrom(make([]byte, 99))
	conn.Close()
}
