// Virtual time: bytes on the program's connections to the run's server.
//
// The server sends one piece on one connection at a time, and only while the
// program is idle. The kernel may deliver a piece in several segments. On a free
// core the program would then handle the first segment alone, which takes an
// additional goroutine turn and changes everything that depends on the number of
// turns (Go checks the global run queue on every 61st turn). The server therefore
// announces each piece on the page before it sends it, and the poller of a
// deterministic program does not check its connections until the announced piece
// has arrived in full. The program reads whole pieces, however the kernel cuts or
// delays them.

package runtime

import (
	"internal/goarch"
	"internal/runtime/atomic"
	"internal/runtime/syscall/linux"
	"unsafe"
)

// vtFds has the descriptor, plus one, of each open connection to the run's
// server, by local port.
var vtFds [1 << 16]atomic.Int32

// vtWhole is the latest announced piece that has arrived in full.
var vtWhole atomic.Uint64

// vtTouched counts a write, connect or close, before the peer can observe it.
//
//go:linkname vtTouched internal/poll.vtTouched
func vtTouched() {
	if vt != nil {
		vt.wrote.Add(1)
	}
}

// vtServerPort returns the port of the run's server; -1 on real time.
//
//go:linkname vtServerPort internal/poll.vtServerPort
func vtServerPort() int {
	if vt == nil {
		return -1
	}
	return int(vt.port)
}

//go:linkname vtIsDeterministic internal/poll.vtIsDeterministic
func vtIsDeterministic() bool {
	return vtSeeded
}

// vtConnecting counts a connection before connect(2).
//
//go:linkname vtConnecting internal/poll.vtConnecting
func vtConnecting(toRun bool) {
	if toRun {
		vt.begun.Add(1)
	} else {
		vt.elsewhere.Add(1)
	}
}

// vtOpened registers a connection to the run's server. The server numbers its
// connections in the order recorded here, because the kernel may accept them in
// a different order.
//
//go:linkname vtOpened internal/poll.vtOpened
func vtOpened(port uint16, fd int32) {
	vtFds[port].Store(fd + 1)
	vt.ports[(vt.opened.Add(1)-1)%vtRecorded] = port
}

// vtRefused subtracts a connection that failed from the count.
//
//go:linkname vtRefused internal/poll.vtRefused
func vtRefused() {
	vt.begun.Add(-1)
}

//go:linkname vtClosed internal/poll.vtClosed
func vtClosed(port uint16) {
	vtFds[port].Store(0)
}

// vtMoved counts bytes sent to and received from the run's server, and bytes
// received from other peers.
//
//go:linkname vtMoved internal/poll.vtMoved
func vtMoved(sent, got, foreign int) {
	if vt != nil {
		vt.sent.Add(int64(sent))
		vt.got.Add(int64(got))
		vt.foreign.Add(int64(foreign))
	}
}

// vtAwaitWritable waits in real time until a connection is established or
// writable, and returns whether it is. It blocks the whole program.
//
//go:linkname vtAwaitWritable internal/poll.vtAwaitWritable
func vtAwaitWritable(fd int32, milliseconds int64) bool {
	const writable = 4
	limit := [2]int64{milliseconds / 1000, milliseconds % 1000 * 1e6}
	return vtPollFile(fd, writable, &limit)
}

// vtBeforePolling waits until a connection is ready, without removing its event
// from epoll (unless waitms is 0, a non-blocking poll), and then until the
// announced piece has arrived. It returns the timeout for epoll_wait.
//
//go:nowritebarrierrec
func vtBeforePolling(waitms int32) int32 {
	if !vtSeeded {
		return waitms
	}
	if waitms != 0 {
		vtPollFile(epfd, vtReadable, nil)
	}
	vtAwaitArrival()
	return 0
}

// vtAfterPolling adds the events of a piece that was announced after
// vtBeforePolling. A connection that appears twice is made ready once.
//
//go:nowritebarrierrec
func vtAfterPolling(events []linux.EpollEvent, count int32, errno uintptr) (int32, uintptr) {
	for vtSeeded && errno == 0 && int(count) < len(events) && vtAwaitArrival() {
		var more int32
		more, errno = linux.EpollWait(epfd, events[count:], int32(len(events))-count, 0)
		count += more
	}
	return count, errno
}

// vtAwaitArrival waits in real time until the announced piece has arrived, and
// returns whether it was a new one.
//
//go:nowritebarrierrec
func vtAwaitArrival() bool {
	announced := vt.arriving.Load()
	if announced == vtWhole.Load() {
		return false
	}
	for !vtHasArrived(announced) {
		usleep(20)
		announced = vt.arriving.Load() // the server withdraws a piece that it cannot send
	}
	vtWhole.Store(announced)
	return true
}

// vtHasArrived returns whether the connection has received the announced number
// of bytes, read or unread, or will receive no more. The kernel holds the lock
// of the socket for this call, so epoll has events for all bytes that it counts.
//
//go:nowritebarrierrec
func vtHasArrived(announced uint64) bool {
	const (
		getsockopt = 55*goarch.IsAmd64 + 209*goarch.IsArm64
		tcp, info  = 6, 11
		received   = 16 // tcpi_bytes_received of struct tcp_info, in words of eight bytes; tcpi_state is in the first one
		closed     = 7  // TCP_CLOSE; in higher states the peer has closed the stream, or the socket is closing
	)
	fd := vtFds[announced>>48].Load() - 1
	if fd < 0 {
		return true // the program has closed it
	}
	var state [received + 1]uint64
	size := uint32(unsafe.Sizeof(state))
	_, _, errno := linux.Syscall6(getsockopt, uintptr(fd), tcp, info, uintptr(noescape(unsafe.Pointer(&state))),
		uintptr(noescape(unsafe.Pointer(&size))), 0)
	return errno != 0 || uint8(state[0]) >= closed || state[received] >= announced&(1<<40-1)
}

type vtPollFd struct {
	fd      int32
	events  int16
	revents int16
}

const vtReadable = 1

// vtPollFile waits in real time until a file is ready, up to a limit (seconds,
// nanoseconds) if there is one, and returns whether it is ready.
//
//go:nowritebarrierrec
func vtPollFile(fd int32, events int16, limit *[2]int64) bool {
	const ppoll = 271*goarch.IsAmd64 + 73*goarch.IsArm64
	watched := vtPollFd{fd: fd, events: events}
	ready, _, _ := linux.Syscall6(ppoll, uintptr(noescape(unsafe.Pointer(&watched))), 1,
		uintptr(noescape(unsafe.Pointer(limit))), 0, 0, 0)
	return ready == 1
}
