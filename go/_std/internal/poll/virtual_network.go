// Virtual time: what a program's connections report to the coordinator.
//
// Only connections to the run's API server count: when both sides have counted
// the same number of bytes, nothing is in flight. Connections to others run on
// real time and are only noted.
//
// In a deterministic program no goroutine may notice how long the kernel takes,
// because each wait for the network lets other goroutines run. So connect
// returns when the connection is established or refused, and a write to the
// run's server when the kernel has taken all of it. Reads need no such rule:
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

// vtReceiveBuffer makes room for what the run's server sends in one piece
// (api/connections/polled/server.py). Linux gives so much to every program: it is the
// smallest default of net.core.rmem_max.
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

// VirtualConnect wraps connect(2).
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
// takes back its count if there will not be one.
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

// vtAwaitConnected waits in real time for a connection. The run's server
// accepts connections while it waits for us, so its queue empties. Any other
// address may never answer and is given five seconds.
func (fd *FD) vtAwaitConnected(toRun bool) bool {
	const limit = 5000
	for !vtAwaitWritable(int32(fd.Sysfd), limit) {
		if !toRun {
			return false
		}
	}
	return true
}

// vtMayWrite waits until a connection to the run's server takes more bytes: the
// server reads while it waits for us. It reports whether to try again.
func (fd *FD) vtMayWrite() bool {
	if fd.vtPort == 0 || !vtIsDeterministic() {
		return false
	}
	for !vtAwaitWritable(int32(fd.Sysfd), 1000) {
	}
	return true
}
