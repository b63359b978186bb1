// Virtual time: counts of a program's connections, for the coordinator.
//
// Bytes of connections to the run's API server are counted on both sides: when
// the counts agree, nothing is in flight. Connections to other peers run on real
// time; their counts are only reported.
//
// In deterministic mode the speed of the kernel must not influence the order of
// goroutines, but each wait for the network runs other goroutines. So connect
// returns when the connection is established or refused, and a write to the run's
// server returns when the kernel has accepted all bytes. Reads need no such rule:
// the poller delivers whole pieces only (runtime/virtual_network.go).

package poll

import "syscall"

// These are in runtime/virtual_network.go.
func vtTouched()
func vtConnecting(toRun bool)
func vtOpened(port uint16, fd int32)
func vtRefused()
func vtClosed(port uint16)
func vtMoved(sent, got, foreign int)
func vtServerPort() int
func vtIsDeterministic() bool
func vtAwaitWritable(fd int32, milliseconds int64) bool

// vtReceiveBuffer is large enough for the longest piece of the run's server
// (api/connections/polled/server.py). Every program may set it: it is the smallest
// default of net.core.rmem_max.
const vtReceiveBuffer = 212992

func (fd *FD) vtTouch() {
	if !fd.isFile {
		vtTouched()
	}
}

func (fd *FD) vtClose() {
	fd.vtTouch()
	if fd.vtPort != 0 {
		vtClosed(fd.vtPort)
		fd.vtPort = 0
	}
}

func (fd *FD) vtSent(n int) {
	if n > 0 && fd.vtPort != 0 {
		vtMoved(n, 0, 0)
	}
}

func (fd *FD) vtGot(n int) {
	if n <= 0 || !fd.IsStream || fd.isFile {
		return
	}
	if fd.vtPort != 0 {
		vtMoved(0, n, 0)
	} else {
		vtMoved(0, 0, n)
	}
}

// VirtualConnect calls connect(2), and counts and registers the connection.
func (fd *FD) VirtualConnect(connect func(int, syscall.Sockaddr) error, to syscall.Sockaddr) error {
	port := vtServerPort()
	if port < 0 {
		return connect(fd.Sysfd, to)
	}
	ipv4, isIPv4 := to.(*syscall.SockaddrInet4)
	toRun := isIPv4 && ipv4.Port == port && ipv4.Addr == [4]byte{127, 0, 0, 1}
	vtTouched()
	if fd.IsStream {
		vtConnecting(toRun)
	}
	if toRun {
		syscall.SetsockoptInt(fd.Sysfd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, vtReceiveBuffer)
	}
	err := connect(fd.Sysfd, to)
	if err == syscall.EINPROGRESS && vtIsDeterministic() && fd.vtAwaitConnected(toRun) {
		err = connect(fd.Sysfd, to)
	}
	if toRun {
		fd.vtBegan(err)
	}
	return err
}

// vtBegan registers a connection to the run's server by its local port, or
// subtracts it from the count if it has failed.
func (fd *FD) vtBegan(err error) {
	switch err {
	case nil, syscall.EINPROGRESS, syscall.EALREADY, syscall.EINTR, syscall.EISCONN:
	default:
		vtRefused()
		return
	}
	local, _ := syscall.Getsockname(fd.Sysfd)
	if ipv4, ok := local.(*syscall.SockaddrInet4); ok {
		fd.vtPort = uint16(ipv4.Port)
		vtOpened(fd.vtPort, int32(fd.Sysfd))
	}
}

// vtAwaitConnected waits in real time for a connection. The run's server accepts
// connections while it waits for us. Other servers may never answer; the limit
// for them is five seconds.
func (fd *FD) vtAwaitConnected(toRun bool) bool {
	const limit = 5000
	for !vtAwaitWritable(int32(fd.Sysfd), limit) {
		if !toRun {
			return false
		}
	}
	return true
}

// vtMayWrite waits until a connection to the run's server is writable (the server
// reads while it waits for us), and returns whether the write can be repeated.
func (fd *FD) vtMayWrite() bool {
	if fd.vtPort == 0 || !vtIsDeterministic() {
		return false
	}
	for !vtAwaitWritable(int32(fd.Sysfd), 1000) {
	}
	return true
}
